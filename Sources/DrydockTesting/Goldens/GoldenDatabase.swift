import AppStores
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// Writes a database into a golden: its schema by name, its rows by key. The same content gives the same text.
struct GoldenDatabase {
  /// The database's path, and the golden's file.
  struct Place {
    var path: ContainerPath, file: ContainerPath

    var id: [String] { [path.description, "sql"] }
    var name: String { GoldenLine.text(path) }
  }

  private let db: Database
  private let place: Place
  private let encoding: DatabaseEncoding
  private let objects: [SchemaObject]
  private let normalizer: ColumnNormalizer
  private let comparesColumnOrder: Bool
  /// The rows of each table; empty while those of a table that it refers to are read.
  private var rows: [ExactText: (table: SQLTable, rows: [[SQLValue]])] = [:]
  private var problems: [ExactText: String] = [:]
  private var isNormalized = false

  /// Writes a closed database file.
  static func write(
    _ database: String, as place: Place, _ values: ValueNormalizer, to golden: inout GoldenText
  ) throws {
    do {
      let queue = try DatabaseQueue.alone(with: database) {
        $0.prepareDatabase {
          $0.substituteUnknownCollations()
          try $0.execute(sql: "PRAGMA trusted_schema=OFF")
        }
      }
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { db in
        var writer = try GoldenDatabase(db, place, values)
        try writer.write(to: &golden)
      }
    } catch let error as DatabaseError {
      throw DrydockError.database("cannot write the database as a golden", place.path.description, error)
    }
  }

  private init(_ db: Database, _ place: Place, _ values: ValueNormalizer) throws {
    (self.db, self.place) = (db, place)
    comparesColumnOrder = values.volatile.comparesColumnOrder
    encoding = try DatabaseEncoding(of: db)
    objects = try SchemaObject.all(in: db)
    normalizer = try ColumnNormalizer(
      values, tables: objects.filter { $0.kind == "table" }.map(\.name), encoding, db)
  }

  private mutating func write(to golden: inout GoldenText) throws {
    let tables = objects.filter { $0.kind == "table" }
    for table in tables { try read(table) }
    golden.add(GoldenEntry(place.id, place.name, at: place.file))
    let statement = "PRAGMA encoding = '\(encoding.rawValue)';"
    add("encoding", encoding.rawValue, encoding == .utf8 ? nil : statement, to: &golden)
    // A normalized value need not be one that the app would take.
    if isNormalized, tables.contains(where: { $0.sql.firstMatch(of: /\bCHECK\b/.ignoresCase()) != nil }) {
      golden.add("PRAGMA ignore_check_constraints = ON;", to: place.file)
    }
    golden.add("BEGIN;", to: place.file)
    for name in ["application_id", "user_version"] {
      let value = try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
      add(name, "\(value)", value == 0 ? nil : "PRAGMA \(name) = \(value);", to: &golden)
    }
    for object in tables {
      try add(object, to: &golden)
      if let (table, rows) = rows[ExactText(object.name)] { add(rows, of: table, to: &golden) }
      if let problem = problems[ExactText(object.name)] {
        golden.add(
          "-- the rows of \(quotedIdentifier(object.name)) cannot be read: \(problem)", to: place.file)
      }
    }
    try addSequence(to: &golden)
    // Behind the rows: indexes are made faster then, and triggers do not see them.
    for kind in ["index", "view", "trigger"] {
      for object in objects where object.kind == kind { try add(object, to: &golden) }
    }
    golden.add("COMMIT;", to: place.file)
  }

  private func add(_ name: String, _ value: String, _ statement: String?, to golden: inout GoldenText) {
    let line = statement.map { golden.add($0, to: place.file) }
    golden.add(
      GoldenEntry(
        place.id + ["pragma", name], "\(place.name): \(name)", "number", at: place.file, line: line,
        text: statement ?? "", in: place.id, fields: [.init("value", value, "the value differs")]))
  }

  // MARK: Reading

  private mutating func read(_ object: SchemaObject) throws {
    let name = ExactText(object.name)
    guard rows[name] == nil else { return }
    do { try readRows(of: object) } catch let error as DatabaseError
      where object.isVirtual && !error.isAboutTheDisk
    {
      (rows[name], problems[name]) = (nil, error.plainMessage)
    }
  }

  private mutating func readRows(of object: SchemaObject) throws {
    let name = ExactText(object.name)
    var table = try SQLTable(object.name, in: db)
    rows[name] = (table, [])
    if object.isDerived { return }
    let mayChange = normalizer.mayChange(table)
    if mayChange {
      // Values are numbered in the order of the rows that they belong to.
      let parents = normalizer.parents(of: table)
      for parent in objects where parent.kind == "table" && parents.contains(parent.name.lowercased()) {
        try read(parent)
      }
    }
    let hasVolatileRowid = normalizer.hasVolatileRowid(table)
    if hasVolatileRowid { table = table.withoutRowid() }
    var found: [[SQLValue]] = []
    try table.rows(db) { found.append($0) }
    if mayChange || hasVolatileRowid {
      let replaced = normalizer.replaced(found, of: table, marks: try marks(of: found, in: table))
      if replaced.isChanged { isNormalized = true }
      found = replaced.rows
    }
    rows[name] = (table, found)
  }

