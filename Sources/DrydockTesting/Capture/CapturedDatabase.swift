import AppContainer
import ContainerDiff
import FileSystem
import Foundation
import GRDB

/// A database that is captured: its values are collected, and written as SQL.
struct CapturedDatabase {
  /// More rows than a table has.
  private static let all = 1 << 40

  let path: ContainerPath
  private let db: Database
  private let encoding: TextEncoding
  private let options: CaptureOptions
  private let objects: [SchemaObject]
  private let tables: [SQLTable]
  /// The columns of each table that belong to its key, or to a reference to another table.
  private let keys: [String: Set<String>]

  init(_ path: ContainerPath, in db: Database, _ options: CaptureOptions) throws {
    (self.path, self.db, self.options) = (path, db, options)
    encoding = try TextEncoding(of: db)
    objects = try SchemaObject.all(in: db)
    tables = try objects.filter { $0.kind == "table" }.map { try SQLTable($0.name, in: db) }
    keys = try Dictionary(
      tables.map { table in
        (table.name, Set(table.key + (try ForeignKey.of(table.name, in: db)).flatMap(\.columns)))
      }, uniquingKeysWith: { first, _ in first })
  }

  /// The columns, as `TABLE.COLUMN`.
  var columns: [String] { tables.flatMap { table in table.columns.map { "\(table.name).\($0)" } } }

  /// Collects every value, also of rows that are not kept.
  func collect(into values: inout CapturedValues) throws {
    for table in tables {
      let defaults = try Row.fetchAll(
        db, sql: "SELECT name, dflt_value FROM pragma_table_info(?) WHERE dflt_value IS NOT NULL",
        arguments: [table.name])
      for row in defaults {
        let column: String = row["name"]
        for token in SQLText(row["dflt_value"] as String).tokens where token.kind == .text {
          _ = try values.text(token.content, place(table, column, SecretName(column)))
        }
      }
      do {
        try table.rows(db) { _ = try replaced($0, of: table, &values) }
      } catch let error as DatabaseError where isVirtual(table) {
        values.refuse(unreadable(table, error))
      }
    }
    for object in objects { _ = try schema(object.sql, &values) }
  }

  private func isVirtual(_ table: SQLTable) -> Bool {
    objects.contains { $0.isVirtual && $0.name == table.name }
  }

  private func unreadable(_ table: SQLTable, _ error: DatabaseError) -> String {
    "\(path): the virtual table \(table.name) cannot be read (\(error.message ?? "SQLite does not say why")); "
      + "leave the database out"
  }

  // MARK: Values

  private func place(_ table: SQLTable, _ column: String, _ name: SecretName) -> CapturePlace {
    let full = "\(table.name).\(column)"
    return CapturePlace(
      name: name, isChosen: options.replaces(column: full), isKept: options.keeps(column: full),
      label: "\(path): \(full)")
  }

  private func replaced(
    _ row: [SQLValue], of table: SQLTable, _ values: inout CapturedValues
  ) throws -> [SQLValue] {
    // A hash of the schema, which Room looks for.
    if table.name == "room_master_table" { return row }
    let start = table.hasRowid ? 1 : 0
    let keys = keys[table.name] ?? []
    var fields = SecretFields(columns: table.columns[start...], of: SecretName(table.name))
    for (column, value) in zip(table.columns, row).dropFirst(start) {
      if let text = value.text(encoding) { fields.note(text, in: column, isKey: keys.contains(column)) }
    }
    var result = Array(row[..<start])
    for (column, value) in zip(table.columns, row).dropFirst(start) {
      let place = place(table, column, fields[column])
      // A number that identifies a row is not a secret.
      let isPlainKey = keys.contains(column) && value.integer != nil && !place.isChosen
      result.append(isPlainKey ? value : try replaced(value, place, &values))
    }
    return result
  }

