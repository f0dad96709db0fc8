import Formats

/// Times of archives, as text: it sorts as the times do.
extension UTCTime {
  /// Whether a text is a time as in headers, such as `2026-11-20T10:15:00Z`.
  package static func isWhole(_ text: String) -> Bool { text.utf8.count == 20 && beginning(text) != nil }

  /// The beginning of such a time that a person means: `2026`, `2026-11`, `2026-11-14`, `2026-11-14T12:00`, with or
  /// without `Z`, or `20261114T120000Z` as in file names. Nil for anything else.
  package static func beginning(_ text: String) -> String? {
    if text.hasForm("00000000T000000Z") {
      let field = { (start: Int, length: Int) in text.dropFirst(start).prefix(length) }
      let (date, clock) = (
        [field(0, 4), field(4, 2), field(6, 2)], [field(9, 2), field(11, 2), field(13, 2)]
      )
      return beginning(date.joined(separator: "-") + "T" + clock.joined(separator: ":"))
    }
    let whole = text.hasSuffix("Z") && text.contains("T") ? text.dropLast() : text[...]
    let parts = whole.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    guard isBeginning(parts[0], of: [0...9999, 1...12, 1...31], separator: "-") else { return nil }
    if parts.count == 2 {
      guard parts[0].utf8.count == 10, isBeginning(parts[1], of: [0...23, 0...59, 0...60], separator: ":")
      else { return nil }
    }
    return String(whole)
  }

  /// Whether a text has one or more numbers, each in its range and with as many digits as the greatest of that.
  private static func isBeginning(
    _ text: Substring, of ranges: [ClosedRange<Int>], separator: Character
  ) -> Bool {
    let fields = text.split(separator: separator, omittingEmptySubsequences: false)
    return fields.count <= ranges.count
      && zip(fields, ranges).allSatisfy { field, range in
        field.utf8.count == String(range.upperBound).utf8.count
          && field.utf8.allSatisfy(\.isDigit)
          && Int(field).map(range.contains) == true
      }
  }
}
