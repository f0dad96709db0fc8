import AppContainer
import AppFrameworks
import AppStores
import FileSystem
import Foundation
import GRDB
import TestSupport

/// The stores that `CoreDataStores/make_stores.py` wrote.
enum CoreDataSamples {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/CoreDataStores"
  static let model = folder + "/Notes.momd"
  static let versionInfo = model + "/VersionInfo.plist"
  /// The name of the file with the large photo.
  static let reference = "5D1B0F6A-6C1E-4E0B-9A57-0C1F5B1C2D3E"

  static func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
  }

  /// Describes a copy of a store that statements have changed.
  static func describe(
    _ name: String, sql: String = "", model: String? = nil, files: [String: UInt64]? = nil,
    configure: (inout ContainerConfiguration) -> Void = { _ in }
  ) throws -> DatabaseDescription? {
    try TemporaryDirectory.with { directory in
      try RawFiles.write(bytes(name), to: Array(directory(name).utf8))
      var configuration = ContainerConfiguration()
      configuration.coreDataModel = model
      configure(&configuration)
      let queue = try DatabaseQueue(path: directory(name))
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA foreign_keys=OFF;" + sql) }
      return try queue.read { db in
        try DatabaseDescription.of(
          DescribedDatabase(
            db, path: ContainerPath(name), externalFiles: files, configuration: configuration,
            redactor: Redactor()))
      }
    }
  }
}
