import AppContainer
import AppFrameworks
import TestSupport

/// The committed samples of Room and SQLDelight, which Python scripts beside them wrote.
enum Samples {
  static let directory = String(#filePath.prefix(upTo: #filePath.lastIndex(of: "/") ?? #filePath.endIndex))
  static let room = directory + "/RoomSamples"
  static let sqlDelight = directory + "/SQLDelightSamples"

  static func bytes(_ path: String) throws -> [UInt8] { [UInt8](try RawFiles.read(Array(path.utf8))) }

  static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

  static func schema(_ version: Int) throws -> RoomSchema {
    try RoomSchema(try Samples.bytes("\(room)/schemas/\(version).json"), file: "\(version).json")
  }
}

/// Tools with migrations of the database `notes`.
extension MigrationTool {
  init(_ format: Format) { self.init(format, database: "notes") }

  static let dbmate = MigrationTool(.dbmate)
  static let golangMigrate = MigrationTool(.golangMigrate)
  static let goose = MigrationTool(.goose)
  static let sqldelight = MigrationTool(.sqldelight)
  /// With the sources of the sample.
  static let sqlDelight = MigrationTool(
    .sqldelight, database: "notes", sources: Samples.sqlDelight + "/sources")
  /// With the schemas of the sample.
  static let room = MigrationTool(.room, database: "notes", schemas: Samples.room + "/schemas")
}
