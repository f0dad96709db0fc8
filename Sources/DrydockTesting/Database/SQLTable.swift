import AppContainer
import AppStores
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// A table, index, view or trigger of an app's database, with its SQL.
struct SchemaObject {
  var kind: String, name: String, sql: String
  var isVirtual: Bool

  /// All of a database, by name, without those that SQLite makes itself, and without the tables behind virtual ones.
  static func all(in db: Database) throws -> [SchemaObject] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT s.type AS kind, s.name AS name, s.sql AS sql, t.type AS form FROM sqlite_schema s
        LEFT JOIN (SELECT DISTINCT name, type FROM pragma_table_list WHERE schema = 'main') t ON t.name = s.name
        WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.type IS NOT 'shadow'
        ORDER BY s.name
        """
    ).map { row in
      SchemaObject(
        kind: row["kind"], name: row["name"], sql: row["sql"], isVirtual: row["form"] as String? == "virtual")
    }
  }

  /// Whether it is an index for full text of another table, by which it is built. An empty name means no content at all.
  var hasExternalContent: Bool {
    isVirtual
      && sql.firstMatch(
        of: /USING\s+"?fts[45]\b.*\bcontent\s*=\s*['"\[`]?[^'"\]`\s,)]/.ignoresCase().dotMatchesNewlines())
        != nil
  }

  /// Whether its rows are made from another table's, and cannot be written.
  var isDerived: Bool {
    isVirtual
      && sql.firstMatch(of: /USING\s+"?(fts5vocab|fts4aux|fts3tokenize|dbstat)\b/.ignoresCase()) != nil
  }
}

/// A reference of a table's rows to those of another, or of the same.
struct ForeignKey {
  var columns: [String] = []
  var parent: String
  var parentColumns: [String] = []

  /// The declared ones of a table.
  static func of(_ table: String, in db: Database) throws -> [ForeignKey] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT f.id AS id, f."table" AS parent, f."from" AS child, coalesce(f."to", p.name) AS target
        FROM pragma_foreign_key_list(?) f LEFT JOIN pragma_table_info(f."table") p
        ON f."to" IS NULL AND p.pk = f.seq + 1 ORDER BY f.id, f.seq
        """, arguments: [table])
    var keys: [Int: ForeignKey] = [:]
    for row in rows {
      keys[row["id"], default: ForeignKey(parent: row["parent"])].columns.append(row["child"])
      if let target: String = row["target"] { keys[row["id"]]?.parentColumns.append(target) }
    }
    return keys.sorted { $0.key < $1.key }.map(\.value)
  }
}

/// A table as it is written as SQL: the columns of each row, and the order of the rows.
struct SQLTable {
  let name: String
  /// What is written of a row, in this order; the rowid first where nothing else identifies a row.
  private(set) var columns: [String]
  /// The columns of the primary key.
  let key: [String]
  /// What the rows are sorted by: indices of columns.
  private(set) var order: [Int]
  /// Whether the first column is the rowid, and not one of the table's own.
  private(set) var hasRowid: Bool
  /// The expressions that identify a row: the rowid, else the key.
  let identity: [String]

  init(_ table: String, in db: Database) throws {
    let info = try TableKey(table, "main", db)
    (name, key) = (table, info.primaryKey)
    let rowid = table == "sqlite_sequence" ? nil : info.rowid
    identity = rowid.map { [$0] } ?? key.map(quotedIdentifier)
    // As in a comparison: the key, unless there is none or it is null in some row.
    let written = info.declared.isEmpty ? rowid : nil
    hasRowid = written != nil
    columns = (written.map { [$0] } ?? []) + info.columns
    order =
      written != nil || key.isEmpty ? Array(columns.indices) : key.compactMap(info.columns.firstIndex)
  }

  /// The same table without its rowids, where they differ in each run.
  func withoutRowid() -> SQLTable {
    guard hasRowid else { return self }
    var table = self
    table.columns.removeFirst()
    (table.order, table.hasRowid) = (Array(table.columns.indices), false)
    return table
  }

  /// The indices of the columns that identify a row; empty when nothing does.
  var keyIndices: [Int] {
    if hasRowid { return [0] }
    return (name == "sqlite_sequence" ? ["name"] : key).compactMap(columns.firstIndex)
  }

