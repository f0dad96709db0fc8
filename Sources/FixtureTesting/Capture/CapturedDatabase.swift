import AppContainer
import ContainerDiff
import FileSystem
import Foundation
import GRDB

/// A database that is captured: its content is searched, and written as SQL.
struct CapturedDatabase {
  /// More rows than a table has.
  private static let all = 1 << 40

  let path: ContainerPath
  private let db: Database
  private let objects: [SchemaObject]
  /// Its tables, by name; without SQLite's own and the shadow tables of virtual ones.
  let tables: [CapturedTable]
  /// Whether it is a store of Core Data's, whose references are not declared.
  let isCoreData: Bool

  init(_ path: ContainerPath, in db: Database) throws {
    (self.path, self.db) = (path, db)
    objects = try SchemaObject.all(in: db)
    tables = try objects.filter { $0.kind == "table" }.map { table in
      try CapturedTable(
        table.name, isVirtual: table.isVirtual, ForeignKey.of(table.name, in: db), in: db)
    }
    let names = Set(tables.map(\.name))
    isCoreData = names.contains("Z_METADATA") && names.contains("Z_PRIMARYKEY")
  }

  // MARK: Looking

  /// Shows every value to a visitor, also those of rows that are not kept.
  func visit<Visitor: LeafVisitor>(_ visitor: inout Visitor, _ options: CaptureOptions) throws {
    for table in tables {
      for (column, value) in try defaults(of: table) {
        _ = try ValueWalk.text(value, place(table, column, SecretName(column), options), &visitor)
      }
      try table.read(db, nil) { _ = try visited($0, table, &visitor, options) }
    }
    for object in objects {
      for token in SQLText(object.sql).tokens {
        let place = LeafPlace(label: "the schema of \(path)")
        switch token.kind {
        case .text, .comment: _ = try ValueWalk.text(token.content, place, &visitor)
        case .word, .quotedName:
          if SecretPattern.isSecret(text: token.content) {
            _ = try visitor.key(token.content, isSecret: true, place)
          }
        case .space, .sign: break
        }
      }
    }
  }

