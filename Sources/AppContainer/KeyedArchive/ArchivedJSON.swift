import Foundation

/// Writes what was read from an archive as JSON: keys in order, nothing but what is needed between them, so that the
/// same archive gives the same bytes.
public struct ArchivedJSON {
  /// How a date is written; the names say what reads it in Swift's `JSONDecoder`.
  public enum Dates: String, CaseIterable, Sendable {
    /// ISO 8601 in UTC, with the fraction of the second where there is one.
    case iso8601
    /// ISO 8601 without fractions, which is all that `JSONDecoder`'s `.iso8601` reads. The fraction is cut off.
    case iso8601Seconds = "iso8601-seconds"
    /// A number of seconds since 1970 (`.secondsSince1970`).
    case since1970 = "seconds-since-1970"
    /// A number of milliseconds since 1970 (`.millisecondsSince1970`).
    case milliseconds = "milliseconds-since-1970"
    /// A number of seconds since 2001 (`.deferredToDate`, the default).
    case since2001 = "seconds-since-2001"
  }

  private let dates: Dates
  private var bytes: [UInt8] = []

  /// The JSON text, UTF-8.
  ///
  /// - Throws: `ContainerError` (`.unsupported`) for what JSON has no form for: a number that is none or infinite, a date
  ///   outside of the years 1 to 9999 as ISO 8601.
  public static func write(_ value: PropertyListValue, dates: Dates = .iso8601) throws -> [UInt8] {
    var writer = Self(dates: dates)
    try writer.add(value)
    return writer.bytes
  }

  private init(dates: Dates) { self.dates = dates }

  private mutating func add(_ value: PropertyListValue) throws {
    switch value {
    case .string(let text): add(text: text)
    case .boolean(let bool): add(bool ? "true" : "false")
    case .integer(let number): add(String(number))
    case .unsigned(let number): add(String(number))
    case .real(let real): try add(real, real.description)
    case .single(let real): try add(Double(real), real.description)
    case .date(let date): try add(date)
    case .data(let data): add("\"" + Data(data).base64EncodedString() + "\"")
    case .array(let values):
      add("[")
      for (index, value) in values.enumerated() {
        if index > 0 { add(",") }
        try add(value)
      }
      add("]")
    case .dictionary(let values):
      add("{")
      let sorted = values.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      for (index, pair) in sorted.enumerated() {
        if index > 0 { add(",") }
        add(text: pair.key)
        add(":")
        try add(pair.value)
      }
      add("}")
    case .unknown:
      guard value.isNull else { throw Self.unsupported("a value of an unknown kind") }
      add("null")
    }
  }

  private mutating func add(_ text: String) { bytes += text.utf8 }

  private mutating func add(_ real: Double, _ text: String) throws {
    guard real.isFinite else { throw Self.unsupported("a number that is none or infinite") }
    add(text)
  }

  private mutating func add(_ date: Date) throws {
    let seconds = date.timeIntervalSinceReferenceDate
    switch dates {
    case .iso8601, .iso8601Seconds:
      let shown = dates == .iso8601 ? date : Date(timeIntervalSinceReferenceDate: seconds.rounded(.down))
      guard YAMLDate.parse(YAMLDate.text(shown)) != nil else {
        throw Self.unsupported("a date outside of the years 1 to 9999: say `dates: seconds-since-2001`")
      }
      add(text: YAMLDate.text(shown))
    case .since1970: try add(date.timeIntervalSince1970, date.timeIntervalSince1970.description)
    case .milliseconds:
      let milliseconds = date.timeIntervalSince1970 * 1000
      try add(milliseconds, milliseconds.description)
    case .since2001: try add(seconds, seconds.description)
    }
  }

  private mutating func add(text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0x0A: add("\\n")
      case 0x0D: add("\\r")
      case 0x09: add("\\t")
      case 0..<0x20, 0x7F: add("\\u00" + (byte < 0x10 ? "0" : "") + String(byte, radix: 16))
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func unsupported(_ what: String) -> ContainerError {
    ContainerError(.unsupported, "JSON has no form for what the archive holds: \(what)")
  }
}