  /// Calls a body with each row, in order.
  ///
  /// - Parameter identity: the values of ``identity`` of the only row to visit; nil for all.
  /// - Throws: `DatabaseError`, also for a virtual table whose module this SQLite lacks.
  func rows(_ db: Database, only identity: [DatabaseValue]? = nil, _ body: ([SQLValue]) throws -> Void) throws
  {
    let list = columns.flatMap { SQLValue.selection(quotedIdentifier($0)) }.joined(separator: ", ")
    let only = self.identity.map { "\($0) IS ?" }.joined(separator: " AND ")
    let order = order.map { "\(quotedIdentifier(columns[$0])) COLLATE BINARY" }.joined(separator: ", ")
    let cursor = try Row.fetchCursor(
      db,
      sql: "SELECT \(list) FROM \(quotedIdentifier(name)) "
        + (identity == nil ? "ORDER BY \(order)" : "WHERE \(only)"),
      arguments: StatementArguments(identity ?? []))
    while let row = try cursor.next() { try body(columns.indices.map { SQLValue(row, $0 * 2) }) }
  }

  /// The counters of AUTOINCREMENT; nil for a database without any.
  static func sequences(in db: Database) throws -> (table: SQLTable, rows: [[SQLValue]])? {
    let table = try SQLTable("sqlite_sequence", in: db)
    if table.columns.isEmpty { return nil }
    var rows: [[SQLValue]] = []
    try table.rows(db) { rows.append($0) }
    return (table, rows)
  }

  func insert(_ row: [SQLValue], _ encoding: DatabaseEncoding) -> String {
    // The rowid is not a column of the table, and is not quoted as one.
    let names = columns.indices.map { hasRowid && $0 == 0 ? columns[0] : quotedIdentifier(columns[$0]) }
    let values = row.map { $0.literal(encoding) }
    return
      "INSERT INTO \(quotedIdentifier(name)) (\(names.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")));"
  }
}

/// A value of a row, with its exact type and bytes.
struct SQLValue: Hashable {
  /// The types in SQLite's order.
  enum Kind: Int {
    case null, number, text, blob
  }

  let kind: Kind
  /// A text's bytes in the database's encoding, a blob's bytes; a number as SQLite quotes it.
  let bytes: [UInt8]

  private init(_ kind: Kind, _ bytes: [UInt8]) { (self.kind, self.bytes) = (kind, bytes) }

