import AppContainer
import ContainerDiff
import DrydockErrors
import Formats
import GRDB

/// A database as SQL: its schema by name, its rows by key. The same content gives the same text.
struct GoldenSQL {
  /// The path of a closed database file.
  let path: String
  /// What stands in the place of volatile values.
  let neutral: NeutralValues

  /// Statements, one in each line but for those that have lines of their own.
  func lines() throws -> [String] {
    do {
      let queue = try DatabaseQueue.alone(with: path) {
        $0.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema=OFF") }
      }
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        var writer = try GoldenSQLWriter(db, neutral)
        return try writer.lines()
      }
    } catch let error as DatabaseError {
      throw DrydockError.database("cannot write the database down", path, error)
    }
  }
}

/// Writes one open database down.
private struct GoldenSQLWriter {
  private let db: Database
  private let encoding: TextEncoding
  private let objects: [SchemaObject]
  private let neutral: NeutralColumns
  /// The rows of each table as statements; empty while those of a table that it refers to are made.
  private var inserts: [ExactText: [String]] = [:]
  private var isNeutral = false

  init(_ db: Database, _ values: NeutralValues) throws {
    self.db = db
    encoding = TextEncoding(rawValue: try String.fetchOne(db, sql: "PRAGMA encoding") ?? "") ?? .utf8
    objects = try SchemaObject.all(in: db)
    neutral = try NeutralColumns(
      values, tables: objects.filter { $0.kind == "table" }.map(\.name), encoding, db)
  }

  mutating func lines() throws -> [String] {
    var lines = encoding == .utf8 ? [] : ["PRAGMA encoding = '\(encoding.rawValue)';"]
    var body = ["BEGIN;"]
    for name in ["application_id", "user_version"] {
      let value = try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
      if value != 0 { body.append("PRAGMA \(name) = \(value);") }
    }
    let tables = objects.filter { $0.kind == "table" }
    for table in tables { try read(table) }
    for table in tables { body += [table.sql + ";"] + (inserts[ExactText(table.name)] ?? []) }
    body += try sequence()
    // Behind the rows: indexes are made faster then, and triggers do not see them.
    for kind in ["index", "view", "trigger"] {
      body += objects.filter { $0.kind == kind }.map { $0.sql + ";" }
    }
    // A neutral value need not be one that the app would take.
    let hasChecks = tables.contains { $0.sql.firstMatch(of: /\bCHECK\b/.ignoresCase()) != nil }
    if isNeutral, hasChecks { lines.append("PRAGMA ignore_check_constraints = ON;") }
    return lines + body + ["COMMIT;"]
  }

  private mutating func read(_ object: SchemaObject) throws {
    guard inserts[ExactText(object.name)] == nil else { return }
    inserts[ExactText(object.name)] = []
    if object.isDerived { return }
    var table = try GoldenTable(object.name, db)
    let mayChange = neutral.mayChange(table)
    if mayChange {
      // Their values are numbered in the order of their own rows.
      let parents = neutral.parents(of: table)
      for parent in objects where parent.kind == "table" && parents.contains(parent.name.lowercased()) {
        try read(parent)
      }
    }
    let isWithoutRowid = neutral.hasVolatileRowid(table)
    if isWithoutRowid { table = table.withoutRowid() }
    do {
      inserts[ExactText(object.name)] = mayChange || isWithoutRowid ? try replaced(table) : try plain(table)
    } catch let error as DatabaseError where object.isVirtual {
      inserts[ExactText(object.name)] = [
        "-- the rows of \(quoted(object.name)) cannot be read: \(error.plainMessage)"
      ]
    }
  }

  private func plain(_ table: GoldenTable) throws -> [String] {
    var lines: [String] = []
    try table.rows(db) { lines.append(table.insert($0, encoding)) }
    return lines
  }

  private mutating func replaced(_ table: GoldenTable) throws -> [String] {
    var rows: [[GoldenValue]] = []
    try table.rows(db) { rows.append($0) }
    let replaced = neutral.replaced(rows, of: table, marks: try marks(of: rows, in: table))
    if replaced.isChanged { isNeutral = true }
    return replaced.rows.map { table.insert($0, encoding) }
  }

  /// What tells rows apart that are alike but for volatile values: the rows that refer to each.
  private func marks(of rows: [[GoldenValue]], in table: GoldenTable) throws -> [String] {
    var marks = Array(repeating: "", count: rows.count)
    for (name, column, to) in neutral.referring(to: table) {
      guard let object = objects.first(where: { $0.kind == "table" && $0.name.lowercased() == name }) else {
        continue
      }
      let child = try GoldenTable(object.name, db).withoutRowid()
      guard let from = child.columns.firstIndex(where: { $0.lowercased() == column }) else { continue }
      var found: [GoldenValue: [String]] = [:]
      try child.rows(db) { found[$0[from], default: []].append(neutral.mark(of: $0, in: child)) }
      for index in rows.indices { marks[index] += (found[rows[index][to]] ?? []).sorted().joined() + ";" }
    }
    return marks
  }

  /// The counters of `AUTOINCREMENT`; that of a table with volatile keys is the number of these.
  private func sequence() throws -> [String] {
    guard
      try Bool.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'") == true
    else { return [] }
    let table = try GoldenTable("sqlite_sequence", db)
    var lines = ["DELETE FROM sqlite_sequence;"]
    try table.rows(db) { row in
      var row = row
      if let name = row[0].text(encoding),
        let key = try String.fetchOne(
          db, sql: "SELECT name FROM pragma_table_info(?) WHERE pk = 1", arguments: [name]),
        case let count = neutral.count(name, key), count > 0
      {
        row[1] = GoldenValue(.number, "\(count)")
      }
      lines.append(table.insert(row, encoding))
    }
    return lines
  }
}

extension SchemaObject {
  /// Whether its rows are made from another table's, and cannot be written.
  fileprivate var isDerived: Bool {
    isVirtual
      && sql.firstMatch(of: /USING\s+"?(fts5vocab|fts4aux|fts3tokenize|dbstat)\b/.ignoresCase()) != nil
  }
}
