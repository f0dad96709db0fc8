import AppStores
import DrydockErrors
import Formats
import GRDB

/// What is wrong in a database: parts of its schema that cannot be used, and rows that refer to missing ones. A migration must not
/// add to it; what was wrong before is not its fault.
struct DatabaseFaults {
  /// A row whose parent is missing. Names are in lower case.
  private struct Violation: Hashable {
    var child: String, parent: String
    /// Its rowid, or a hash of its key in a table without rowids.
    var row: Int64?
  }

  /// A part of the schema that cannot be used, by what it is, such as ``view `active` ``.
  private var parts: [String: String] = [:]
  /// Parts with a function or collation that only the app has, and its absence in SQLite's words.
  private var ofTheApp: [String: String] = [:]
  private var violations: [Violation: Int] = [:]
  /// All tables, in lower case.
  private var tables: Set<String> = []

  /// - Parameter ofSchema: whether views, triggers and virtual tables are tried, too.
  init(_ db: Database, ofSchema: Bool) throws {
    let names = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = Set(names.map { $0.lowercased() })
    try addForeignKeys(db)
    if ofSchema { try addUnusable(db) }
  }

  /// Tries each virtual table; and each view and trigger by itself, in an empty copy of the schema.
  private mutating func addUnusable(_ db: Database) throws {
    let objects = try Row.fetchAll(
      db, sql: "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    for object in objects where object["type"] == "table" && SQLStatement(object["sql"]).createsVirtualTable {
      let name: String = object["name"]
      // A module opens its tables when it reads its first row.
      if let reason = try Self.reason({
        _ = try Row.fetchOne(db, sql: "SELECT * FROM \(quotedIdentifier(name)) LIMIT 1")
      }) {
        parts["virtual table `\(name)`"] = reason
      }
    }
    try DatabaseQueue().writeWithoutTransaction { copy in
      var schema = SchemaCopy(copy)
      for object in objects where ["table", "view"].contains(object["type"] as String) {
        _ = schema.run(object["sql"])
      }
      for object in objects where object["type"] == "view" {
        note(
          "view `\(object["name"] as String)`",
          schema.run("SELECT * FROM \(quotedIdentifier(object["name"]))"))
      }
      for object in objects where object["type"] == "trigger" {
        let (name, table): (String, String) = (object["name"], object["tbl_name"])
        guard parts["view `\(table)`"] == nil, schema.run(object["sql"]).error == nil else { continue }
        let verb = SQLStatement(object["sql"]).triggeringVerb ?? ""
        try note(
          "trigger `\(name)` (\(verb) on `\(table)`)", schema.run(Self.statement(verb, on: table, copy)))
        _ = schema.run("DROP TRIGGER \(quotedIdentifier(name))")
      }
    }
  }

