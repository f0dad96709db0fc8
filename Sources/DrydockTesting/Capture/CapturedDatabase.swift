import AppStores
import ContainerDiff
import FileSystem
import Formats
import Foundation
import GRDB

/// A database that is captured: its values are collected, and written as SQL.
struct CapturedDatabase {
  /// More rows than a table has.
  private static let all = 1 << 40

  let path: ContainerPath
  private let db: Database
  private let encoding: DatabaseEncoding
  private let options: CaptureOptions
  private let objects: [SchemaObject]
  private let tables: [SQLTable]
  /// The columns of each table that belong to its key, or to a reference to another table.
  private let keys: [String: Set<String>]
  /// The columns of each table that are declared as Booleans, which SQLite has as 0 and 1.
  private let booleans: [String: Set<String>]

  init(_ path: ContainerPath, in db: Database, _ options: CaptureOptions) throws {
    (self.path, self.db, self.options) = (path, db, options)
    encoding = try DatabaseEncoding(of: db)
    objects = try SchemaObject.all(in: db)
    tables = try objects.filter { $0.kind == "table" }.map { try SQLTable($0.name, in: db) }
    keys = try tables.reduce(into: [:]) {
      $0[$1.name] = Set($1.key + (try ForeignKey.of($1.name, in: db)).flatMap(\.columns))
    }
    booleans = try tables.reduce(into: [:]) {
      $0[$1.name] = try String.fetchSet(
        db, sql: "SELECT name FROM pragma_table_info(?) WHERE type LIKE 'BOOL%'", arguments: [$1.name])
    }
  }

  /// The columns, as `TABLE.COLUMN`.
  var columns: [String] { tables.flatMap { table in table.columns.map { "\(table.name).\($0)" } } }