  init(number: String) { self.init(.number, Array(number.utf8)) }
  init(text: String, _ encoding: DatabaseEncoding) { self.init(.text, encoding.bytes(text)) }
  init(text bytes: [UInt8]) { self.init(.text, bytes) }
  init(blob: [UInt8]) { self.init(.blob, blob) }

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE typeof(\(column)) WHEN 'text' THEN CAST(\(column) AS BLOB) WHEN 'blob' THEN \(column) "
        + "ELSE quote(\(column)) END",
    ]
  }

  init(_ row: Row, _ at: Int) {
    switch row[at] as String {
    case "text": self.init(.text, Array(row[at + 1] as Data))
    case "blob": self.init(.blob, Array(row[at + 1] as Data))
    case "null": self.init(.null, [])
    default: self.init(number: row[at + 1])
    }
  }

  /// The digits of an integer; nil for reals and other types.
  var integer: String? {
    kind == .number && bytes.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2d }
      ? String(decoding: bytes, as: UTF8.self) : nil
  }

  var real: Double? {
    kind == .number && integer == nil ? Double(String(decoding: bytes, as: UTF8.self)) : nil
  }

  /// The text; nil for other types, and for what is not valid in its encoding.
  func text(_ encoding: DatabaseEncoding) -> String? { kind == .text ? encoding.text(bytes) : nil }

  /// The JSON document that a blob is; nil for most.
  private var json: String? {
    guard kind == .blob, bytes.count > 1, bytes[0] == 0x7B || bytes[0] == 0x5B, !bytes.contains(0),
      (try? JSONDocument(bytes: bytes)) != nil
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  func literal(_ encoding: DatabaseEncoding) -> String {
    switch kind {
    case .null: return "NULL"
    case .number:
      let literal = String(decoding: bytes, as: UTF8.self)
      return literal == "Inf" ? "9e999" : literal == "-Inf" ? "-9e999" : literal
    case .text:
      // Text ends at a zero for much of what reads SQL.
      if let text = text(encoding), !text.utf8.contains(0) { return "'\(text.replacing("'", with: "''"))'" }
      return "CAST(x'\(bytes.hex)' AS TEXT)"
    case .blob:
      if encoding == .utf8, let json { return "CAST('\(json.replacing("'", with: "''"))' AS BLOB)" }
      return "X'\(bytes.hex.uppercased())'"
    }
  }

  /// The text of a value that may name others: a text, or a blob that is JSON.
  func content(_ encoding: DatabaseEncoding) -> String? { text(encoding) ?? (encoding == .utf8 ? json : nil) }

  /// The value for people; secrets are hidden by the column's name and by their form.
  func shown(_ name: SecretName, _ encoding: DatabaseEncoding, _ redactor: Redactor) -> String {
    if let content = content(encoding) { return redactor.shown(.string(content), named: name) }
    switch kind {
    case .null: return "null"
    case .number:
      if let number = integer.flatMap({ Int64($0) }) { return redactor.shown(.integer(number), named: name) }
      guard let real, SecretPattern.isSecret(.real(real), named: name) else { return literal(encoding) }
      return redactor.shown(.real(real), named: name)
    case .text, .blob:
      guard !bytes.isEmpty, name >= .code || name == .suspicious && bytes.count >= 8 else {
        return "blob (\(bytes.count) bytes)"
      }
      return redactor.secret("\(bytes.count) bytes", bytes.withUnsafeBytes { redactor.mark($0) })
    }
  }
}

extension SQLValue: Comparable {
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

enum DatabaseEncoding: String {
  case utf8 = "UTF-8"
  case utf16le = "UTF-16le"
  case utf16be = "UTF-16be"

  /// A database's.
  init(of db: Database) throws {
    self = DatabaseEncoding(rawValue: try String.fetchOne(db, sql: "PRAGMA encoding") ?? "") ?? .utf8
  }

  private var form: TextEncoding {
    switch self {
    case .utf8: .plain
    case .utf16le: .utf16(isBigEndian: false, hasMark: false)
    case .utf16be: .utf16(isBigEndian: true, hasMark: false)
    }
  }

  /// Nil when the bytes are not valid.
  func text(_ bytes: [UInt8]) -> String? {
    if self == .utf8 { return String(validating: bytes, as: UTF8.self) }
    return form.decode(bytes).map { String(decoding: $0, as: UTF8.self) }
  }

  func bytes(_ text: String) -> [UInt8] { form.encode(Array(text.utf8)) }
}

/// A database as SQL in a file, of a fixture or of a golden.
struct SQLDump {
  let sql: String
  private let file: String

  init(_ sql: String, from file: String) { (self.sql, self.file) = (sql, file) }

  /// - Throws: `DrydockError` with code `badFixture` for what is not UTF-8.
  init(_ path: ContainerPath, in source: Directory) throws {
    file = source.full(path)
    let bytes = TextFile.committed(try source.contents(path, limit: 1 << 30))
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw DrydockError(.badFixture, "the SQL is not UTF-8", path: file)
    }
    sql = text
  }

  /// Opens a new database and executes the statements; nothing may be at the path.
  ///
  /// - Parameters:
  ///   - settings: has the app's functions and collations; nil for a database that no app reads.
  ///   - prepare: called with the first word of each statement before it is executed.
  ///   - use: called with the database while it is open.
  /// - Throws: `DrydockError` with code `badFixture`, with the line.
  func build(
    at path: String, preparing setup: String, settings: ContainerConfiguration? = nil,
    _ prepare: (Database, _ word: String, _ statement: String) throws -> Void = { _, _, _ in },
    use: (DatabaseQueue) throws -> Void = { _ in }
  ) throws {
    // Where the statement that is compiled or executed starts, after the one before: SQLite names no place.
    var start = sql.startIndex
    do {
      let queue = try DatabaseQueue.alone(with: path) {
        // The SQL may begin a transaction and fail in it, or never end it.
        $0.allowsUnsafeTransactions = true
        // As SQLite does: the schemas of real apps have texts in double quotes.
        $0.acceptsDoubleQuotedStringLiterals = true
        $0.prepareDatabase { settings?.sql.define(in: $0) ?? $0.substituteUnknownCollations() }
      }
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: setup)
        let statements = try db.allStatements(sql: sql)
        while let statement = try statements.next() {
          let text = statement.sql
          var tokens = SQLTokens(Array(text.utf8))
          let word = tokens.next().flatMap { $0.isName ? $0.text.uppercased() : nil } ?? ""
          if ["ATTACH", "DETACH", "VACUUM"].contains(word) {
            throw failure("\(word) is not allowed in a fixture's SQL", from: start)
          }
          try prepare(db, word, text)
          try statement.execute()
          start = sql.utf8[start...].firstRange(of: text.utf8)?.upperBound ?? start
        }
        try prepare(db, "", "")
        if db.isInsideTransaction { try db.commit() }
      }
      try use(queue)
    } catch let error as DatabaseError {
      throw failure("\(error.plainMessage)", from: start, cause: error)
    }
  }

  /// - Parameter start: the end of the statement before.
  private func failure(
    _ message: String, from start: String.Index, cause: (any Error)? = nil
  ) -> DrydockError {
    // Past comments, and the semicolon of the statement before; a commit at the end has no line.
    let tokens = SQLToken.all(in: sql[start...], withSpace: true)
    let before = tokens.prefix { !$0.counts || $0.isSign(";") }
    let line: Int? =
      before.count == tokens.count
      ? nil : (sql[..<start] + before.map(\.source).joined()).utf8.count { $0 == 0x0A } + 1
    return DrydockError(.badFixture, "the SQL fails: \(message)", path: file, line: line, cause: cause)
  }
}
