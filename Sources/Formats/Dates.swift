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
      let day = cursor.number(2), (1...12).contains(month), day >= 1, day <= days(in: month, of: year)
    else { return nil }
    var seconds = Int64(civilDays(year, month, day)) * 86_400
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
    let seconds = Int64(whole) + referenceOffset
    let dayNumber = Int((Double(seconds) / 86_400).rounded(.down))
    let rest = Int(seconds - Int64(dayNumber) * 86_400)
    let (year, month, day) = civil(dayNumber)
    var text = "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))T"
    text += "\(pad(rest / 3600, 2)):\(pad(rest / 60 % 60, 2)):\(pad(rest % 60, 2))"
    if micros > 0 {
      var digits = pad(Int(micros), 6)
      while digits.hasSuffix("0") { digits.removeLast() }
      text += ".\(digits)"
    }
    return text + "Z"
  }

  /// Whether seconds since the reference date are in the years 1 to 9999.
  static func hasText(_ seconds: Double) -> Bool { seconds >= -63_113_904_000 && seconds < 252_455_616_000 }

  private static func pad(_ value: Int, _ width: Int) -> String {
    let digits = String(abs(value))
    let zeros = String(repeating: "0", count: max(0, width - digits.count))
    return (value < 0 ? "-" : "") + zeros + digits
  }

  private static func days(in month: Int, of year: Int) -> Int {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
  }

  /// Days since 1970-01-01 in the proleptic Gregorian calendar.
  private static func civilDays(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let part = (5 * dayOfYear + 2) / 153
    let month = part < 10 ? part + 3 : part - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * part + 2) / 5 + 1)
  }

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
        guard byte >= 0x30, byte <= 0x39 else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      index += width
      return value
    }

    mutating func fraction() -> Double? {
      let start = index
      while index < bytes.count, bytes[index] >= 0x30, bytes[index] <= 0x39 { index += 1 }
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
    let pattern = Array("0000-00-00T00:00:00".utf8)
    let bytes = Array(text.utf8)
    let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
    guard bytes.count > pattern.count, bytes.last == UInt8(ascii: "Z"),
      zip(bytes, pattern).allSatisfy({ $1 == 0x30 ? isDigit($0) : $0 == $1 })
    else { return false }
    let fraction = bytes[pattern.count...].dropLast()
    return fraction.isEmpty
      || (fraction.first == UInt8(ascii: ".") && fraction.count > 1
        && fraction.dropFirst().allSatisfy(isDigit))
  }
}
