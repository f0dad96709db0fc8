import AppContainer
import ContainerDiff
import FileSystem
import Foundation
import GRDB

/// A database that is captured: what is in it is looked at, and written down as SQL.
struct CapturedDatabase {
  /// More rows than a table has.
  private static let all = 1 << 40

  let path: ContainerPath
  private let db: Database
  private let objects: [SchemaObject]
  /// Its tables, by name; those that SQLite keeps for itself, and those behind virtual ones, are none.
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
      for piece in SchemaText(object.sql).pieces {
        let place = LeafPlace(label: "the schema of \(path)")
        switch piece {
        case .text(let text), .remark(let text): _ = try ValueWalk.text(text, place, &visitor)
        case .name(let name, _):
          if SecretPattern.isSecret(text: name) { _ = try visitor.key(name, isSecret: true, place) }
        case .other: break
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
      SchemaText(row["dflt_value"]).pieces.compactMap { piece in
        if case .text(let text) = piece { (row["name"], text) } else { nil }
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
      // A number that tells rows apart is no secret, whatever it looks like.
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
            + "leave the database out with --drop")
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

  /// A statement of the schema: texts and remarks in it are looked at as values are, and its names must stay.
  private func schema(_ sql: String, _ replacer: inout ValueReplacer) throws -> String {
    let place = LeafPlace(label: "the schema of \(path)")
    return try SchemaText(sql).pieces.map { piece in
      switch piece {
      case .text(let text):
        return "'\(try ValueWalk.text(text, place, &replacer).replacing("'", with: "''"))'"
      case .remark(let text): return try replacer.text(text, place)
      case .name(let name, let source):
        replacer.fixed(name, "a name in \(place.label)")
        return source
      case .other(let text): return text
      }
    }.joined()
  }
}
