import AppContainer
import ContainerDiff
import DrydockErrors
import Formats
import Foundation
import GRDB

/// A database as SQL: its schema by name, its rows by key. The same content gives the same text.
struct GoldenSQL {
  let path: String
  let normalizer: ValueNormalizer

  /// Statements, one for each line unless a statement has several.
  func lines() throws -> [String] {
    do {
      let queue = try DatabaseQueue.alone(with: path) {
        $0.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema=OFF") }
      }
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        var writer = try GoldenSQLWriter(db, normalizer)
        return try writer.lines()
      }
    } catch let error as DatabaseError {
      throw DrydockError.database("cannot write the database down", path, error)
    }
  }
}

/// Writes one open database.
private struct GoldenSQLWriter {
  private let db: Database
  private let encoding: TextEncoding
  private let objects: [SchemaObject]
  private let normalizer: ColumnNormalizer
  /// The rows of each table as statements; empty while those of a table that it refers to are made.
  private var inserts: [ExactText: [String]] = [:]
  private var isNormalized = false

  init(_ db: Database, _ values: ValueNormalizer) throws {
    self.db = db
    encoding = TextEncoding(rawValue: try String.fetchOne(db, sql: "PRAGMA encoding") ?? "") ?? .utf8
    objects = try SchemaObject.all(in: db)
    normalizer = try ColumnNormalizer(
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
    // A normalized value need not be one that the app would take.
    let hasChecks = tables.contains { $0.sql.firstMatch(of: /\bCHECK\b/.ignoresCase()) != nil }
    if isNormalized, hasChecks { lines.append("PRAGMA ignore_check_constraints = ON;") }
    return lines + body + ["COMMIT;"]
  }

  private mutating func read(_ object: SchemaObject) throws {
    guard inserts[ExactText(object.name)] == nil else { return }
    inserts[ExactText(object.name)] = []
    if object.isDerived { return }
    var table = try GoldenTable(object.name, db)
    let mayChange = normalizer.mayChange(table)
    if mayChange {
      // Values are numbered in the order of the rows that they belong to.
      let parents = normalizer.parents(of: table)
      for parent in objects where parent.kind == "table" && parents.contains(parent.name.lowercased()) {
        try read(parent)
      }
    }
    let isWithoutRowid = normalizer.hasVolatileRowid(table)
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
    let replaced = normalizer.replaced(rows, of: table, marks: try marks(of: rows, in: table))
    if replaced.isChanged { isNormalized = true }
    return replaced.rows.map { table.insert($0, encoding) }
  }

  /// Distinguishes rows that are equal but for volatile values, by the rows that refer to each.
  private func marks(of rows: [[GoldenValue]], in table: GoldenTable) throws -> [String] {
    var marks = Array(repeating: "", count: rows.count)
    for (name, column, to) in normalizer.referring(to: table) {
      guard let object = objects.first(where: { $0.kind == "table" && $0.name.lowercased() == name }) else {
        continue
      }
      let child = try GoldenTable(object.name, db).withoutRowid()
      guard let from = child.columns.firstIndex(where: { $0.lowercased() == column }) else { continue }
      var found: [GoldenValue: [String]] = [:]
      try child.rows(db) { found[$0[from], default: []].append(normalizer.mark(of: $0, in: child)) }
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
        case let count = normalizer.count(name, key), count > 0
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

/// A table as a golden writes it: the columns of each row, and the order of the rows.
struct GoldenTable {
  let name: String
  /// What is written of a row, in this order; the rowid first where nothing else identifies a row.
  private(set) var columns: [String]
  /// What the rows are sorted by: indices of columns.
  private(set) var order: [Int]
  /// Whether the first column is the rowid, and not one of the table's own.
  private(set) var hasRowid: Bool

  init(_ table: String, _ db: Database) throws {
    name = table
    let info = try Row.fetchAll(
      db, sql: "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", arguments: [table])
    let own: [String] = info.map { $0["name"] }
    let key: [String] = info.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      .map { $0["name"] }
    let keepsRowid =
      try Bool.fetchOne(db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [table])
      ?? true
    // As in a comparison: the key, unless there is none or it is null in some row.
    let isNull = key.map { "\(quoted($0)) IS NULL" }.joined(separator: " OR ")
    let hasNull =
      try keepsRowid && !key.isEmpty
      && Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(quoted(table)) WHERE \(isNull))") == true
    let taken = Set(own.map { $0.lowercased() })
    let rowid =
      keepsRowid && (key.isEmpty || hasNull) && table != "sqlite_sequence"
      ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    columns = (rowid.map { [$0] } ?? []) + own
    hasRowid = rowid != nil
    order = rowid == nil && !key.isEmpty ? key.compactMap(own.firstIndex) : Array(columns.indices)
  }

  /// The same table without its rowids, where they are others in each run.
  func withoutRowid() -> GoldenTable {
    guard hasRowid else { return self }
    var table = self
    table.columns.removeFirst()
    (table.order, table.hasRowid) = (Array(table.columns.indices), false)
    return table
  }

  /// Visits the rows in their order.
  ///
  /// - Throws: `DatabaseError`, also for a virtual table whose module is not here.
  func rows(_ db: Database, _ body: ([GoldenValue]) throws -> Void) throws {
    let list = columns.flatMap { GoldenValue.selection(quoted($0)) }
    let order = order.map { "\(quoted(columns[$0])) COLLATE BINARY" }
    let cursor = try Row.fetchCursor(
      db,
      sql:
        "SELECT \(list.joined(separator: ", ")) FROM \(quoted(name)) ORDER BY \(order.joined(separator: ", "))"
    )
    while let row = try cursor.next() {
      try body(columns.indices.map { GoldenValue(row, $0 * 2) })
    }
  }

  func insert(_ row: [GoldenValue], _ encoding: TextEncoding) -> String {
    // The rowid is not a column of the table, and is not quoted as one.
    let names = columns.indices.map { hasRowid && $0 == 0 ? columns[0] : quoted(columns[$0]) }
    let values = row.map { $0.literal(encoding) }
    return
      "INSERT INTO \(quoted(name)) (\(names.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")));"
  }
}

