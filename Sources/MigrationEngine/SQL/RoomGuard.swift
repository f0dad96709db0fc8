import GRDB

/// Keeps Room from refusing a database: Room compares the hash in `room_master_table` with the one of its compiled
/// schema, and a schema that SQL changed has another one.
struct RoomGuard {
  private let schema: [Row]
  private let identity: [Row]?

  /// Nil when a database is none of Room's.
  init?(_ db: Database) throws {
    // GRDB's own question reads the whole schema.
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'room_master_table' COLLATE NOCASE"
    guard try Int.fetchOne(db, sql: sql) != nil else { return nil }
    schema = try Self.schema(db)
    identity = try Self.identity(db)
  }

  /// Looks at the database after the last statement.
  ///
  /// - Throws: ``StepFailure`` when the schema has changed and its hash has not.
  func finish(_ db: Database) throws {
    guard try Self.schema(db) != schema, try Self.identity(db) == identity else { return }
    throw StepFailure(
      message:
        "the database is Room's, and these statements change its schema: Room compares `room_master_table.identity_hash` "
        + "with the schema that the app was compiled with, and would refuse to open it; let the app's own Room "
        + "migration make this change, or write the new hash (`identityHash` in the app's exported schema) in the "
        + "same step: UPDATE room_master_table SET identity_hash = '…' WHERE id = 42",
      code: .foreignSchema)
  }

  private static func schema(_ db: Database) throws -> [Row] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT type, name, tbl_name, sql FROM sqlite_schema
        WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name != 'room_master_table' ORDER BY type, name
        """)
  }

  /// Nil when the table is not there any more, or is not as Room makes it.
  private static func identity(_ db: Database) throws -> [Row]? {
    do {
      return try Row.fetchAll(db, sql: "SELECT id, identity_hash FROM room_master_table ORDER BY id")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return nil
    }
  }
}
