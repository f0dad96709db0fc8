import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// What a query gives: `sql: {database, query, equals}`, or an element of `queries`.
struct SQLAssertion: AssertionBody {
  static let keys = ["database", "query", "equals"]

  var sql: SQLAssertion? { self }

  let database: NamedDatabase
  let query: String
  /// Nil for those before the migration.
  private let expected: [[PropertyListValue?]]?
  /// Where it compares with the state before the migration.
  let before: YAMLPosition?
  /// The query for the rows before the migration, where it is different.
  private var queryBefore: String?
  /// Where the database is when `drydock.yaml` does not name it; nil in migrations, which name all.
  private var path: ContainerPath?
  /// Where each of the expected rows is written.
  private var rowPositions: [YAMLPosition]?

  init(_ reader: YAMLReader) throws {
    database = try NamedDatabase(reading: reader)
    let node = try reader.required("query")
    query = try Self.query(node, "`query`")
    let equals = try reader.required("equals")
    before = equals.meansBefore ? equals.position : nil
    expected = equals.meansBefore ? nil : [[try Self.value(equals)]]
  }

  private static func query(_ node: YAMLNode, _ what: String) throws -> String {
    let text = try node.text(what)
    if SQLScript(text: text, file: "", firstLine: 1).isBlank { throw node.position.error("\(what) is empty") }
    return text
  }

  /// A value that a row can have; nil is null.
  private static func value(_ node: YAMLNode) throws -> PropertyListValue? {
    if node.isNull { return nil }
    let value = try node.propertyListValue()
    switch value {
    case .integer, .real, .string, .data: return value
    case .boolean(let bool): throw node.position.error("SQLite has no Bool: write \(bool ? 1 : 0)")
    default: throw node.position.error("a query gives null, a number, text or data, not \(node.summary)")
    }
  }

  var demandsSomething: Bool { true }

  func observe(_ stage: StagedContainer) throws -> Observation? {
    if let place = try place(in: stage) { return .rows(try read(stage, at: place, isBefore: true).rows) }
    if path != nil { throw absent(in: stage, " before migrating") }
    return .rows(nil)
  }

  /// A database that a fixture expects.
  private func absent(in stage: StagedContainer, _ when: String = "") -> AssertionFailure {
    let known = stage.container.configuration.databases[database.name]?.first ?? path
    return AssertionFailure(known?.description ?? database.name, "the database is absent\(when)")
  }

  private func read(
    _ stage: StagedContainer, at place: ContainerPath, isBefore: Bool
  ) throws -> (rows: [[PropertyListValue?]], columns: [String]) {
    do {
      return try stage.readRows(at: place) { db in
        let statement = try db.makeStatement(sql: isBefore ? queryBefore ?? query : query)
        let rows = try Row.fetchAll(statement)
        return (rows.map { row in row.databaseValues.map(PropertyListValue.init) }, statement.columnNames)
      }
    } catch let error as DatabaseError {
      guard path != nil else {
        throw DrydockError(
          .sql, "\(database.position): the query cannot run: \(error.plainMessage)", cause: error)
      }
      let when = isBefore ? " before migrating" : ""
      throw AssertionFailure(
        "\(place): \(shown(stage.redactor))",
        error.resultCode == .SQLITE_MISUSE
          ? "a query is one statement" : "the query fails\(when): \(error.plainMessage)")
    } catch let error as DrydockError where path != nil && [.malformed, .missing].contains(error.code) {
      throw AssertionFailure(
        place.description, error.code == .missing ? "this is not a database" : error.message)
    }
  }

  private func place(in stage: StagedContainer) throws -> ContainerPath? {
    guard let path, stage.container.configuration.databases[database.name] == nil else {
      return try database.place(on: stage)
    }
    return try stage.status(of: path)?.type == .file ? path : nil
  }

