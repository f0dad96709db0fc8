import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A query and the rows that it must give.
package struct ExpectedQuery: Sendable {
  /// The database: a name of `drydock.yaml`, or a path.
  let database: ExpectedDatabase
  /// The SQL.
  let sql: String
  /// The rows, each with its values in order; nil for those before migrating, until they are known.
  private(set) var rows: [[YAMLScalar.Value]]?
  /// The SQL for the rows before migrating; nil when `rows` says them.
  private let sqlBefore: String?
  private let position: YAMLPosition
  private let rowPositions: [YAMLPosition]

  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "a query", keys: ["database", "sql", "rows", "before"])
    position = reader.position
    database = try ExpectedDatabase(try reader.required("database").text("`database`"), reader.position)
    let text = try reader.required("sql")
    sql = try text.text("`sql`")
    if sql.allSatisfy(\.isWhitespace) { throw text.position.error("`sql` is empty") }
    let listed = try reader.required("rows")
    if listed.meansBefore {
      sqlBefore = try reader["before"]?.text("`before`") ?? sql
      (rows, rowPositions) = (nil, [])
      return
    }
    if let node = reader["before"] {
      throw node.position.error("`before` is the query on the container before migrating: say `rows: before`")
    }
    sqlBefore = nil
    let nodes = try listed.elements("`rows`")
    rowPositions = nodes.map(\.position)
    rows = try nodes.map { try $0.elements("a row").map(Self.value) }
  }

  private static func value(_ node: YAMLNode) throws -> YAMLScalar.Value {
    guard let scalar = node.scalar else {
      throw node.position.error("a row's value is a single one, not \(node.summary)")
    }
    switch scalar.value {
    case .null, .integer, .real, .text, .data: return scalar.value
    // What a row never has would never be equal.
    case .boolean(let value): throw node.position.error("SQLite has no Bool: write \(value ? 1 : 0)")
    case .unsigned, .date:
      throw node.position.error(
        "SQLite has null, integers of 64 bits, reals, text and data, not \(scalar.value.summary)")
    }
  }

  /// Takes the rows from a container that is not migrated yet, where `rows: before` says so.
  ///
  /// - Returns: why they cannot be told.
  mutating func takeRows(before stage: StagedContainer) throws -> [FixtureFinding] {
    guard let sqlBefore else { return [] }
    var found: [[YAMLScalar.Value]] = []
    let findings = try asking(sqlBefore, stage, " before migrating") { rows, _, _ in
      found = rows
      return []
    }
    rows = found
    return findings
  }

  func findings(_ stage: StagedContainer) throws -> [FixtureFinding] {
    try asking(sql, stage) { found, shown, place in
      guard let rows else {
        return [
          FixtureFinding(at: position, "the rows before migrating are not known", place: place)
        ]
      }
      return difference(found, rows, shown, place)
    }
  }

  private func asking(
    _ sql: String, _ stage: StagedContainer, _ when: String = "",
    _ judge: ([[YAMLScalar.Value]], RowText, String) -> [FixtureFinding]
  ) throws -> [FixtureFinding] {
    let path = try database.path(in: stage)
    guard try stage.live.status(path)?.type == .file else {
      return [FixtureFinding(at: position, "the database is absent\(when)", place: path.description)]
    }
    let place = "\(path): \(shown(sql, stage.redactor))"
    do {
      let (columns, found) = try read(sql, path, stage)
      return judge(found, RowText(columns: columns, redactor: stage.redactor), place)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_MISUSE {
      return [FixtureFinding(at: position, "a query is one statement", place: place)]
    } catch let error as DatabaseError {
      return [FixtureFinding(at: position, "the query fails\(when): \(error.plainMessage)", place: place)]
    } catch let error as DrydockError where error.code == .malformed {
      return [FixtureFinding(at: position, error.message, place: path.description)]
    } catch let error as DrydockError where error.code == .missing {
      return [FixtureFinding(at: position, "this is no database", place: path.description)]
    }
  }

  /// In one line that is not too long.
  private func shown(_ sql: String, _ redactor: Redactor) -> String {
    let words = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let line = redactor.shown(message: words)
    return line.count > 100 ? line.prefix(99) + "…" : line
  }

  private func read(
    _ sql: String, _ path: ContainerPath, _ stage: StagedContainer
  ) throws -> (columns: [String], rows: [[YAMLScalar.Value]]) {
    try stage.readDatabase(at: path) { database in
      let statement = try database.makeStatement(sql: sql)
      let rows = try Row.fetchAll(statement)
      return (statement.columnNames, rows.map { row in row.databaseValues.map(\.yamlValue) })
    }
  }

  // MARK: The difference

  /// More than these are not told one by one.
  private static let limit = 10

  private func difference(
    _ found: [[YAMLScalar.Value]], _ rows: [[YAMLScalar.Value]], _ shown: RowText, _ place: String
  ) -> [FixtureFinding] {
    if found.count != rows.count {
      return [
        FixtureFinding(
          at: position,
          "the query gives \(found.count) rows, expected \(rows.count)\(sqlBefore == nil ? "" : " as before migrating")",
          place: place,
          expected: shown.list(rows.prefix(Self.limit), of: rows.count),
          found: shown.list(found.prefix(Self.limit), of: found.count))
      ]
    }
    let different = rows.indices.filter { rows[$0] != found[$0] }
    var findings = different.prefix(Self.limit).map { index in
      FixtureFinding(
        at: sqlBefore == nil ? rowPositions[index] : position,
        sqlBefore == nil ? "the row is another one" : "the row is another one than before migrating",
        place: "\(place), row \(index + 1)",
        expected: shown.row(rows[index]), found: shown.row(found[index]))
    }
    if different.count > Self.limit {
      findings.append(
        FixtureFinding(
          at: position, "\(different.count - Self.limit) more rows differ", place: place))
    }
    return findings
  }
}

/// Rows for a message: secrets are hidden by the names of their columns and by their form.
private struct RowText {
  let columns: [String]
  let redactor: Redactor

  func list(_ rows: ArraySlice<[YAMLScalar.Value]>, of count: Int) -> String {
    let more = count > rows.count ? ["… \(count - rows.count) more"] : []
    return "[" + (rows.map(row) + more).joined(separator: ", ") + "]"
  }

  func row(_ row: [YAMLScalar.Value]) -> String {
    let values = row.enumerated().map { index, value in
      guard let listed = value.propertyListValue else { return "null" }
      return redactor.shown(listed, key: columns.indices.contains(index) ? columns[index] : "")
    }
    return "[" + values.joined(separator: ", ") + "]"
  }
}

extension DatabaseValue {
  fileprivate var yamlValue: YAMLScalar.Value {
    switch storage {
    case .null: .null
    case .int64(let value): .integer(value)
    case .double(let value): .real(value)
    case .string(let text): .text(text)
    case .blob(let data): .data(Array(data))
    }
  }
}