/// A value of a row: its type in the database, and its bytes.
struct GoldenValue: Hashable {
  /// The types in SQLite's order.
  enum Kind: Int {
    case null, number, text, blob
  }

  let kind: Kind
  /// A text's own bytes in the database's encoding; of all else the literal as SQLite quotes it.
  let bytes: [UInt8]

  private init(_ kind: Kind, _ bytes: [UInt8]) { (self.kind, self.bytes) = (kind, bytes) }

  init(_ kind: Kind, _ literal: String) { self.init(kind, Array(literal.utf8)) }

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE WHEN typeof(\(column)) = 'text' THEN CAST(\(column) AS BLOB) ELSE quote(\(column)) END",
    ]
  }

  init(_ row: Row, _ at: Int) {
    switch row[at] as String {
    case "text": self.init(.text, Array(row[at + 1] as Data))
    case "null": self.init(.null, "NULL")
    case "blob": self.init(.blob, row[at + 1])
    default: self.init(.number, row[at + 1])
    }
  }

  init(text: String, _ encoding: TextEncoding) { self.init(.text, encoding.bytes(text)) }

  /// Whether it is an integer, and no real.
  var isInteger: Bool { kind == .number && bytes.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2d } }

  /// The text; nil for other types, and for what is not valid in its encoding.
  func text(_ encoding: TextEncoding) -> String? { kind == .text ? encoding.text(bytes) : nil }

  /// The JSON document that a blob (`X'7b7d'`) is; nil for most.
  private var json: String? {
    guard bytes.count > 4, bytes[2...].starts(with: "7B".utf8) || bytes[2...].starts(with: "5B".utf8) else {
      return nil
    }
    let digits = bytes.dropFirst(2).dropLast().map { UInt8($0 < 0x40 ? $0 - 0x30 : ($0 | 0x20) - 0x57) }
    let data = stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    guard !data.contains(0), let text = String(validating: data, as: UTF8.self),
      (try? JSONDocument(bytes: data)) != nil
    else { return nil }
    return text
  }

  func literal(_ encoding: TextEncoding) -> String {
    guard kind == .text else {
      if kind == .blob, encoding == .utf8, let json {
        return "CAST('\(json.replacing("'", with: "''"))' AS BLOB)"
      }
      let literal = String(decoding: bytes, as: UTF8.self)
      return literal == "Inf" ? "9e999" : literal == "-Inf" ? "-9e999" : literal
    }
    // Text ends at a zero for much of what reads SQL.
    if let text = text(encoding), !text.utf8.contains(0) { return "'\(text.replacing("'", with: "''"))'" }
    return "CAST(x'\(bytes.map { String(format: "%02x", $0) }.joined())' AS TEXT)"
  }
}

extension GoldenValue: Comparable {
  /// As SQLite orders values, texts by their bytes.
  static func < (left: Self, right: Self) -> Bool {
    if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
    guard left.kind == .number else { return left.bytes.lexicographicallyPrecedes(right.bytes) }
    let texts = (String(decoding: left.bytes, as: UTF8.self), String(decoding: right.bytes, as: UTF8.self))
    if let a = Int64(texts.0), let b = Int64(texts.1) { return a < b }
    let numbers = (Double(texts.0) ?? 0, Double(texts.1) ?? 0)
    return numbers.0 == numbers.1 ? texts.0 < texts.1 : numbers.0 < numbers.1
  }
}

enum TextEncoding: String {
  case utf8 = "UTF-8"
  case utf16le = "UTF-16le"
  case utf16be = "UTF-16be"

  /// Nil when the bytes are not valid.
  func text(_ bytes: [UInt8]) -> String? {
    guard self != .utf8 else { return String(validating: bytes, as: UTF8.self) }
    guard bytes.count.isMultiple(of: 2) else { return nil }
    let units = stride(from: 0, to: bytes.count, by: 2).map { at in
      let pair = self == .utf16le ? (bytes[at + 1], bytes[at]) : (bytes[at], bytes[at + 1])
      return UInt16(pair.0) << 8 | UInt16(pair.1)
    }
    return String(validating: units, as: UTF16.self)
  }

  func bytes(_ text: String) -> [UInt8] {
    switch self {
    case .utf8: Array(text.utf8)
    case .utf16le: text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    case .utf16be: text.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }
  }
}

/// A table, index, view or trigger of an app's database, as its schema says it.
struct SchemaObject {
  var kind: String
  var name: String
  var sql: String
  var isVirtual: Bool

  /// All of a database, by name. What SQLite makes for itself, and the tables behind virtual ones, are left out.
  static func all(in db: Database) throws -> [SchemaObject] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT s.type AS kind, s.name AS name, s.sql AS sql, t.type AS form FROM sqlite_schema s
        LEFT JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name
        WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.type IS NOT 'shadow'
        ORDER BY s.name
        """
    ).map { row in
      SchemaObject(
        kind: row["kind"], name: row["name"], sql: row["sql"], isVirtual: row["form"] as String? == "virtual")
    }
  }
}

func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