  private func replaced(
    _ value: SQLValue, _ place: CapturePlace, _ values: inout CapturedValues
  ) throws -> SQLValue {
    switch value.kind {
    case .null: return value
    case .number:
      if let digits = value.integer { return SQLValue(number: try values.number(digits, place)) }
      guard let whole = value.real.flatMap({ Int64(exactly: $0) }) else { return value }
      let made = try values.number("\(whole)", place)
      return made == "\(whole)" ? value : SQLValue(number: made + ".0")
    case .text:
      // Text that is not valid, or has a zero in it, is bytes.
      guard let text = value.text(encoding), !text.utf8.contains(0) else {
        return SQLValue(text: try values.data(value.bytes, place))
      }
      return SQLValue(text: try values.text(text, place), encoding)
    case .blob: return SQLValue(blob: try values.data(value.bytes, place))
    }
  }

  /// A statement of the schema: its texts and comments are replaced as values are, its names must stay.
  private func schema(_ sql: String, _ values: inout CapturedValues) throws -> String {
    let place = CapturePlace(label: "the schema of \(path)")
    return try SQLText(sql).tokens.map { token in
      switch token.kind {
      case .text: return "'\(try values.text(token.content, place).replacing("'", with: "''"))'"
      case .comment: return try values.plain(token.content, place)
      case .word, .quotedName:
        if values.replacements == nil { _ = values.name(token.content, "a name", place) }
        values.fixed(token.content, "a name in \(place.label)")
        return token.source
      case .space, .sign: return token.source
      }
    }.joined()
  }

  // MARK: Writing

  /// The database as SQL, as far as it is kept.
  func sql(_ values: inout CapturedValues, _ report: inout CaptureReport) throws -> [String] {
    var lines = try fileSettings()
    let names = Set(tables.map(\.name))
    // Core Data says nowhere in the file what refers to what.
    let isCoreData = names.contains("Z_METADATA") && names.contains("Z_PRIMARYKEY")
    if isCoreData {
      report.notes.append(
        "\(path) is a store of Core Data's, whose relations are not declared: all rows are kept")
    }
    let limit = isCoreData ? Self.all : min(options.rows, Self.all)
    let selection = try RowSelection(
      tables.filter { !isVirtual($0) && !$0.identity.isEmpty }, limit: limit, in: db)
    for (table, count) in selection.dangling.sorted(by: { $0.key < $1.key }) {
      report.notes.append(
        "\(path): \(table): \(count) rows refer to rows that are not there, as in the container")
    }
    for table in tables {
      let definition = objects.first { $0.kind == "table" && $0.name == table.name }?.sql ?? ""
      lines.append("\(try schema(definition, &values));")
      let rows = try rows(of: table, selection.kept[table.name], limit, &values)
      lines += rows
      let all = try? Int.fetchOne(db, sql: "SELECT count(*) FROM \(quoted(table.name))")
      report.tables.append(
        .init(database: path.description, table: table.name, kept: rows.count, of: all ?? rows.count))
    }
    lines += try sequences()
    // Behind the rows: triggers do not see them.
    for kind in ["index", "view", "trigger"] {
      for object in objects where object.kind == kind { lines.append("\(try schema(object.sql, &values));") }
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
      lines.append("PRAGMA \(name) = '\(found)';")
    }
    return lines
  }

  private func rows(
    of table: SQLTable, _ kept: [[DatabaseValue]]?, _ limit: Int, _ values: inout CapturedValues
  ) throws -> [String] {
    var lines: [String] = []
    func add(_ row: [SQLValue]) throws {
      if lines.count < limit { lines.append(table.insert(try replaced(row, of: table, &values), encoding)) }
    }
    if let kept {
      for identity in kept { try table.rows(db, only: identity, add) }
    } else {
      do {
        try table.rows(db, add)
      } catch let error as DatabaseError where isVirtual(table) {
        values.refuse(unreadable(table, error))
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
    let table = try SQLTable("sqlite_sequence", in: db)
    var lines = ["DELETE FROM sqlite_sequence;"]
    try table.rows(db) { row in
      if row[0].text(encoding).map(names.contains) == true { lines.append(table.insert(row, encoding)) }
    }
    return lines
  }
}
