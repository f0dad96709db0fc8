import Foundation

/// Times in UTC as Drydock writes them.
package enum UTCTime {
  /// For names: `20261120T101500Z`.
  package static func compact(_ date: Date) -> String {
    let parts = components(date)
    return padded(parts, ["", "", "T", "", ""]) + "Z"
  }

  /// For records and people: `2026-11-20T10:15:00Z`.
  package static func text(_ date: Date) -> String {
    let parts = components(date)
    return padded(parts, ["-", "-", "T", ":", ":"]) + "Z"
  }

  /// Whether a text is a time as records have it, with or without a fraction of a second.
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

  private static func components(_ date: Date) -> [Int] {
    let seconds = Int(date.timeIntervalSince1970.rounded(.down))
    var clock = time_t(seconds)
    var parts = tm()
    gmtime_r(&clock, &parts)
    return [
      Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday), Int(parts.tm_hour),
      Int(parts.tm_min),
      Int(parts.tm_sec),
    ]
  }

  private static func padded(_ parts: [Int], _ separators: [String]) -> String {
    var text = String(format: "%04d", parts[0])
    for (part, separator) in zip(parts.dropFirst(), separators) {
      text += separator + String(format: "%02d", part)
    }
    return text
  }
}
