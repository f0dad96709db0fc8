import AppContainer
import GRDB

/// A value of a row as it is shown. No more of it than that is taken out of the database.
struct RowValue {
  private static let taken = 2000
  private static let shownLength = 120
  /// Above so many bytes a secret has no fingerprint.
  private static let markedLength = 1 << 16

  private let type: String
  private let text: String
  private let length: Int
  private let mark: String?

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE typeof(\(column)) WHEN 'text' THEN substr(\(column), 1, \(taken)) WHEN 'blob' THEN '' "
        + "ELSE CAST(\(column) AS TEXT) END",
      "length(\(column))",
      // What is not taken out as a whole is fingerprinted where it is.
      "CASE WHEN length(\(column)) <= \(markedLength) AND (typeof(\(column)) = 'blob' "
        + "OR typeof(\(column)) = 'text' AND length(\(column)) > \(taken)) "
        + "THEN \(Redactor.markFunction)(\(column)) END",
    ]
  }

  /// Reads the columns from a number on, and moves it behind them.
  init(_ row: Row, _ at: inout Int) {
    type = row[at] ?? "null"
    text = row[at + 1] ?? ""
    length = row[at + 2] ?? 0
    mark = row[at + 3]
    at += 4
  }

  /// The text when there is all of it here, to see whether it names what stands beside it.
  var name: String? { type == "text" && isWhole ? text : nil }

  private var isWhole: Bool { length <= text.unicodeScalars.count }

  /// The value of a column for people: `"text"`, `12`, `blob (5 bytes)`; secrets by their length.
  func shown(_ name: SecretName, _ redactor: Redactor) -> String {
    switch type {
    case "null": return "null"
    case "text": return shownText(name, redactor)
    case "blob":
      let isSecret = length > 0 && (name >= .code || name == .suspicious && length >= 8)
      return isSecret ? redactor.secret("\(length) bytes", mark) : "blob (\(length) bytes)"
    case "integer": return Int64(text).map { redactor.shown(.integer($0), named: name) } ?? text
    default: return Double(text).map { shownReal($0, name, redactor) } ?? text
    }
  }

  private func shownReal(_ number: Double, _ name: SecretName, _ redactor: Redactor) -> String {
    SecretPattern.isSecret(.real(number), named: name) ? redactor.shown(.real(number), named: name) : text
  }

  private func shownText(_ name: SecretName, _ redactor: Redactor) -> String {
    if isWhole {
      let shown = redactor.shown(.string(text), named: name)
      if length <= Self.shownLength || shown != "\"\(text)\"" { return shown }
    } else if SecretPattern.isSecret(.string(text), named: name) {
      return redactor.secret("\(length) characters", mark)
    }
    return "\"\(text.prefix(Self.shownLength))…\" (\(length) characters)"
  }
}

extension Redactor {
  fileprivate static let markFunction = "drydock_mark"

  /// The SQL function that fingerprints a value inside of a database.
  var databaseFunction: DatabaseFunction {
    DatabaseFunction(Self.markFunction, argumentCount: 1, pure: true) { values in
      switch values.first?.storage {
      case .blob(let data): data.withUnsafeBytes { mark($0) }
      case .string(var text): text.withUTF8 { mark(UnsafeRawBufferPointer($0)) }
      default: nil
      }
    }
  }
}

/// What the names of a table and of its columns say about the values in them.
struct RowNames {
  private let fields: SecretFields
  private let columns: [String: SecretName]

  init(table: String, columns: [String]) {
    // A store's metadata is a property list to which apps add what they like.
    let hidden: Set<String> = table == "Z_METADATA" ? ["Z_PLIST"] : []
    let fields = SecretFields(columns: columns, of: SecretName(table))
    self.fields = fields
    self.columns = Dictionary(
      columns.map { ($0, hidden.contains($0) ? .secret : fields[$0]) }, uniquingKeysWith: max)
  }

  /// What is known about each column of a row.
  ///
  /// - Parameter values: all columns of the row, and whether each belongs to its key.
  func names(in values: [(name: String, value: RowValue, isKey: Bool)]) -> [String: SecretName] {
    var fields = fields
    var isNamed = false
    for (name, value, isKey) in values {
      if let text = value.name, fields.note(text, in: name, isKey: isKey) { isNamed = true }
    }
    if !isNamed { return columns }
    // The key is what names the rest, and is shown unless it is a secret itself.
    let keys = Set(values.filter(\.isKey).map(\.name))
    return Dictionary(
      columns.map { ($0.key, keys.contains($0.key) ? $0.value : max($0.value, fields[$0.key])) },
      uniquingKeysWith: max)
  }
}