  /// The database as SQL, with the selected rows.
  func sql(_ values: inout CapturedValues, _ report: inout CaptureReport) throws -> [String] {
    let selection = try selection(values, &report)
    var lines = try fileSettings()
    for object in objects where object.kind == "table" {
      lines.append("\(try schema(object.sql, &values));")
      guard let table = tables.first(where: { $0.name == object.name }) else { continue }
      if values.isCollecting { try collectDefaults(of: table, &values) }
      // Its values are another table's.
      if object.hasExternalContent || object.isDerived { continue }
      do {
        let rows = try rows(of: table, selection, &values)
        let all = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quotedIdentifier(table.name))")
        report.tables.append(
          .init(
            database: values.shown(path.description), table: table.name, kept: rows.count,
            of: all ?? rows.count))
        lines += rows
      } catch let error as DatabaseError where object.isVirtual {
        values.refuse(
          "\(path): the virtual table \(table.name) cannot be read (\(error.message ?? "no reason given")); "
            + "leave the database out")
      }
    }
    lines += try sequences()
    // After the rows, so that triggers do not fire.
    for kind in ["index", "view", "trigger"] {
      for object in objects where object.kind == kind { lines.append("\(try schema(object.sql, &values));") }
    }
    for object in objects where object.hasExternalContent {
      let name = quotedIdentifier(object.name)
      lines.append("INSERT INTO \(name) (\(name)) VALUES ('rebuild');")
    }
    for name in ["application_id", "user_version"] {
      let value = try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
      if value != 0 { lines.append("PRAGMA \(name) = \(value);") }
    }
    return lines
  }

  // MARK: Rows

  /// The selected rows; nil for all: a secret in any row may also be in a file.
  private func selection(_ values: CapturedValues, _ report: inout CaptureReport) throws -> RowSelection? {
    if values.isCollecting { return nil }
    if Set(tables.map(\.name)).isSuperset(of: ["Z_METADATA", "Z_PRIMARYKEY"]) {
      report.notes.append(
        values.shown("\(path) is a Core Data store, which does not declare its relations: all rows are kept"))
      return nil
    }
    let isVirtual = Set(objects.filter(\.isVirtual).map(\.name))
    let selection = try RowSelection(
      tables.filter { !isVirtual.contains($0.name) && !$0.identity.isEmpty },
      limit: min(options.rows, Self.all), in: db)
    for (table, count) in selection.dangling.sorted(by: { $0.key < $1.key }) {
      let note = "rows with a reference to a row that does not exist, as in the container"
      report.notes.append(values.shown("\(path): \(table): \(note): \(count)"))
    }
    return selection
  }

  private func rows(
    of table: SQLTable, _ selection: RowSelection?, _ values: inout CapturedValues
  ) throws -> [String] {
    var lines: [String] = []
    guard let kept = selection?.kept[table.name.lowercased()] else {
      let limit = selection == nil ? Self.all : options.rows
      try table.rows(db) { row in
        guard lines.count < limit else { return }
        let row = try replaced(row, of: table, &values)
        if !values.isCollecting { lines.append(table.insert(row, encoding)) }
      }
      return lines
    }
    var rows: [[SQLValue]] = []
    for identity in kept { try table.rows(db, only: identity) { rows.append($0) } }
    rows.sort { left, right in
      table.order.map { left[$0] }.lexicographicallyPrecedes(table.order.map { right[$0] })
    }
    return try rows.map { table.insert(try replaced($0, of: table, &values), encoding) }
  }

  private func place(_ table: SQLTable, _ column: String, _ name: SecretName) -> CapturePlace {
    let full = "\(table.name).\(column)"
    return CapturePlace(
      name: name,
      isChosen: CaptureOptions.lists(options.columns, full) || CaptureOptions.matches(options.files, path),
      isKept: CaptureOptions.lists(options.kept, full),
      label: "\(path): \(full)")
  }

  private func collectDefaults(of table: SQLTable, _ values: inout CapturedValues) throws {
    let defaults = try Row.fetchAll(
      db, sql: "SELECT name, dflt_value FROM pragma_table_info(?) WHERE dflt_value IS NOT NULL",
      arguments: [table.name])
    for row in defaults {
      let column: String = row["name"]
      for token in SQLToken.all(in: row["dflt_value"] as String) where token.kind == .string {
        _ = try values.text(token.text, place(table, column, SecretName(column)))
      }
    }
  }

  private func replaced(
    _ row: [SQLValue], of table: SQLTable, _ values: inout CapturedValues
  ) throws -> [SQLValue] {
    // A hash of the schema, which Room compares.
    if table.name == "room_master_table" { return row }
    let start = table.hasRowid ? 1 : 0
    let keys = keys[table.name] ?? []
    var fields = SecretFields(columns: table.columns[start...], of: SecretName(table.name))
    for (column, value) in zip(table.columns, row).dropFirst(start) {
      if let text = value.text(encoding) { fields.note(text, in: column, isKey: keys.contains(column)) }
    }
    return try row[..<start]
      + zip(table.columns, row).dropFirst(start).map { column, value in
        let place = place(table, column, fields[column])
        // A number that identifies a row is not a secret.
        let isPlainKey = keys.contains(column) && value.integer != nil && !place.isChosen
        let isBoolean = booleans[table.name]?.contains(column) == true
        return isPlainKey ? value : try replaced(value, isBoolean: isBoolean, place, &values)
      }
  }

  private func replaced(
    _ value: SQLValue, isBoolean: Bool, _ place: CapturePlace, _ values: inout CapturedValues
  ) throws -> SQLValue {
    switch value.kind {
    case .null: return value
    case .number:
      if let number = value.integer.flatMap({ Int64($0) }) {
        if isBoolean, number == 0 || number == 1 {
          return SQLValue(number: values.boolean(number == 1, place) ? "1" : "0")
        }
        return SQLValue(number: "\(try values.number(number, place))")
      }
      guard let number = value.real else { return value }
      let made = try values.number(number, place)
      return made == number ? value : SQLValue(number: "\(made)")
    case .text:
      // Invalid text, and text with a zero in it, is bytes.
      guard let text = value.text(encoding), !text.utf8.contains(0) else {
        return SQLValue(text: try values.data(value.bytes, place))
      }
      return SQLValue(text: try values.text(text, place), encoding)
    case .blob: return SQLValue(blob: try values.data(value.bytes, place))
    }
  }

  // MARK: The schema

  /// A statement of the schema: its texts and comments are replaced as values are, its names must stay.
  private func schema(_ sql: String, _ values: inout CapturedValues) throws -> String {
    let place = CapturePlace(label: "the schema of \(path)")
    let tokens = SQLToken.all(in: sql, withSpace: true)
    let beside = tokens.namesBesideTexts()
    return try tokens.enumerated().map { index, token -> String in
      switch token.kind {
      case .string:
        var named = place
        named.name = (beside[index] ?? []).map { SecretName($0) }.max() ?? .plain
        return "'\(try values.text(token.text, named).replacing("'", with: "''"))'"
      case .comment: return try values.plain(token.source, place)
      case .word, .name:
        _ = values.name(
          token.text, "a name in \(place.label)", place,
          isSecret: SecretPattern.isSecret(text: token.text), canChange: false)
        return token.source
      case .space, .sign: return token.source
      }
    }.joined()
  }

  /// The settings of the file, which precede its content.
  private func fileSettings() throws -> [String] {
    var lines = ["-- Rows may refer to later ones.", "PRAGMA foreign_keys = OFF;"]
    let usual = ["encoding": "UTF-8", "page_size": "4096", "auto_vacuum": "0", "journal_mode": "wal"]
    for (name, value) in usual.sorted(by: { $0.key < $1.key }) {
      let found = try DatabaseValue.fetchOne(db, sql: "PRAGMA \(name)").flatMap {
        String.fromDatabaseValue($0) ?? Int.fromDatabaseValue($0).map { "\($0)" }
      }
      if let found, found != value { lines.append("PRAGMA \(name) = '\(found)';") }
    }
    return lines
  }

  /// The counters of tables with AUTOINCREMENT.
  private func sequences() throws -> [String] {
    guard let (table, rows) = try SQLTable.sequences(in: db) else { return [] }
    let known = rows.filter { row in tables.contains { $0.name == row[0].text(encoding) } }
    return ["DELETE FROM sqlite_sequence;"] + known.map { table.insert($0, encoding) }
  }
}
