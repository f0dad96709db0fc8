import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import GRDB

extension AuditRule {
  static let databases = [
    AuditRule(
      .databaseDamaged, .error, "a damaged database",
      why: "queries fail or give wrong rows; each backup stores the damage",
      fix: "restore the database from an older snapshot, or recover it with SQLite's `.recover`",
      source: "https://www.sqlite.org/pragma.html#pragma_integrity_check"),
    AuditRule(
      .foreignKeyViolated, .warning, "rows that violate a foreign key",
      why:
        "rows refer to others that do not exist: foreign keys were off when the app wrote them, since each connection has to "
        + "switch them on; the file does not say whether they are",
      fix:
        "remove or correct the rows in a step `sql`, and set `PRAGMA foreign_keys = ON` in each connection of the app",
      source: "https://www.sqlite.org/foreignkeys.html#fk_enable"),
    AuditRule(
      .foreignKeyWithoutIndex, .note, "a foreign key without an index",
      why: "each deletion or change of a referenced row reads the whole table",
      fix: "`CREATE INDEX` on the referencing columns in a step `sql`",
      source: "https://www.sqlite.org/foreignkeys.html#fk_indexes"),
    AuditRule(
      .pathInDatabase, .warning, "a path to the container in rows",
      why:
        "the container's path has an ID that changes at each installation and restore: the stored path is then wrong",
      fix: "store paths relative to the container: an `UPDATE` in a step `sql`",
      source: "https://developer.apple.com/library/archive/technotes/tn2406/_index.html"),
    AuditRule(
      .freePages, .note, "a database with many free pages",
      why: "they take space on the device and in backups until something is written to them",
      fix: "run `VACUUM` in the app, outside of a migration, or set `auto_vacuum`",
      source: "https://www.sqlite.org/lang_vacuum.html"),
    AuditRule(
      .smallPages, .note, "a large database with small pages",
      why: "flash storage reads and writes at least 4,096 bytes, the default page size since SQLite 3.12",
      fix: "set `PRAGMA page_size = 4096` and run `VACUUM` in the app, outside of WAL mode",
      source: "https://www.sqlite.org/pgszchng2016.html"),
    AuditRule(
      .walLarge, .warning, "a write-ahead log that was left large",
      why:
        "a checkpoint could not finish, often because a connection holds a read transaction; reads become slower, and each "
        + "backup contains it",
      fix: "end read transactions, and run `PRAGMA wal_checkpoint(TRUNCATE)` in the app",
      source: "https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files"),
  ]
}

/// Examines a database, in a captured copy.
struct DatabaseRules {
  static let largeLog: UInt64 = 16 << 20
  static let freeSize = 1_000_000
  static let largeDatabase = 10_000_000
  /// Up to this size all indexes are compared with their tables.
  static let fullCheckSize: UInt64 = 256 << 20
  static let violationLimit = 1000

  private let path: ContainerPath
  private let unit: DatabaseUnit
  private let status: FileStatus

  init(_ unit: DatabaseUnit, _ status: FileStatus) {
    (path, self.unit, self.status) = (unit.main, unit, status)
  }

  func check(_ context: inout AuditContext) {
    let staged = context.staged
    checkLog(&context)
    do {
      // The copy is removed at once, so that a container with many databases needs the space of one.
      defer { staged.releaseDatabase(at: path) }
      try staged.readDatabase(at: path) { db in try read(db, &context) }
    } catch {
      context.skip(path, error)
    }
  }

  private func checkLog(_ context: inout AuditContext) {
    let log = path.withSuffix("-wal")
    guard unit.sidecars.contains(log), let size = (try? context.staged.live.status(log))??.size,
      size >= Self.largeLog, size >= status.size / 4
    else { return }
    context.findings.add(
      .walLarge, path.description, "the log has \(size >> 20) MiB, the database \(status.size >> 20) MiB",
      unit: "log")
  }

  private func read(_ db: Database, _ context: inout AuditContext) throws {
    try checkPages(db, &context)
    guard try isIntact(db, &context) else { return }
    for table in try tables(db) {
      // A collation or function that only the app defines, or a foreign key to columns that are not unique.
      trying(table, &context) { try checkForeignKeys(of: table, db, &$0) }
      trying(table, &context) { try TableScan(path, table, db).run(&$0) }
    }
  }

  private func trying(
    _ table: String, _ context: inout AuditContext, _ body: (inout AuditContext) throws -> Void
  ) {
    do {
      try body(&context)
    } catch {
      let reason = (error as? DatabaseError)?.plainMessage ?? DrydockError.reason(of: error)
      context.notChecked.append("\(path): the table \(table): \(reason)")
    }
  }