  /// A statement that runs all triggers of a table or view for a verb.
  private static func statement(_ verb: String, on table: String, _ db: Database) throws -> String {
    let name = quotedIdentifier(table)
    switch verb {
    case "INSERT": return "INSERT INTO \(name) DEFAULT VALUES"
    case "DELETE": return "DELETE FROM \(name)"
    default:
      let columns = try String.fetchAll(
        db, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", arguments: [table])
      let values = columns.map(quotedIdentifier).map { "\($0) = \($0)" }
      return "UPDATE \(name) SET \(values.joined(separator: ", "))"
    }
  }

  private mutating func note(_ part: String, _ result: SchemaCopy.Result) {
    if let error = result.error {
      parts[part] = error
    } else if let unknown = result.unknown {
      ofTheApp[part] = unknown
    }
  }

  private mutating func addForeignKeys(_ db: Database) throws {
    // Table by table: one invalid foreign key would end the check of all.
    let sql = """
      SELECT DISTINCT child.name, key."table" FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS key
      WHERE child.type = 'table'
      """
    let keys = Dictionary(grouping: try Row.fetchAll(db, sql: sql)) { $0[0] as String }
    for (child, parents) in keys {
      for parent in parents.map({ $0[1] as String }) where !tables.contains(parent.lowercased()) {
        parts["foreign key of `\(child)`"] = "no such table: \(parent)"
      }
      do { try addViolations(of: child, db) } catch let error as DatabaseError where error.isAboutSQL {
        parts["foreign key of `\(child)`"] = error.message
      }
    }
  }

  private mutating func addViolations(of child: String, _ db: Database) throws {
    var keys: [Int: String] = [:]
    let rows = try Row.fetchCursor(db, sql: "PRAGMA foreign_key_check(\(quotedIdentifier(child)))")
    while let row = try rows.next() {
      let parent: String = row["parent"] ?? ""
      if let rowid: Int64 = row["rowid"] { add(child, parent, rowid) } else { keys[row["fkid"]] = parent }
    }
    for (key, parent) in keys {
      for row in try Self.orphans(child, key, parent: tables.contains(parent.lowercased()) ? parent : nil, db)
      {
        add(child, parent, row)
      }
    }
  }

  private mutating func add(_ child: String, _ parent: String, _ row: Int64) {
    let violation = Violation(child: child.lowercased(), parent: parent.lowercased(), row: row)
    violations[violation, default: 0] += 1
  }

  /// Hashes of the primary keys of rows whose parent is missing, in a table without rowids: SQLite does not name them.
  private static func orphans(_ child: String, _ key: Int, parent: String?, _ db: Database) throws -> [Int64]
  {
    let columns = try Row.fetchAll(
      db, sql: "SELECT \"from\", \"to\" FROM pragma_foreign_key_list(?) WHERE id = ? ORDER BY seq",
      arguments: [child, key])
    func primaryKey(of table: String?) throws -> [String] {
      let sql = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
      return try String.fetchAll(db, sql: sql, arguments: [table])
    }
    let (primary, parents) = (try primaryKey(of: child), try primaryKey(of: parent))
    var conditions = columns.map { "child.\(quotedIdentifier($0[0])) IS NOT NULL" }
    if let parent {
      let equal = columns.enumerated().map { index, column in
        let to = (column[1] as String?) ?? (index < parents.count ? parents[index] : "rowid")
        return "parent.\(quotedIdentifier(to)) = child.\(quotedIdentifier(column[0]))"
      }
      let match = equal.joined(separator: " AND ")
      conditions.append("NOT EXISTS (SELECT 1 FROM \(quotedIdentifier(parent)) AS parent WHERE \(match))")
    }
    let values = primary.map { "child.\(quotedIdentifier($0))" }.joined(separator: ", ")
    let sql =
      "SELECT \(values) FROM \(quotedIdentifier(child)) AS child WHERE \(conditions.joined(separator: " AND "))"
    return try Row.fetchAll(db, sql: sql).map { row in
      var hasher = Hasher()
      for value in row.databaseValues { hasher.combine(value) }
      return Int64(hasher.finalize())
    }
  }

  private static func reason(_ body: () throws -> Void) throws -> String? {
    // A damaged index for full text is reported as a corrupt database.
    do { try body() } catch let error as DatabaseError where !error.isAboutTheDisk {
      return error.message ?? "SQLite error"
    }
    return nil
  }
}

// MARK: Comparison
extension DatabaseFaults {
  /// Words that begin SQLite's message about a module or tokenizer that only the app has.
  private static let modules = ["no such module", "no such tokenizer", "unknown tokenizer"]

  /// Compares the database after a change with that before it.
  ///
  /// - Parameter allowsOrphans: whether rows may be left that refer to missing ones, with a note: other tools do not check them.
  /// - Returns: notes on what was wrong before, and on what only the app can use.
  /// - Throws: ``StepFailure`` when the change added a fault.
  func notes(since before: DatabaseFaults, allowsOrphans: Bool = false) throws -> [String] {
    let isOfTheApp = { (reason: String) in Self.modules.contains(where: reason.hasPrefix) }
    let new = parts.filter { before.parts[$0.key] == nil }.sorted { $0.key < $1.key }
    let broken = new.filter { !isOfTheApp($0.value) }
    if !broken.isEmpty {
      throw StepFailure(
        message: "after these statements the database has parts that cannot be used: "
          + broken.map { "\($0.key): \($0.value)" }.joined(separator: "; ")
          + "; change or drop them in the same step")
    }
    let (old, now) = (before.renamed(for: self), renamed(for: before))
    let added = now.filter { $0.value > old[$0.key] ?? 0 }
    var notes: [String] = []
    if !added.isEmpty {
      let more = added.reduce(0) { $0 + $1.value - (old[$1.key] ?? 0) }
      let parents = Set(violations.keys.filter { added[renamed($0, for: before)] != nil }.map(\.parent))
      let left =
        "references to missing rows of \(parents.sorted().joined(separator: ", ")) (\(more) more than before)"
      guard allowsOrphans else {
        throw StepFailure(
          message: "these statements leave \(left): change both sides, or delete the rows that refer to them")
      }
      notes.append("these statements leave \(left), since foreign keys are off")
    }
    let rows = violations.values.reduce(0, +)
    let kept = parts.filter { !isOfTheApp($0.value) }.sorted { $0.key < $1.key }
    let isOld = rows > 0 && added.isEmpty
    return notes + (isOld ? ["references to missing rows, as before the migration: \(rows)"] : [])
      + kept.map { "cannot be used, as before the migration: \($0.key): \($0.value)" }
      + (new + ofTheApp.filter { before.ofTheApp[$0.key] == nil }.sorted { $0.key < $1.key })
      .map { "cannot be checked: \($0.key): \($0.value)" }
  }

