import DrydockErrors

@testable import AppContainer
@testable import AppFrameworks
@testable import MigrationEngine

/// Schemas that Room exported.
extension FuzzTarget {
  /// What is read is created in memory, and compared with itself: it is as it declares, or refused.
  func readRoomSchema(_ bytes: [UInt8]) throws {
    let schema = try RoomSchema(bytes, file: "1.json")
    _ = schema.tables.map { schema.line(of: $0.name, column: $0.columns.first?.name) }
    // It compares what it made with the schema.
    _ = try schema.fresh(ContainerConfiguration())
    let spec = try RoomAutoSpec([], file: "1_2.auto.yaml")
    guard try RoomAutoMigration(from: schema, to: schema, spec).statements.allSatisfy({ $0.contains("VIEW") })
    else {
      fatalError("a schema differs from itself")
    }
  }
}
