import GRDB

/// A change of a database in one transaction, the way SQLite's documentation wants changes of a schema done: foreign keys
/// off, and afterwards no violation that was not there before. A Core Data store stays one, a database of Room's, too.
enum MigrationTransaction {
  /// Runs a body; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameters:
  ///   - model: what a Core Data store is to be afterwards; nil when its schema has to stay.
  ///   - body: gets what can look at such a store between two statements; nil for other databases.
  /// - Returns: remarks for the report.
  /// - Throws: ``StepFailure`` about foreign keys and Core Data; what the body throws.
  static func run(
    _ db: Database, model: CoreDataModel? = nil, _ body: (CoreDataGuard?) throws -> Void
  ) throws -> [String] {
    let before: [Violation: Int]?
    do {
      before = try violations(db)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // Foreign keys that make no sense, such as ones to a table that is not there.
      before = nil
    }
    try db.execute(sql: "BEGIN IMMEDIATE")
    do {
      let store = try CoreDataGuard(db, model: model)
      if model != nil, store == nil {
        throw StepFailure(message: "the database is no Core Data store: leave `core-data` out")
      }
      let room = try RoomGuard(db)
      try body(store)
      guard db.isInsideTransaction else {
        throw StepFailure(message: "a statement ended the transaction of the migration")
      }
      try room?.finish(db)
      let notes = try compare(before, db) + (store?.finish(db) ?? [])
      try db.execute(sql: "COMMIT")
      return notes
    } catch {
      if db.isInsideTransaction { try? db.execute(sql: "ROLLBACK") }
      throw error
    }
  }

  /// A row whose parent is missing. Its table is left out: a migration may rename it.
  private struct Violation: Hashable {
    let rowid: Int64?
    let parent: String
  }

  private static func violations(_ db: Database) throws -> [Violation: Int] {
    var found: [Violation: Int] = [:]
    let rows = try Row.fetchCursor(db, sql: "PRAGMA foreign_key_check")
    while let row = try rows.next() {
      let parent: String = row["parent"] ?? ""
      found[Violation(rowid: row["rowid"], parent: parent.lowercased()), default: 0] += 1
    }
    return found
  }

  private static func compare(_ before: [Violation: Int]?, _ db: Database) throws -> [String] {
    let after: [Violation: Int]
    do {
      after = try violations(db)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // The schema's foreign keys made no sense before: then nothing can be compared.
      if before == nil { return ["foreign keys could not be checked: \(error.plainMessage)"] }
      throw StepFailure(
        message: "after these statements foreign keys cannot be checked: \(error.plainMessage)")
    }
    let broken = after.filter { $0.value > (before ?? [:])[$0.key] ?? 0 }
    if !broken.isEmpty {
      let more = broken.reduce(0) { $0 + $1.value - ((before ?? [:])[$1.key] ?? 0) }
      let parents = Set(broken.keys.map(\.parent)).sorted().joined(separator: ", ")
      throw StepFailure(
        message:
          "these statements leave references to missing rows of \(parents) (\(more) more than before): "
          + "change both sides, or delete the rows that refer to them")
    }
    let old = after.values.reduce(0, +)
    return old == 0 ? [] : ["references to rows that were missing before the migration already: \(old)"]
  }
}
