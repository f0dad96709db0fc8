import Formats
import Foundation

/// The types that a setting can be converted to, and how. What has no exact counterpart does not convert.
package enum ValueType: String, CaseIterable, Sendable {
  case string, integer, real, boolean, date, data

  /// The type of a simple value.
  init?(of value: PropertyListValue) {
    switch value {
    case .string: self = .string
    case .integer, .unsigned: self = .integer
    case .real, .single: self = .real
    case .boolean: self = .boolean
    case .date: self = .date
    case .data: self = .data
    case .array, .dictionary, .unknown: return nil
    }
  }

  /// The value in this type, or nil when it does not fit without a guess.
  func convert(_ value: PropertyListValue) -> PropertyListValue? {
    switch self {
    case .string: Self.string(value).map { .string($0) }
    case .integer: Self.integer(value)
    case .real: Self.real(value)
    case .boolean: Self.boolean(value).map { .boolean($0) }
    case .date: Self.date(value).map { .date($0) }
    case .data: Self.data(value).map { .data($0) }
    }
  }

  private static func string(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single, .date: value.description
    case .data(let bytes): String(validating: bytes, as: UTF8.self)
    case .array, .dictionary, .unknown: nil
    }
  }

  /// From text in decimal, from a Bool (1 and 0), and from a real without a fraction.
  private static func integer(_ value: PropertyListValue) -> PropertyListValue? {
    switch value {
    case .integer, .unsigned: return value
    case .boolean(let bool): return .integer(bool ? 1 : 0)
    case .real(let real): return Int64(exactly: real).map { .integer($0) }
    case .single(let real): return Int64(exactly: real).map { .integer($0) }
    case .string(let text):
      if let number = Int64(text) { return .integer(number) }
      return UInt64(text).map { .unsigned($0) }
    default: return nil
    }
  }

  /// From text, and from an integer that a real holds exactly.
  private static func real(_ value: PropertyListValue) -> PropertyListValue? {
    switch value {
    case .real, .single: return value
    case .integer(let number): return Double(exactly: number).map { .real($0) }
    case .unsigned(let number): return Double(exactly: number).map { .real($0) }
    case .string(let text): return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
    default: return nil
    }
  }

  /// From 1 and 0, and from the words that UserDefaults takes for a Bool.
  private static func boolean(_ value: PropertyListValue) -> Bool? {
    switch value {
    case .boolean(let bool): return bool
    case .integer(1), .real(1): return true
    case .integer(0), .real(0): return false
    case .string(let text):
      switch text.lowercased() {
      case "true", "yes", "1": return true
      case "false", "no", "0": return false
      default: return nil
      }
    default: return nil
    }
  }

  /// From ISO 8601, and from seconds since 1970-01-01 UTC.
  private static func date(_ value: PropertyListValue) -> Date? {
    switch value {
    case .date(let date): date
    case .integer(let seconds): Date(timeIntervalSince1970: Double(seconds))
    case .real(let seconds): seconds.isFinite ? Date(timeIntervalSince1970: seconds) : nil
    case .string(let text): YAMLDate.parse(text)
    default: nil
    }
  }

  /// From text, as UTF-8.
  private static func data(_ value: PropertyListValue) -> [UInt8]? {
    switch value {
    case .data(let bytes): bytes
    case .string(let text): Array(text.utf8)
    default: nil
    }
  }
}
