import AppContainer
import GRDB

/// A value of a row as it is shown. No more of it than that is taken out of the database.
struct RowValue {
  private static let taken = 2000
  private static let shownLength = 120

  private let type: String
  private let text: String
  private let length: Int

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE typeof(\(column)) WHEN 'text' THEN substr(\(column), 1, \(taken)) WHEN 'blob' THEN '' "
        + "ELSE CAST(\(column) AS TEXT) END",
      "length(\(column))",
    ]
  }

  /// Reads the columns from a number on, and moves it behind them.
  init(_ row: Row, _ at: inout Int) {
    type = row[at] ?? "null"
    text = row[at + 1] ?? ""
    length = row[at + 2] ?? 0
    at += 3
  }

  /// Whether, as a key, it says that the row's values are secret: `auth_token` in a table of names and values.
  var namesSecret: Bool { type == "text" && text.count < 100 && Redaction.isSecret(key: text) }

  /// The value of a column for people: `"text"`, `12`, `blob (5 bytes)`.
  func shown(_ column: String, isSecret: Bool) -> String {
    switch type {
    case "null": return "null"
    case "text":
      // Of a long token only its beginning is here.
      let isToken = text.hasPrefix("eyJ") && length > text.count
      if isSecret || isToken || Redaction.isSecret(key: column, value: .string(text)) {
        return "(secret, \(length) characters)"
      }
      if length <= Self.shownLength { return "\"\(text)\"" }
      return "\"\(text.prefix(Self.shownLength))…\" (\(length) characters)"
    case "blob":
      let isSecret = isSecret || Redaction.isSecret(key: column)
      return isSecret ? "(secret, \(length) bytes)" : "blob (\(length) bytes)"
    default: return isSecret || Redaction.isSecret(key: column) ? "(secret, \(type))" : text
    }
  }
}