  /// The texts that columns have when nothing else is said.
  private func defaults(of table: CapturedTable) throws -> [(String, String)] {
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, dflt_value FROM pragma_table_info(?) WHERE dflt_value IS NOT NULL",
      arguments: [table.name])
    return rows.flatMap { row in
      SQLText(row["dflt_value"] as String).tokens.filter { $0.kind == .text }.map {
        (row["name"], $0.content)
      }
    }
  }

  private func place(
    _ table: CapturedTable, _ column: String, _ name: SecretName, _ options: CaptureOptions
  ) -> LeafPlace {
    let full = "\(table.name).\(column)"
    return LeafPlace(
      name: name, isChosen: options.replaces(column: full), isKept: options.keeps(column: full),
      label: "\(path): \(full)")
  }

  private func visited<Visitor: LeafVisitor>(
    _ cells: [CapturedTable.Cell], _ table: CapturedTable, _ visitor: inout Visitor, _ options: CaptureOptions
  ) throws -> [CapturedTable.Cell] {
    // A hash of the schema, which Room looks for.
    if table.name == "room_master_table" { return cells }
    var fields = SecretFields(columns: table.columns.map(\.name), of: SecretName(table.name))
    let start = cells.count - table.columns.count
    for (column, cell) in zip(table.columns, cells[start...]) {
      if case .text(let text) = cell { fields.note(text, in: column.name, isKey: column.isKey) }
    }
    var result = Array(cells[..<start])
    for (column, cell) in zip(table.columns, cells[start...]) {
      let place = place(table, column.name, fields[column.name], options)
      // A number that identifies a row is not a secret.
      if column.isKey, case .integer = cell, !place.isChosen {
        result.append(cell)
      } else {
        result.append(try cell.visited(place, &visitor))
      }
    }
    return result
  }

  // MARK: Writing

  /// The database as SQL, as far as it is kept; it counts its tables in a report.
  func sql(
    _ replacer: inout ValueReplacer, _ options: CaptureOptions, _ report: inout CaptureReport
  ) throws -> [String] {
    var lines = try fileSettings()
    // Core Data says nowhere in the file what refers to what.
    let limit = isCoreData ? Self.all : min(options.rows, Self.all)
    if isCoreData {
      report.notes.append(
        "\(path) is a store of Core Data's, whose relations are not declared: all rows are kept")
    }
    let selection = try RowSelection(
      tables.filter { !$0.isVirtual && !$0.identity.isEmpty }, limit: limit, in: db)
    for table in tables {
      let dangling = selection.dangling[table.name.lowercased()] ?? []
      let count = (selection.kept[table.name] ?? []).count { dangling.contains($0) }
      guard count > 0 else { continue }
      report.notes.append(
        "\(path): \(table.name): \(count) rows refer to rows that are not there, as in the container")
    }
    for object in objects where object.kind == "table" {
      lines.append("\(try schema(object.sql, &replacer));")
      guard let table = tables.first(where: { $0.name == object.name }) else { continue }
      let rows = try self.rows(of: table, selection, limit, &replacer, options)
      lines += rows
      let count = table.isVirtual ? (try? self.count(of: table)) ?? rows.count : try self.count(of: table)
      report.tables.append(.init(database: path.description, table: table.name, kept: rows.count, of: count))
    }
    lines += try sequences()
    // Behind the rows: triggers do not see them.
    for kind in ["index", "view", "trigger"] {
      for object in objects where object.kind == kind {
        lines.append("\(try schema(object.sql, &replacer));")
      }
    }
    for name in ["application_id", "user_version"] {
      let value = try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
      if value != 0 { lines.append("PRAGMA \(name) = \(value);") }
    }
    return lines
  }

  /// What is said of the file before there is anything in it.
  private func fileSettings() throws -> [String] {
    var lines = ["-- Rows may refer to later ones.", "PRAGMA foreign_keys = OFF;"]
    let usual = ["encoding": "UTF-8", "page_size": "4096", "auto_vacuum": "0", "journal_mode": "wal"]
    for (name, value) in usual.sorted(by: { $0.key < $1.key }) {
      let found = try DatabaseValue.fetchOne(db, sql: "PRAGMA \(name)").flatMap {
        String.fromDatabaseValue($0) ?? Int.fromDatabaseValue($0).map { "\($0)" }
      }
      guard let found, found != value else { continue }
      lines.append("PRAGMA \(name) = \(CapturedTable.Cell.text(found).sql);")
    }
    return lines
  }

  private func count(of table: CapturedTable) throws -> Int {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quoted(table.name))") ?? 0
  }

  private func rows(
    of table: CapturedTable, _ selection: RowSelection, _ limit: Int, _ replacer: inout ValueReplacer,
    _ options: CaptureOptions
  ) throws -> [String] {
    var lines: [String] = []
    let start = "INSERT INTO \(quoted(table.name)) (\(table.readNames.joined(separator: ", "))) VALUES"
    func add(_ cells: [CapturedTable.Cell]) throws {
      let values = try visited(cells, table, &replacer, options).map(\.sql)
      lines.append("\(start) (\(values.joined(separator: ", ")));")
    }
    if let kept = selection.kept[table.name], try kept.count != count(of: table) {
      for identity in kept { try table.read(db, identity, add) }
    } else {
      do {
        try table.read(db, nil) { if lines.count < limit { try add($0) } }
      } catch let error as DatabaseError where table.isVirtual {
        replacer.problem(
          "\(path): the virtual table \(table.name) cannot be read (\(error.message ?? "SQLite does not say why")); "
            + "leave the database out")
      }
    }
    return lines
  }

  /// The counters of tables that never give a key twice.
  private func sequences() throws -> [String] {
    guard
      try Bool.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'") == true
    else { return [] }
    let names = Set(tables.map(\.name))
    return ["DELETE FROM sqlite_sequence;"]
      + (try Row.fetchAll(db, sql: "SELECT name, seq FROM sqlite_sequence ORDER BY name")).filter {
        names.contains($0["name"])
      }.map { row in
        "INSERT INTO sqlite_sequence (name, seq) VALUES (\(CapturedTable.Cell.text(row["name"]).sql), \(row["seq"] as Int));"
      }
  }

  /// A statement of the schema: its texts and comments are replaced as values are, its names must stay.
  private func schema(_ sql: String, _ replacer: inout ValueReplacer) throws -> String {
    let place = LeafPlace(label: "the schema of \(path)")
    return try SQLText(sql).tokens.map { token in
      switch token.kind {
      case .text: return "'\(try ValueWalk.text(token.content, place, &replacer).replacing("'", with: "''"))'"
      case .comment: return try replacer.text(token.content, place)
      case .word, .quotedName:
        replacer.fixed(token.content, "a name in \(place.label)")
        return token.source
      case .space, .sign: return token.source
      }
    }.joined()
  }
}

