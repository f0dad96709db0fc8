import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation
import GRDB

/// `sql: {database, query, equals}`: what a query says.
struct SQLAssertion: Sendable {
  static let keys = ["database", "query", "equals"]

  let database: String
  let position: YAMLPosition
  let query: String
  let expected: Expectation

  init(_ reader: YAMLReader) throws {
    let name = try reader.required("database")
    database = try name.text("`database`")
    position = name.position
    let node = try reader.required("query")
    query = try node.text("`query`")
    if SQLScript(text: query, file: "", firstLine: 1).isBlank {
      throw node.position.error("`query` is empty")
    }
    let equals = try reader.required("equals")
    if equals.meansBefore {
      expected = .before(equals.position)
    } else if equals.isNull {
      expected = .null
    } else {
      let value = try equals.propertyListValue()
      switch value {
      case .integer, .real, .string, .data: expected = .values([value])
      case .boolean(let bool):
        throw equals.position.error("SQLite has no Bool: write \(bool ? 1 : 0)")
      default:
        throw equals.position.error("a query gives null, a number, text or data, not \(equals.summary)")
      }
    }
  }

  func observe(_ stage: StagedContainer) throws -> Observation {
    guard let path = try stage.namedDatabase(database, at: position) else { return .noDatabase(database) }
    do {
      return try stage.readDatabase(at: path) { db in
        let rows = try Row.fetchAll(db, sql: query)
        return .rows(
          rows.map { row in row.databaseValues.map(Self.value) },
          columns: rows.first?.columnNames.map { $0 } ?? [])
      }
    } catch let error as DatabaseError {
      throw DrydockError(.sql, "\(position): the query cannot run: \(error.plainMessage)", cause: error)
    }
  }

  private static func value(_ value: DatabaseValue) -> PropertyListValue? {
    switch value.storage {
    case .null: nil
    case .int64(let number): .integer(number)
    case .double(let number): .real(number)
    case .string(let text): .string(text)
    case .blob(let data): .data([UInt8](data))
    }
  }

  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    switch (now, before) {
    case (.noDatabase(let name), .noDatabase), (.noDatabase(let name), nil):
      return .notRun("the database \(name) is not in the container, so this could not be checked")
    case (.noDatabase(let name), _): return .failed("the database \(name) was there before, and is gone now")
    case (.rows(let rows, let columns), _):
      return judge(rows, before: before, RowText(columns: columns, redactor: redactor))
    default: return .failed("the query gave no rows")
    }
  }

  private func judge(_ rows: [[PropertyListValue?]], before: Observation?, _ shown: RowText) -> Verdict {
    if case .before = expected {
      guard case .rows(let old, _) = before else {
        return .failed(
          "the database \(database) was not there before, so that there is nothing to compare with")
      }
      return rows == old
        ? .passed : .failed("the query gives \(shown.text(rows)), and gave \(shown.text(old)) before")
    }
    guard rows.count == 1, let row = rows.first, row.count == 1, let value = row.first else {
      return .failed("the query gives \(shown.text(rows)): one row with one value can be compared")
    }
    switch (expected, value) {
    case (.null, nil): return .passed
    case (.values(let values), let value?) where values.contains(value): return .passed
    case (.values(let values), _):
      return .failed(
        "the query gives \(shown.text(rows)), not \(values.map { shown.value($0, 0) }.joined(separator: " or "))"
      )
    default: return .failed("the query gives \(shown.text(rows)), not null")
    }
  }
}

/// Rows for a message: numbers as they are, the rest by its type, since rows are the user's own data.
private struct RowText {
  let columns: [String]
  let redactor: Redactor

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

  /// A value as it may be shown in a column.
  func value(_ value: PropertyListValue, _ column: Int) -> String {
    redactor.shown(value, key: columns.indices.contains(column) ? columns[column] : "")
  }
}

extension PropertyListValue {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .real: true
    default: false
    }
  }
}
