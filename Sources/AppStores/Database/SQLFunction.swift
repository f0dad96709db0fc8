import Cryptography
import DrydockErrors
import Foundation
import GRDB

/// A SQL function that Drydock provides for an app's function: `functions:` of `drydock.yaml`. NULL gives NULL.
package enum SQLFunction: String, CaseIterable, Sendable {
  /// Text or data as base64 text.
  case base64
  /// Base64 text as data.
  case base64Decode = "base64-decode"
  /// Text or data as upper-case hexadecimal text, as SQLite's `hex`.
  case hex
  /// Hexadecimal text as data.
  case hexDecode = "hex-decode"
  /// The SHA-256 of text or data as lower-case hexadecimal text.
  case sha256
  /// A random UUID in lower case.
  case uuid
  /// Whether the second argument matches the regular expression in the first, as called by `X REGEXP Y`.
  case regexp
  /// `2026-11-21T02:06:58Z` as seconds since 1970.
  case dateToUnix = "date-to-unix"
  /// Seconds since 1970 as `2026-11-21T02:06:58Z`.
  case unixToDate = "unix-to-date"
  /// Apple's seconds since 2001 as seconds since 1970.
  case appleToUnix = "apple-to-unix"
  /// Seconds since 1970 as Apple's seconds since 2001.
  case unixToApple = "unix-to-apple"

  private static let appleEpoch = 978_307_200

  private var argumentCount: Int {
    switch self {
    case .uuid: 0
    case .regexp: 2
    default: 1
    }
  }

  func add(named name: String, to db: Database) {
    db.add(
      function: DatabaseFunction(name, argumentCount: argumentCount, pure: self != .uuid) { values in
        if values.contains(where: \.isNull) { return nil }
        return try call(values, name)
      })
  }

  private func call(_ values: [DatabaseValue], _ name: String) throws -> (any DatabaseValueConvertible)? {
    switch self {
    case .uuid: return UUID().uuidString.lowercased()
    case .base64: return try Self.data(values[0]).base64EncodedString()
    case .base64Decode:
      guard let data = Data(base64Encoded: try Self.text(values[0])) else {
        throw Self.error("\(name): not base64")
      }
      return data
    case .hex: return try Self.data(values[0]).hex.uppercased()
    case .hexDecode: return try Self.unhex(Self.text(values[0]), name)
    case .sha256:
      let digest = try SHA256()
      try Self.data(values[0]).withUnsafeBytes { digest.update($0) }
      return try digest.finalize().hex
    case .regexp: return try Self.matches(Self.text(values[1]), Self.text(values[0]))
    case .dateToUnix:
      guard let date = try? Date(Self.text(values[0]), strategy: .iso8601) else {
        throw Self.error("\(name): not a date such as 2026-11-21T02:06:58Z")
      }
      return Int(date.timeIntervalSince1970)
    case .unixToDate: return try Date(timeIntervalSince1970: Self.number(values[0], name)).formatted(.iso8601)
    case .appleToUnix: return Self.shifted(values[0], by: Self.appleEpoch)
    case .unixToApple: return Self.shifted(values[0], by: -Self.appleEpoch)
    }
  }

  /// Text as UTF-8, numbers as their text.
  private static func data(_ value: DatabaseValue) throws -> Data {
    if case .blob(let data) = value.storage { return data }
    return Data(try text(value).utf8)
  }

  private static func text(_ value: DatabaseValue) throws -> String {
    switch value.storage {
    case .string(let text): return text
    case .int64(let number): return String(number)
    case .double(let number): return String(number)
    case .blob(let data):
      guard let text = String(validating: data, as: UTF8.self) else { throw error("data that is not text") }
      return text
    case .null: return ""
    }
  }

  private static func number(_ value: DatabaseValue, _ name: String) throws -> Double {
    guard let number = Double.fromDatabaseValue(value), abs(number) < 1e11 else {
      throw error("\(name): not a number of seconds")
    }
    return number
  }

  /// Integers remain integers.
  private static func shifted(_ value: DatabaseValue, by seconds: Int) -> (any DatabaseValueConvertible)? {
    if case .int64(let number) = value.storage {
      let (sum, overflow) = number.addingReportingOverflow(Int64(seconds))
      return overflow ? nil : sum
    }
    return Double.fromDatabaseValue(value).map { $0 + Double(seconds) }
  }

  private static func unhex(_ text: String, _ name: String) throws -> Data {
    guard let bytes = [UInt8](hex: text.utf8) else { throw error("\(name): not hexadecimal") }
    return Data(bytes)
  }

  private static func matches(_ text: String, _ pattern: String) throws -> Bool {
    let expression: NSRegularExpression
    do {
      expression = try NSRegularExpression(pattern: pattern)
    } catch {
      throw self.error("not a regular expression")
    }
    return expression.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
  }

  private static func error(_ message: String) -> DatabaseError {
    DatabaseError(resultCode: .SQLITE_ERROR, message: message)
  }

  package static var names: [String] { allCases.map(\.rawValue) }
}