/// A table of a database that is captured: its columns, and what identifies its rows.
struct CapturedTable {
  /// A column that is not generated.
  struct Column {
    var name: String
    /// Whether it is part of the key, or of a reference to another table.
    var isKey: Bool
  }

  /// A value of a row. Text of broken UTF-8, or with a zero byte in it, is bytes.
  enum Cell {
    case null, integer(Int64), real(Double), text(String), brokenText([UInt8]), blob([UInt8])
  }

  let name: String
  let columns: [Column]
  let isVirtual: Bool
  /// What identifies a row: its rowid, else its key; empty when nothing does.
  let identity: [String]
  /// Whether the rowid has to be written down, because nothing else identifies a row.
  let writesRowid: Bool

  init(_ name: String, isVirtual: Bool, _ references: [ForeignKey], in db: Database) throws {
    self.name = name
    self.isVirtual = isVirtual
    let info = try Row.fetchAll(db, sql: "SELECT name, pk FROM pragma_table_info(?)", arguments: [name])
    let keys = Set(references.flatMap(\.columns))
    columns = info.map { Column(name: $0["name"], isKey: ($0["pk"] as Int) > 0 || keys.contains($0["name"])) }
    let key: [String] = info.filter { ($0["pk"] as Int) > 0 }.map { $0["name"] }
    let hasRowid =
      try Bool.fetchOne(
        db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE schema = 'main' AND name = ?", arguments: [name])
      ?? true
    let taken = Set(columns.map { $0.name.lowercased() })
    let rowid = hasRowid ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    identity = rowid.map { [$0] } ?? key.map(quoted)
    writesRowid = rowid != nil && (key.isEmpty || isVirtual)
  }

  /// Calls a body with rows.
  ///
  /// - Parameter identity: the one row that is meant; nil for all.
  func read(_ db: Database, _ identity: [DatabaseValue]?, _ body: ([Cell]) throws -> Void) throws {
    let list = readNames
    let values = list.flatMap {
      ["typeof(\($0))", "CASE typeof(\($0)) WHEN 'text' THEN CAST(\($0) AS BLOB) ELSE \($0) END"]
    }
    var sql = "SELECT \(values.joined(separator: ", ")) FROM \(quoted(name))"
    if identity != nil { sql += " WHERE " + self.identity.map { "\($0) IS ?" }.joined(separator: " AND ") }
    let cursor = try Row.fetchCursor(db, sql: sql, arguments: StatementArguments(identity ?? []))
    while let row = try cursor.next() {
      try body(list.indices.map { Self.cell(row, $0 * 2) })
    }
  }

  private static func cell(_ row: Row, _ at: Int) -> Cell {
    switch row[at] as String {
    case "integer": return .integer(row[at + 1])
    case "real": return .real(row[at + 1])
    case "text":
      let bytes = [UInt8](row[at + 1] as Data)
      guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
        return .brokenText(bytes)
      }
      return .text(text)
    case "blob": return .blob([UInt8](row[at + 1] as Data))
    default: return .null
    }
  }

  /// The names of what ``read(_:_:_:)`` gives.
  var readNames: [String] { (writesRowid ? identity : []) + columns.map { quoted($0.name) } }
}

extension CapturedTable.Cell {
  var sql: String {
    switch self {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): number.isInfinite ? (number < 0 ? "-9e999" : "9e999") : "\(number)"
    case .text(let text): "'\(text.replacing("'", with: "''"))'"
    case .brokenText(let bytes): "CAST(x'\(Self.hexadecimal(bytes))' AS TEXT)"
    case .blob(let bytes): "x'\(Self.hexadecimal(bytes))'"
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { String(format: "%02x", $0) }.joined()
  }

  /// What a visitor makes of it.
  func visited<Visitor: LeafVisitor>(_ place: LeafPlace, _ visitor: inout Visitor) throws -> Self {
    switch self {
    case .null: self
    case .integer(let number): .integer(try Int64(visitor.number("\(number)", place)) ?? number)
    case .real(let number):
      if let whole = Int64(exactly: number), let other = try Double(visitor.number("\(whole)", place)) {
        .real(other)
      } else {
        self
      }
    case .text(let text): .text(try ValueWalk.text(text, place, &visitor))
    case .brokenText(let bytes): .brokenText(try ValueWalk.data(bytes, place, &visitor))
    case .blob(let bytes): .blob(try ValueWalk.data(bytes, place, &visitor))
    }
  }
}
