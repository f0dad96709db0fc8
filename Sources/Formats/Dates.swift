import DrydockErrors
import Foundation

/// Dates after `!date`: ISO 8601 with fractions, such as `2026-11-20T10:15:00.123Z`.
package enum YAMLDate {
  /// Seconds from 1970-01-01 to Foundation's reference date, 2001-01-01.
  private static let referenceOffset: Int64 = 978_307_200

  /// The date, or nil when the text is not `YYYY-MM-DD` or `YYYY-MM-DD[T ]hh:mm:ss[.f…](Z|±hh:mm)`.
  /// A date without a time is midnight UTC.
  package static func parse(_ text: String) -> Date? {
    var cursor = Cursor(bytes: Array(text.utf8))
    guard let year = cursor.number(4), cursor.take("-"), let month = cursor.number(2), cursor.take("-"),
      let day = cursor.number(2)
    else { return nil }
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
    var seconds = Int64(timegm(&time))
    // The system normalizes 30 February to a day in March.
    guard time.tm_mon == month - 1, time.tm_mday == day else { return nil }
    var fraction = 0.0
    if !cursor.isAtEnd {
      guard cursor.take("T") || cursor.take("t") || cursor.take(" "), let hour = cursor.number(2),
        cursor.take(":"), let minute = cursor.number(2), cursor.take(":"), let second = cursor.number(2),
        hour < 24, minute < 60, second < 60
      else { return nil }
      seconds += Int64(hour * 3600 + minute * 60 + second)
      if cursor.take(".") {
        guard let value = cursor.fraction() else { return nil }
        fraction = value
      }
      guard let offset = cursor.zone(), cursor.isAtEnd else { return nil }
      seconds -= Int64(offset)
    }
    return Date(timeIntervalSinceReferenceDate: Double(seconds - referenceOffset) + fraction)
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

  /// Whether seconds since the reference date are in the years 1 to 9999.
  static func hasText(_ seconds: Double) -> Bool { seconds >= -63_113_904_000 && seconds < 252_455_616_000 }

  private struct Cursor {
    var bytes: [UInt8]
    var index = 0
    var isAtEnd: Bool { index == bytes.count }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
      guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
      index += 1
      return true
    }

    mutating func number(_ width: Int) -> Int? {
      guard index + width <= bytes.count else { return nil }
      var value = 0
      for byte in bytes[index..<index + width] {
        guard byte.isDigit else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      index += width
      return value
    }

    mutating func fraction() -> Double? {
      let start = index
      while index < bytes.count, bytes[index].isDigit { index += 1 }
      guard index > start else { return nil }
      return Double("0." + String(decoding: bytes[start..<index], as: UTF8.self))
    }

    /// The offset from UTC in seconds.
    mutating func zone() -> Int? {
      if take("Z") || take("z") { return 0 }
      let sign = take("+") ? 1 : take("-") ? -1 : 0
      guard sign != 0, let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60
      else { return nil }
      return sign * (hours * 3600 + minutes * 60)
    }
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