  /// The violations with the same name for all tables that only one of two states has: one of them may be the other's new name.
  private func renamed(for other: DatabaseFaults) -> [Violation: Int] {
    Dictionary(violations.map { (renamed($0.key, for: other), $0.value) }, uniquingKeysWith: +)
  }

  private func renamed(_ violation: Violation, for other: DatabaseFaults) -> Violation {
    var violation = violation
    if tables.contains(violation.child) != other.tables.contains(violation.child) { violation.child = "" }
    if tables.contains(violation.parent) != other.tables.contains(violation.parent) { violation.parent = "" }
    return violation
  }
}

/// A database before a change, for comparing it with what the change leaves.
package struct DatabaseState {
  private let faults: DatabaseFaults
  /// The schema and its number; nil when the statements change only rows.
  private let schema: (shape: SchemaShape, version: Int)?
  private let script: SQLScript?

  /// - Parameter script: the statements of the change; nil when they are not known.
  init(_ db: Database, changing script: SQLScript?) throws {
    self.script = script
    // A script of many statements is not read twice.
    let changesSchema =
      script.map { $0.bytes.count > 1 << 20 || $0.statements().contains { !$0.isAboutRows } } ?? true
    faults = try DatabaseFaults(db, ofSchema: changesSchema)
    schema = changesSchema ? (try SchemaShape(db), try db.schemaVersion) : nil
  }

  /// Compares the database with what it is after the change.
  ///
  /// - Returns: notes on old faults, and on what went without being named.
  /// - Throws: ``StepFailure`` when something is broken that was not before.
  func notes(after db: Database, allowsOrphans: Bool = false) throws -> [String] {
    let isSame = try schema.map { try db.schemaVersion == $0.version } ?? true
    let notes = try DatabaseFaults(db, ofSchema: !isSame).notes(since: faults, allowsOrphans: allowsOrphans)
    guard !isSame, let schema else { return notes }
    let lost = try SchemaShape(db).losses(since: schema.shape, dropped: script?.droppedNames ?? [])
    return notes + lost.map { "\(Self.dropped)\($0); if that is not meant, create it again in the same step" }
  }

  private static let dropped = "dropped without being named: "

  /// Whether a note is about what went without being named.
  package static func isAboutDropped(_ note: String) -> Bool { note.contains(dropped) }
}

extension DatabaseError {
  fileprivate var isAboutSQL: Bool { resultCode == .SQLITE_ERROR }
}

extension Database {
  /// SQLite's number of the schema, which each change raises.
  var schemaVersion: Int {
    get throws { try Int.fetchOne(self, sql: "PRAGMA schema_version") ?? 0 }
  }
}

extension SQLScript {
  /// The indexes and triggers that its statements drop, in lower case.
  fileprivate var droppedNames: Set<String> {
    Set(
      statements().compactMap { statement in
        guard statement.verb == "DROP" else { return nil }
        let tokens = SQLToken.all(in: statement.text)
        guard tokens.count > 2, ["INDEX", "TRIGGER"].contains(where: tokens[1].isWord) else { return nil }
        return tokens.last { !$0.isSign(";") }?.text.lowercased()
      })
  }
}
