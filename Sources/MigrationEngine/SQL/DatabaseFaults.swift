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
  private let schema: SchemaShape
  /// All tables, in lower case.
  private var tables: Set<String> { Set(schema.objects.filter(\.isTable).map { $0.name.lowercased() }) }

  /// - Parameter ofSchema: whether views, triggers and virtual tables are tried, too.
  init(_ db: Database, _ schema: SchemaShape, ofSchema: Bool) throws {
    self.schema = schema
    try addForeignKeys(db)
    if ofSchema { try addUnusable(db) }
  }

  private mutating func addUnusable(_ db: Database) throws {
    for table in schema.objects where table.isVirtual {
      // A module opens its tables when it reads its first row.
      if let reason = try Self.reason({
        _ = try Row.fetchOne(db, sql: "SELECT * FROM \(quotedIdentifier(table.name)) LIMIT 1")
      }) {
        parts["virtual table `\(table.name)`"] = reason
      }
    }
    for (part, result) in try SchemaTrial.results(for: schema.objects) {
      if let error = result.error { parts[part] = error } else { ofTheApp[part] = result.unknown }
    }
  }

  private mutating func addForeignKeys(_ db: Database) throws {
    let children = schema.objects.filter { !$0.parents.isEmpty }
    if children.isEmpty { return }
    let tables = tables
    for child in children {
      for parent in child.parents where !tables.contains(parent.lowercased()) {
        parts["foreign key of `\(child.name)`"] = "no such table: \(parent)"
      }
    }
    do { try addViolations(db) } catch let error as DatabaseError where error.isAboutSQL {
      // One invalid foreign key ends the check of all: table by table.
      violations = [:]
      for child in children {
        do { try addViolations(of: child.name, db) } catch let error as DatabaseError where error.isAboutSQL {
          parts["foreign key of `\(child.name)`"] = error.message
        }
      }
    }
  }

  /// - Parameter child: the only table to check; all when nil.
  private mutating func addViolations(of child: String? = nil, _ db: Database) throws {
    var keys: [String: [Int: String]] = [:]
    let argument = child.map { "(\(quotedIdentifier($0)))" } ?? ""
    // SQLite compiles the check of all tables, and refuses it, before it returns a row.
    let rows = try Row.fetchCursor(db, sql: "PRAGMA main.foreign_key_check\(argument)")
    while let row = try rows.next() {
      let (child, parent): (String, String) = (row["table"], row["parent"] ?? "")
      if let rowid: Int64 = row["rowid"] {
        add(child, parent, rowid)
      } else {
        keys[child, default: [:]][row["fkid"]] = parent
      }
    }
    if keys.isEmpty { return }
    let tables = tables
    for (child, keys) in keys {
      for (key, parent) in keys {
        let existing = tables.contains(parent.lowercased()) ? parent : nil
        for row in try Self.orphans(child, key, parent: existing, db) { add(child, parent, row) }
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
        "after these statements the database has parts that cannot be used: "
          + broken.map { "\($0.key): \($0.value)" }.joined(separator: "; ")
          + "; change or drop them in the same step")
    }
    let (old, now) = (before.renamed(for: self), renamed(for: before))
    let added = now.filter { $0.value > old[$0.key] ?? 0 }
    var notes: [String] = []
    if !added.isEmpty {
      let more = added.reduce(0) { $0 + $1.value - (old[$1.key] ?? 0) }
      let name = renaming(for: before)
      let parents = Set(violations.keys.filter { added[name($0)] != nil }.map(\.parent))
      let left =
        "references to missing rows of \(parents.sorted().joined(separator: ", ")) (\(more) more than before)"
      guard allowsOrphans else {
        throw StepFailure(
          "these statements leave \(left): change both sides, or delete the rows that refer to them")
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
    if violations.isEmpty { return [:] }
    let name = renaming(for: other)
    return Dictionary(violations.map { (name($0.key), $0.value) }, uniquingKeysWith: +)
  }

  private func renaming(for other: DatabaseFaults) -> (Violation) -> Violation {
    let changed = tables.symmetricDifference(other.tables)
    return { violation in
      var violation = violation
      if changed.contains(violation.child) { violation.child = "" }
      if changed.contains(violation.parent) { violation.parent = "" }
      return violation
    }
  }
}

/// A database before a change, for comparing it with what the change leaves.
package struct DatabaseState {
  private let faults: DatabaseFaults
  private let schema: SchemaShape
  /// The number of the schema, and how many rows the connection had changed.
  private let version: (schema: Int, rows: Int)
  /// Whether views, triggers and virtual tables were tried.
  private let hasTriedSchema: Bool
  private var script: SQLScript?

  /// - Parameters:
  ///   - script: the statements of the change; nil when they are not known.
  ///   - last: what the last change on this connection left, if no other connection can have changed anything since.
  init(_ db: Database, changing script: SQLScript?, after last: DatabaseState? = nil) throws {
    // A script of many statements is not read twice.
    let changesSchema =
      script.map { $0.bytes.count > 1 << 20 || $0.statements().contains { !$0.isAboutRows } } ?? true
    let version = try db.version
    if let last, last.version == version, last.hasTriedSchema || !changesSchema {
      self = last
    } else {
      try self.init(db, SchemaShape(db), version, triesSchema: changesSchema)
    }
    self.script = script
  }

  private init(
    _ db: Database, _ schema: SchemaShape, _ version: (schema: Int, rows: Int), triesSchema: Bool
  ) throws {
    (self.schema, self.version, hasTriedSchema) = (schema, version, triesSchema)
    faults = try DatabaseFaults(db, schema, ofSchema: triesSchema)
  }

  /// Whether a view, a trigger or a default asks for something that a new connection has not.
  var usesConnection: Bool { schema.objects.contains(where: \.usesConnection) }

  /// Compares the database with what it is after the change.
  ///
  /// - Returns: notes on old faults, and on what went without being named; and the database as it is now.
  /// - Throws: ``StepFailure`` when something is broken that was not before.
  func compared(
    with db: Database, allowsOrphans: Bool = false
  ) throws -> (notes: [String], now: DatabaseState) {
    let version = try db.version
    let isSame = !hasTriedSchema || version.schema == self.version.schema
    let shape = isSame ? schema : try SchemaShape(db, isTrusted: script != nil)
    let now = try DatabaseState(db, shape, version, triesSchema: !isSame)
    let notes = try now.faults.notes(since: faults, allowsOrphans: allowsOrphans)
    if isSame { return (notes, now) }
    let lost = now.schema.losses(since: schema) { script?.droppedNames ?? [] }
    return (
      notes + lost.map { "\(Self.dropped)\($0); if that is not meant, create it again in the same step" }, now
    )
  }

  func notes(after db: Database, allowsOrphans: Bool = false) throws -> [String] {
    try compared(with: db, allowsOrphans: allowsOrphans).notes
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

  /// The number of the schema, and how many rows this connection has changed.
  fileprivate var version: (schema: Int, rows: Int) {
    get throws { (try schemaVersion, totalChangesCount) }
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