  /// The tables with rows of the app: no virtual tables, whose content is in others, and none of SQLite.
  private func tables(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        + "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
  }

  // MARK: Pages

  private func checkPages(_ db: Database, _ context: inout AuditContext) throws {
    func number(_ pragma: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? 0 }
    let (size, count, free) = (
      try number("page_size"), try number("page_count"), try number("freelist_count")
    )
    if free * size >= Self.freeSize, free * 4 >= count {
      context.findings.add(
        .freePages, path.description, "\(free) of \(count) pages are free: \(free * size / 1_000_000) MB",
        unit: "database")
    }
    if size < 4096, count * size >= Self.largeDatabase {
      context.findings.add(
        .smallPages, path.description, "pages of \(size) bytes, \(count * size / 1_000_000) MB",
        unit: "database")
    }
  }

  private func isIntact(_ db: Database, _ context: inout AuditContext) throws -> Bool {
    let isSmall = status.size <= Self.fullCheckSize
    let problems: [String]
    do {
      problems = try String.fetchAll(db, sql: "PRAGMA \(isSmall ? "integrity_check" : "quick_check")(3)")
      if !isSmall {
        context.limits.append(
          "\(path): checked with quick_check, which does not compare indexes with their tables")
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      problems = [error.plainMessage]
    } catch let error as DatabaseError {
      context.notChecked.append("\(path): integrity_check: \(error.plainMessage)")
      return true
    }
    if problems == ["ok"] { return true }
    let lines = problems.map { $0.split(separator: "\n").last.map(String.init) ?? $0 }
    context.findings.add(
      .databaseDamaged, path.description, "integrity_check fails", count: lines.count, unit: "problem",
      examples: lines)
    return false
  }

  // MARK: Foreign keys

  private func checkForeignKeys(
    of table: String, _ db: Database, _ context: inout AuditContext
  ) throws {
    let parts = try Row.fetchAll(
      db, sql: "SELECT id, \"table\", \"from\" FROM pragma_foreign_key_list(?) ORDER BY id, seq",
      arguments: [table])
    guard !parts.isEmpty else { return }
    var keys: [Int: (parent: String, columns: [String])] = [:]
    for part in parts {
      keys[part["id"], default: (part["table"], [])].columns.append(part["from"])
    }
    let indexes = try indexes(of: table, db)
    for key in keys.sorted(by: { $0.key < $1.key }).map(\.value) {
      let wanted = Set(key.columns.map { $0.lowercased() })
      let isIndexed = indexes.contains { Set($0.prefix(wanted.count)) == wanted }
      if !isIndexed {
        context.findings.add(
          .foreignKeyWithoutIndex, path.description, item: "\(table).\(key.columns.joined(separator: ", "))",
          "it refers to \(key.parent)", unit: "foreign key")
      }
    }
    try countViolations(of: table, keys, db, &context)
  }

  /// The columns of each index in lower case; of the rowid's, its column.
  private func indexes(of table: String, _ db: Database) throws -> [[String]] {
    let names = try String.fetchAll(db, sql: "SELECT name FROM pragma_index_list(?)", arguments: [table])
    var indexes = try names.map { name in
      try Row.fetchAll(
        db, sql: "SELECT name FROM pragma_index_info(?) ORDER BY seqno", arguments: [name]
      ).map { ($0["name"] as String? ?? "").lowercased() }
    }
    let primary = try String.fetchAll(
      db, sql: "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", arguments: [table])
    indexes.append(primary.map { $0.lowercased() })
    return indexes
  }

  private func countViolations(
    of table: String, _ keys: [Int: (parent: String, columns: [String])], _ db: Database,
    _ context: inout AuditContext
  ) throws {
    let rows = try Row.fetchCursor(
      db, sql: "SELECT rowid, fkid, parent FROM pragma_foreign_key_check(?) LIMIT ?",
      arguments: [table, Self.violationLimit])
    var count = 0
    while let row = try rows.next() {
      count += 1
      let columns = keys[row["fkid"] ?? -1]?.columns.joined(separator: ", ") ?? "?"
      let parent: String = row["parent"] ?? ""
      context.findings.add(
        .foreignKeyViolated, path.description, item: "\(table).\(columns)", "no such row in \(parent)",
        unit: "row", example: (row["rowid"] as Int64?).map { "row \($0)" })
    }
    if count == Self.violationLimit {
      context.limits.append(
        "\(path): only the first \(count) violations of foreign keys of \(table) were counted")
    }
  }
}
