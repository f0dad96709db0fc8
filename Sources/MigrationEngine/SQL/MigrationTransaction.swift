import AppFrameworks
import ContainerTransaction
import Formats
import GRDB

/// A change of a database in one transaction, by SQLite's documented procedure for schema changes: foreign keys are off,
/// and afterwards nothing is broken that was not before. Core Data stores and Room databases stay valid.
enum MigrationTransaction {
  /// Runs a body; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameters:
  ///   - model: the new model of a Core Data store; nil when its schema must not change.
  ///   - isPart: whether the change is one of several that lead to the model.
  ///   - guardsRoom: whether Room's hash must change with the schema; false when the body validates the schema.
  ///   - script: the statements, which say what was meant to go; nil when they are not known.
  ///   - allowsOrphans: whether rows may be left that refer to missing ones.
  ///   - connection: has what the last change left, if it is shared with others; gets what this one leaves.
  ///   - body: gets a guard that checks such a store between statements; nil for other databases.
  /// - Returns: notes for the report.
  /// - Throws: ``StepFailure`` about foreign keys and Core Data, and the errors of the body.
  static func run(
    _ db: Database, model: CoreDataModel? = nil, isPart: Bool = false, guardsRoom: Bool = true,
    script: SQLScript? = nil, allowsOrphans: Bool = false, on connection: StagedConnection? = nil,
    _ body: (CoreDataGuard?) throws -> Void
  ) throws -> [String] {
    try db.execute(sql: "BEGIN IMMEDIATE")
    do {
      // Inside: outside, SQLite would lock the file and look for a journal for each of its queries.
      let before = try DatabaseState(db, changing: script, after: connection?.left as? DatabaseState)
      let store = try CoreDataGuard(db, model: model, isPart: isPart)
      if model != nil, store == nil {
        throw StepFailure("the database is not a Core Data store: leave `core-data` out")
      }
      let room = guardsRoom ? try RoomGuard(db) : nil
      try body(store)
      guard db.isInsideTransaction else {
        throw StepFailure("a statement ended the transaction of the migration")
      }
      try room?.finish(db)
      let (notes, left) = try before.compared(with: db, allowsOrphans: allowsOrphans)
      let more = try store?.finish(db) ?? []
      try db.execute(sql: "COMMIT")
      connection?.left = left
      return notes + more
    } catch {
      if db.isInsideTransaction { try? db.execute(sql: "ROLLBACK") }
      throw error
    }
  }
}

/// Keeps a database valid for Room, which compares the hash in `room_master_table` with the one of its compiled
/// schema, and a schema that SQL changed has another one.
struct RoomGuard {
  private let schema: [Row]
  private let identity: [Row]?

  /// Nil when the database is not Room's.
  init?(_ db: Database) throws {
    // GRDB's `tableExists` reads the whole schema.
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'room_master_table' COLLATE NOCASE"
    guard try Int.fetchOne(db, sql: sql) != nil else { return nil }
    schema = try db.schemaRows(except: "room_master_table")
    identity = try Self.identity(db)
  }

  /// Checks the database after the last statement.
  ///
  /// - Throws: ``StepFailure`` when the schema has changed and its hash has not.
  func finish(_ db: Database) throws {
    guard try db.schemaRows(except: "room_master_table") != schema, try Self.identity(db) == identity else {
      return
    }
    throw StepFailure(
      "the database is Room's, and these statements change its schema: Room compares `room_master_table.identity_hash` "
        + "with the schema that the app was compiled with, and would refuse to open it; let the app's own Room "
        + "migration make this change, or write the new hash (`identityHash` in the app's exported schema) in the "
        + "same step: UPDATE room_master_table SET identity_hash = '…' WHERE id = 42",
      code: .foreignSchema)
  }

  /// Nil when the table does not exist any more, or has other columns.
  private static func identity(_ db: Database) throws -> [Row]? {
    do {
      return try Row.fetchAll(db, sql: "SELECT id, identity_hash FROM room_master_table ORDER BY id")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return nil
    }
  }
}