  /// Distinguishes rows that are equal but for volatile values, by the rows that refer to each.
  private func marks(of rows: [[SQLValue]], in table: SQLTable) throws -> [String] {
    var marks = Array(repeating: "", count: rows.count)
    for (name, column, to) in normalizer.referring(to: table) {
      guard let object = objects.first(where: { $0.kind == "table" && $0.name.lowercased() == name }) else {
        continue
      }
      let child = try SQLTable(object.name, in: db).withoutRowid()
      guard let from = child.columns.firstIndex(where: { $0.lowercased() == column }) else { continue }
      var found: [SQLValue: [String]] = [:]
      try child.rows(db) { found[$0[from], default: []].append(normalizer.mark(of: $0, in: child)) }
      for index in rows.indices { marks[index] += (found[rows[index][to]] ?? []).sorted().joined() + ";" }
    }
    return marks
  }

  // MARK: Definitions

  private func add(_ object: SchemaObject, to golden: inout GoldenText) throws {
    let id = place.id + [object.kind, object.name]
    let tokens = SQLToken.definition(object.sql, kind: object.kind)
    let line = golden.add(object.sql + ";", to: place.file)
    func entry(_ id: [String], _ name: String, _ noun: String, in group: [String]) -> GoldenEntry {
      GoldenEntry(
        id, "\(place.name): \(name)", noun, at: place.file, line: line, text: object.sql, in: group)
    }
    let shown = { @Sendable (redactor: Redactor) in redactor.shown(sql: object.sql) }
    var definition = entry(id, "\(object.kind) \(object.name)", object.kind, in: place.id)
    definition.whole = shown
    let message = "the \(object.kind) definition differs"
    let table = TableSQL(tokens)
    // A column that SQL adds comes behind the others: the order counts only where the fixture says so.
    definition.fields = [
      .init("definition", table.unordered ?? SQLToken.words(tokens), message, shown: shown)
    ]
    if comparesColumnOrder {
      definition.fields.append(.init("order", SQLToken.words(tokens), message, shown: shown))
    }
    if let problem = problems[ExactText(object.name)] {
      definition.fields.append(.init("rows", problem, "the rows cannot be read"))
    } else if object.isVirtual, rows[ExactText(object.name)]?.rows.isEmpty == false {
      definition.fields.append(.init("rows", "can be read", "the rows cannot be read"))
    }
    golden.add(definition)
    for (column, words) in object.kind != "table" || table.isVirtual ? [] : table.columns {
      let text = words.map(\.source).joined(separator: " ")
      let shown = { @Sendable (redactor: Redactor) in
        text.isEmpty ? "(any type)" : redactor.shown(sql: text, named: column)
      }
      var entry = entry(id + ["column", column], "table \(object.name), column \(column)", "column", in: id)
      entry.whole = shown
      entry.fields = [
        .init("definition", SQLToken.words(words), "the column definition differs", shown: shown)
      ]
      golden.add(entry)
    }
  }

  // MARK: Rows

  private func add(
    _ rows: [[SQLValue]], of table: SQLTable, in group: [String]? = nil, to golden: inout GoldenText
  ) {
    let id = place.id + ["table", table.name]
    // What one side could not read is not compared, row by row.
    if group == nil { golden.add(GoldenEntry(id + ["rows"], at: place.file)) }
    let key = table.keyIndices
    let rest = table.columns.indices.filter { !key.contains($0) }
    let names = RowNames(table: table.name, columns: table.columns)
    let (encoding, place) = (encoding, place)
    var copies: [[String]: Int] = [:]
    for row in rows {
      let values = (key.isEmpty ? Array(row.indices) : key).map { row[$0].literal(encoding) }
      // Equal rows without a key are counted.
      copies[values, default: 0] += 1
      let copy = copies[values, default: 1] > 1 ? ["\(copies[values, default: 1])"] : []
      @Sendable func shown(_ index: Int, _ redactor: Redactor) -> String {
        let judged = names.names(
          in: table.columns.indices.map { (table.columns[$0], row[$0].content(encoding), key.contains($0)) })
        return row[index].shown(judged[table.columns[index]] ?? .secret, encoding, redactor)
      }
      let statement = table.insert(row, encoding)
      var entry = GoldenEntry(
        id + ["row"] + values + copy, nil, "row", at: place.file,
        line: golden.add(statement, to: place.file), text: statement, in: group ?? id + ["rows"])
      entry.name = { redactor in
        "\(place.name): \(table.name)"
          + key.map { ", \(table.columns[$0]) \(shown($0, redactor))" }.joined()
      }
      entry.pattern = "\(place.name): \(table.name)"
      entry.whole = { redactor in
        let texts = rest.filter { row[$0].kind != .null }.map {
          "\(table.columns[$0]) \(shown($0, redactor))"
        }
        return texts.isEmpty ? "the row" : texts.joined(separator: ", ")
      }
      entry.fields = (key.isEmpty ? [] : rest).map { index in
        .init(table.columns[index], row[index].literal(encoding), "the column has another value") {
          shown(index, $0)
        }
      }
      golden.add(entry)
    }
  }

  /// The counters of `AUTOINCREMENT`; that of a table with volatile keys is the number of these.
  private func addSequence(to golden: inout GoldenText) throws {
    guard let (table, found) = try SQLTable.sequences(in: db) else { return }
    var rows = found
    golden.add("DELETE FROM sqlite_sequence;", to: place.file)
    for index in rows.indices {
      if let name = rows[index][0].text(encoding), let key = try SQLTable(name, in: db).key.first,
        case let count = normalizer.count(name, key), count > 0
      {
        rows[index][1] = SQLValue(number: "\(count)")
      }
    }
    add(rows, of: table, in: place.id, to: &golden)
  }
}
