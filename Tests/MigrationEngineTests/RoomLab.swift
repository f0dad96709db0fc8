import AppContainer
import AppFrameworks
import ContainerTransaction
import DrydockErrors
import Foundation
import GRDB
import TestSupport

@testable import MigrationEngine

/// The committed samples of Room and SQLDelight, which Python scripts beside them wrote.
enum Samples {
  static let directory = String(#filePath.prefix(upTo: #filePath.lastIndex(of: "/") ?? #filePath.endIndex))
  static let room = directory + "/RoomSamples"
  static let sqlDelight = directory + "/SQLDelightSamples"

  static func bytes(_ path: String) throws -> [UInt8] { [UInt8](try RawFiles.read(Array(path.utf8))) }

  static func schema(_ version: Int) throws -> RoomSchema {
    try RoomSchema(try Samples.bytes("\(room)/schemas/\(version).json"), file: "\(version).json")
  }
}

extension Lab {
  /// A container with one of the sample databases.
  func sample(_ path: String) throws {
    try write(Self.place, "")
    let target = directory("container/\(Self.place)")
    try RawFiles.write(Samples.bytes(path), to: Array(target.utf8))
  }

  func catalog(tool: MigrationTool, in directory: String? = nil) throws -> MigrationCatalog {
    try MigrationCatalog.load(directory ?? self.directory("migrations"), tool: tool)
  }

  func migrate(with catalog: MigrationCatalog, to target: Int? = nil) throws -> MigrationReport {
    try Transaction.run(on: try container, .migrate, summary: "test") { stage in
      try Migrator.run(MigrationStatus(catalog, of: stage), to: target, on: stage, stamp: stamp)
    }.value
  }

  func drift(_ catalog: MigrationCatalog, at version: Int) throws -> [String] {
    guard let declared = try DeclaredSchema(catalog, configuration) else { return ["nothing is declared"] }
    return try Transaction.inspect(try container) { try declared.drift(in: $0, at: version) }.map(\.sentence)
  }
}

extension MigrationTool {
  static let room = MigrationTool(.room, database: "notes", schemas: Samples.room + "/schemas")
  static let sqlDelight = MigrationTool(
    .sqldelight, database: "notes", sources: Samples.sqlDelight + "/sources")
}
