import DrydockErrors
import Foundation

/// How the dates of an archive are written in JSON; the comments name what reads it in Swift's `JSONDecoder`.
package enum ArchivedDates: String, CaseIterable, Sendable {
  /// ISO 8601 in UTC, with the fraction of the second where there is one.
  case iso8601
  /// ISO 8601 without fractions, which is all that `.iso8601` reads. The fraction is cut off.
  case iso8601Seconds = "iso8601-seconds"
  /// A number of seconds since 1970 (`.secondsSince1970`).
  case since1970 = "seconds-since-1970"
  /// A number of milliseconds since 1970 (`.millisecondsSince1970`).
  case milliseconds = "milliseconds-since-1970"
  /// A number of seconds since 2001 (`.deferredToDate`, the default).
  case since2001 = "seconds-since-2001"

  /// A date in this form; nil for one that it has no form for: ISO 8601 knows the years 1 to 9999.
  func value(_ date: Date) -> JSONValue? {
    let seconds = date.timeIntervalSinceReferenceDate
    switch self {
    case .iso8601, .iso8601Seconds:
      let shown = self == .iso8601 ? date : Date(timeIntervalSinceReferenceDate: seconds.rounded(.down))
      let text = YAMLDate.text(shown)
      return YAMLDate.parse(text) == nil ? nil : .string(JSONString(text))
    case .since1970: return JSONNumber(date.timeIntervalSince1970).map { .number($0) }
    case .milliseconds: return JSONNumber(date.timeIntervalSince1970 * 1000).map { .number($0) }
    case .since2001: return JSONNumber(seconds).map { .number($0) }
    }
  }
}

extension JSONValue {
  /// What was read from an archive, as JSON has it: keys in order, data in base64.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for what JSON has no form for: a number that is none or infinite, a date
  ///   that the form of dates has none for.
  package init(archived value: PropertyListValue, dates: ArchivedDates) throws {
    switch value {
    case .date(let date):
      guard let value = dates.value(date) else {
        throw Self.unsupported("a date outside of the years 1 to 9999: say `dates: seconds-since-2001`")
      }
      self = value
    case .data(let bytes): self = .string(JSONString(Data(bytes).base64EncodedString()))
    case .array(let values):
      self = .array(JSONArray(try values.map { try JSONValue(archived: $0, dates: dates) }))
    case .dictionary(let values):
      let members = try values.sorted().map { key, value in
        (key: key, value: try JSONValue(archived: value, dates: dates))
      }
      self = .object(JSONObject(members))
    case .unknown where value.isNull: self = .null
    default:
      guard let simple = JSONValue(value) else { throw Self.unsupported("a number that is none or infinite") }
      self = simple
    }
  }

  private static func unsupported(_ what: String) -> DrydockError {
    DrydockError(.unsupported, "JSON has no form for what the archive holds: \(what)")
  }
}
