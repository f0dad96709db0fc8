import AppContainer
import AppFrameworks
import ContainerTransaction
import FileSystem
import GRDB

/// What a database's own library, or another migration tool, has written into it about its schema.
package struct SchemaRecord: Sendable, Equatable {
  /// In a sentence, such as `GRDB applied 3 migrations, the last one is v3 (table grdb_migrations)`.
  package var text: String
  /// The format of the tool's migration directory, which Drydock can read.
  package var tool: MigrationTool.Format?
  package var room: RoomIdentity?

  /// The record in a database; nil when there is none.
  package static func find(in database: ContainerPath, of stage: StagedContainer) -> SchemaRecord? {
    (try? stage.readDatabase(at: database) { try find($0) }) ?? nil
  }

  private static func find(_ db: Database) throws -> SchemaRecord? {
    let tables = try Set(String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'"))
    if let names = try db.appliedByGRDB() {
      let last = names.last.map { ", the last one is \($0.debugDescription)" } ?? ""
      return SchemaRecord(text: "GRDB applied \(names.count) migrations\(last) (table grdb_migrations)")
    }
    if let room = try RoomIdentity(db) {
      return SchemaRecord(
        text: "Room's, version \(room.version): Room refuses a schema that its identity hash does not match "
          + "(table room_master_table)", tool: .room, room: room)
    }
    if tables.isSuperset(of: ["Z_METADATA", "Z_PRIMARYKEY"]) {
      let entities = try Int.fetchOne(db, sql: "SELECT count(*) FROM Z_PRIMARYKEY") ?? 0
      return SchemaRecord(
        text: "a Core Data or SwiftData store with \(entities) entities: its model decides the schema, and "
          + "user_version is not its version")
    }
    if tables.contains("goose_db_version") {
      return SchemaRecord(text: "goose's (table goose_db_version)", tool: .goose)
    }
    if tables.contains("schema_migrations") {
      let columns = try db.columns(in: "schema_migrations").map(\.name)
      return columns.contains("dirty")
        ? SchemaRecord(text: "golang-migrate's (table schema_migrations)", tool: .golangMigrate)
        : SchemaRecord(text: "dbmate's (table schema_migrations)", tool: .dbmate)
    }
    return nil
  }
}
