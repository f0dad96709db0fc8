import DrydockErrors
import Foundation

/// Dates after `!date`: ISO 8601 with fractions, such as `2026-11-20T10:15:00.123Z`.
package enum YAMLDate {
  /// Seconds from 1970-01-01 to Foundation's reference date, 2001-01-01.
  private static let referenceOffset: Int64 = 978_307_200

  /// The date, or nil when the text is not `YYYY-MM-DD` or `YYYY-MM-DD[T ]hh:mm:ss[.f…](Z|±hh:mm)`.
  /// A date without a time is midnight UTC.
  package static func parse(_ text: String) -> Date? {
    var bytes = Array(text.utf8)[...]
    guard let day = take(&bytes, "0000-00-00") else { return nil }
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday) = (Int32(day[0] - 1900), Int32(day[1] - 1), Int32(day[2]))
    var seconds = Int64(timegm(&time))
    // The system normalizes 30 February to a day in March.
    guard time.tm_mon == day[1] - 1, time.tm_mday == day[2] else { return nil }
    var fraction = 0.0
    if !bytes.isEmpty {
      guard ["T", "t", " "].contains(UnicodeScalar(bytes.removeFirst())),
        let clock = take(&bytes, "00:00:00"),
        clock[0] < 24, clock[1] < 60, clock[2] < 60
      else { return nil }
      seconds += Int64(clock[0] * 3600 + clock[1] * 60 + clock[2])
      if bytes.first == UInt8(ascii: ".") {
        let digits = bytes.dropFirst().prefix(while: \.isDigit)
        if digits.isEmpty { return nil }
        fraction = Double("0." + String(decoding: digits, as: UTF8.self)) ?? 0
        bytes = bytes[digits.endIndex...]
      }
      guard let sign = bytes.popFirst() else { return nil }
      switch sign {
      case UInt8(ascii: "Z"), UInt8(ascii: "z"): break
      case UInt8(ascii: "+"), UInt8(ascii: "-"):
        guard let zone = take(&bytes, "00:00"), zone[0] < 24, zone[1] < 60 else { return nil }
        seconds -= Int64((zone[0] * 3600 + zone[1] * 60) * (sign == UInt8(ascii: "+") ? 1 : -1))
      default: return nil
      }
      guard bytes.isEmpty else { return nil }
    }
    return Date(timeIntervalSinceReferenceDate: Double(seconds - referenceOffset) + fraction)
  }

  /// Takes what has a form from the start, in which each `0` is a digit, and gives its numbers.
  private static func take(_ bytes: inout ArraySlice<UInt8>, _ form: StaticString) -> [Int]? {
    let head = bytes.prefix(form.utf8CodeUnitCount)
    guard String(decoding: head, as: UTF8.self).hasForm(form) else { return nil }
    bytes = bytes[head.endIndex...]
    return head.split { !$0.isDigit }.map { $0.reduce(0) { $0 * 10 + Int($1 - 0x30) } }
  }

  /// The text in UTC that `parse` reads back as the same date, to the microsecond.
  package static func text(_ date: Date) -> String {
    let total = date.timeIntervalSinceReferenceDate
    guard hasText(total) else {
      return "\(total) seconds since 2001-01-01"
    }
    var whole = total.rounded(.down)
    var micros = ((total - whole) * 1_000_000).rounded()
    if micros >= 1_000_000 {
      whole += 1
      micros = 0
    }
    var seconds = time_t(whole) + time_t(referenceOffset)
    var time = tm()
    gmtime_r(&seconds, &time)
    var text = String(
      format: "%04d-%02d-%02dT%02d:%02d:%02d", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday,
      time.tm_hour,
      time.tm_min, time.tm_sec)
    if micros > 0 {
      var digits = String(format: "%06d", Int(micros))
      while digits.hasSuffix("0") { digits.removeLast() }
      text += ".\(digits)"
    }
    return text + "Z"
  }

  /// The text of a date's whole second; nil before the year 1 and after 9999.
  static func wholeText(_ date: Date) -> String? {
    let second = date.timeIntervalSinceReferenceDate.rounded(.down)
    return hasText(second) ? text(Date(timeIntervalSinceReferenceDate: second)) : nil
  }

  /// Whether seconds since the reference date are in the years 1 to 9999.
  private static func hasText(_ seconds: Double) -> Bool {
    seconds >= -63_113_904_000 && seconds < 252_455_616_000
  }
}

/// Times in UTC as in archive names and records.
package enum UTCTime {
  /// For names: `20261120T101500Z`.
  package static func compact(_ date: Date) -> String { text(date).filter { $0 != "-" && $0 != ":" } }

  /// For records and output: `2026-11-20T10:15:00Z`.
  package static func text(_ date: Date) -> String {
    YAMLDate.text(Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)))
  }

  /// Whether a text is such a time, with or without a fraction of a second.
  package static func isText(_ text: String) -> Bool {
    text.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z/) != nil
  }
}