  /// The query in one line that is not too long.
  private func shown(_ redactor: Redactor) -> String {
    let line = redactor.shown(message: query.split(whereSeparator: \.isWhitespace).joined(separator: " "))
    return line.count > 100 ? line.prefix(99) + "…" : line
  }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    var old: [[PropertyListValue?]]?
    if case .rows(let rows)? = before { old = rows }
    guard let place = try place(in: stage) else {
      if path != nil { return .failed([absent(in: stage)]) }
      if old == nil { return .notRun(missing: database) }
      return .failed(
        "the database \(database.name) was there before, and is gone now: if it moved, add its new path under `databases:` in drydock.yaml"
      )
    }
    let (rows, columns) = try read(stage, at: place, isBefore: false)
    guard let wanted = expected ?? old else {
      return .failed(
        "the database \(database.name) did not exist before, so that there is nothing to compare with")
    }
    if rows == wanted { return .passed }
    if path != nil {
      let text = RowText(columns: columns, redactor: stage.redactor)
      return differences(rows, wanted, text, "\(place): \(shown(stage.redactor))")
    }
    let redactor = stage.knowingRedactor(showing: rows.flatMap { $0.compactMap(\.self) })
    let text = RowText(columns: columns, redactor: redactor)
    return .failed(
      "the query gives \(text.text(rows)), "
        + (expected == nil
          ? "and gave \(text.text(wanted)) before" : "not \(text.row(wanted[0]).dropFirst().dropLast())"))
  }

  /// So many rows are listed.
  private static let limit = 10

  /// Row by row, for fixtures.
  private func differences(
    _ found: [[PropertyListValue?]], _ rows: [[PropertyListValue?]], _ shown: RowText, _ place: String
  ) -> Verdict {
    let suffix = expected == nil ? " before migrating" : ""
    if found.count != rows.count {
      return .failed([
        AssertionFailure(
          place,
          "the query gives \(found.count) rows, expected \(rows.count)\(suffix.isEmpty ? "" : " as" + suffix)",
          expected: shown.list(rows.prefix(Self.limit), of: rows.count),
          found: shown.list(found.prefix(Self.limit), of: found.count))
      ])
    }
    let different = rows.indices.filter { rows[$0] != found[$0] }
    var failures = different.prefix(Self.limit).map { index in
      AssertionFailure(
        "\(place), row \(index + 1)", "the row is different\(suffix.isEmpty ? "" : " from" + suffix)",
        expected: shown.row(rows[index]), found: shown.row(found[index]), at: rowPositions?[index])
    }
    if different.count > Self.limit {
      failures.append(AssertionFailure(place, "\(different.count - Self.limit) more rows differ"))
    }
    return .failed(failures)
  }
}

extension Assertion {
  /// An element of `queries` in a fixture.
  package static func query(_ node: YAMLNode) throws -> Assertion {
    let assertion = try SQLAssertion(
      expecting: YAMLReader(node, what: "a query", keys: ["database", "sql", "rows", "before"]))
    return Assertion(assertion, at: node.position)
  }
}

extension SQLAssertion {
  fileprivate init(expecting reader: YAMLReader) throws {
    database = NamedDatabase(try reader.required("database").text("`database`"), at: reader.position)
    path = try ContainerPath(databaseOrPath: database.name, at: reader.position)
    query = try Self.query(try reader.required("sql"), "`sql`")
    let listed = try reader.required("rows")
    if listed.meansBefore {
      (expected, before) = (nil, listed.position)
      queryBefore = try reader["before"]?.text("`before`")
      return
    }
    if let node = reader["before"] {
      throw node.position.error("`before` is the query on the container before migrating: say `rows: before`")
    }
    let nodes = try listed.elements("`rows`")
    rowPositions = nodes.map(\.position)
    before = nil
    expected = try nodes.map { try $0.elements("a row").map(Self.value) }
  }
}

extension ContainerPath {
  /// What a fixture calls a database: a name of `drydock.yaml`, or a path, as which it is read here.
  package init(databaseOrPath name: String, at position: YAMLPosition) throws {
    guard let path = try? ContainerPath(name), !path.isRoot else {
      throw position.error("`\(name)` is neither a database's name in drydock.yaml nor a path in a container")
    }
    self = path
  }
}

/// Rows for a message; secrets are hidden by the names of their columns and by their form.
private struct RowText {
  let columns: [String]
  let redactor: Redactor

  /// Numbers as they are, the rest by its type, since rows are the user's own data.
  func text(_ rows: [[PropertyListValue?]]) -> String {
    guard rows.count == 1, let row = rows.first else { return "\(rows.count) rows" }
    let values = row.enumerated().map { index, value in
      switch value {
      case nil: "null"
      case .some(let number) where number.isNumber: self.value(number, index)
      case .some(let value): "a \(value.typeName)"
      }
    }
    return values.count == 1 ? values.joined() : "(" + values.joined(separator: ", ") + ")"
  }

  /// All values: a fixture's are made up.
  func row(_ row: [PropertyListValue?]) -> String {
    "["
      + row.enumerated().map { index, value in value.map { self.value($0, index) } ?? "null" }.joined(
        separator: ", ") + "]"
  }

  func list(_ rows: ArraySlice<[PropertyListValue?]>, of count: Int) -> String {
    let more = count > rows.count ? ["… \(count - rows.count) more"] : []
    return "[" + (rows.map(row) + more).joined(separator: ", ") + "]"
  }

  /// A value as it may be shown in a column.
  func value(_ value: PropertyListValue, _ column: Int) -> String {
    redactor.shown(value, key: columns.indices.contains(column) ? columns[column] : "")
  }
}

extension PropertyListValue {
  /// The value of a column; nil for null.
  package init?(_ value: DatabaseValue) {
    switch value.storage {
    case .null: return nil
    case .int64(let number): self = .integer(number)
    case .double(let number): self = .real(number)
    case .string(let text): self = .string(text)
    case .blob(let data): self = .data([UInt8](data))
    }
  }

  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .real: true
    default: false
    }
  }
}
