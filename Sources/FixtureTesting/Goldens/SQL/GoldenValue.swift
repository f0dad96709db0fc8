import AppContainer
import Foundation
import GRDB

/// A value of a row: its type in the database, and its bytes.
struct GoldenValue: Hashable {
  /// The types in SQLite's order.
  enum Kind: Int {
    case null, number, text, blob
  }

  let kind: Kind
  /// A text's own bytes in the database's encoding; of all else the literal as SQLite quotes it.
  let bytes: [UInt8]

  private init(_ kind: Kind, _ bytes: [UInt8]) { (self.kind, self.bytes) = (kind, bytes) }

  init(_ kind: Kind, _ literal: String) { self.init(kind, Array(literal.utf8)) }

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE WHEN typeof(\(column)) = 'text' THEN CAST(\(column) AS BLOB) ELSE quote(\(column)) END",
    ]
  }

  /// Reads two columns of a row.
  init(_ row: Row, _ at: Int) {
    switch row[at] as String {
    case "text": self.init(.text, Array(row[at + 1] as Data))
    case "null": self.init(.null, "NULL")
    case "blob": self.init(.blob, row[at + 1])
    default: self.init(.number, row[at + 1])
    }
  }

  /// A text.
  init(text: String, _ encoding: TextEncoding) { self.init(.text, encoding.bytes(text)) }

  /// Whether it is an integer, and no real.
  var isInteger: Bool { kind == .number && bytes.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2d } }

  /// The text; nil for what is none, or not valid in its encoding.
  func text(_ encoding: TextEncoding) -> String? { kind == .text ? encoding.text(bytes) : nil }

  /// The value in SQL.
  func literal(_ encoding: TextEncoding) -> String {
    guard kind == .text else {
      let literal = String(decoding: bytes, as: UTF8.self)
      return literal == "Inf" ? "9e999" : literal == "-Inf" ? "-9e999" : literal
    }
    // Text ends at a zero for much of what reads SQL.
    if let text = text(encoding), !text.utf8.contains(0) { return "'\(text.replacing("'", with: "''"))'" }
    return "CAST(x'\(bytes.map { String(format: "%02x", $0) }.joined())' AS TEXT)"
  }
}

extension GoldenValue: Comparable {
  /// As SQLite orders values, texts by their bytes.
  static func < (left: Self, right: Self) -> Bool {
    if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
    guard left.kind == .number else { return left.bytes.lexicographicallyPrecedes(right.bytes) }
    let texts = (String(decoding: left.bytes, as: UTF8.self), String(decoding: right.bytes, as: UTF8.self))
    if let a = Int64(texts.0), let b = Int64(texts.1) { return a < b }
    let numbers = (Double(texts.0) ?? 0, Double(texts.1) ?? 0)
    return numbers.0 == numbers.1 ? texts.0 < texts.1 : numbers.0 < numbers.1
  }
}

/// How a database encodes text.
enum TextEncoding: String {
  case utf8 = "UTF-8"
  case utf16le = "UTF-16le"
  case utf16be = "UTF-16be"

  /// Nil when the bytes are not valid.
  func text(_ bytes: [UInt8]) -> String? {
    guard self != .utf8 else { return String(validating: bytes, as: UTF8.self) }
    guard bytes.count.isMultiple(of: 2) else { return nil }
    let units = stride(from: 0, to: bytes.count, by: 2).map { at in
      let pair = self == .utf16le ? (bytes[at + 1], bytes[at]) : (bytes[at], bytes[at + 1])
      return UInt16(pair.0) << 8 | UInt16(pair.1)
    }
    return String(validating: units, as: UTF16.self)
  }

  func bytes(_ text: String) -> [UInt8] {
    switch self {
    case .utf8: Array(text.utf8)
    case .utf16le: text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    case .utf16be: text.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }
  }
}
