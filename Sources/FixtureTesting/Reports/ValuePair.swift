import BackupRepository

/// An expected value and the one that was found, each on one line; of long ones the part where they differ.
struct ValuePair: Equatable {
  var expected: String, found: String

  /// As much of a long value is shown.
  static let limit = 160
  /// As much of it before the first difference.
  static let context = 40

  /// Nil when the message says it all.
  init?(_ finding: FixtureFinding) {
    if finding.expected == nil && finding.found == nil { return nil }
    self.init(expected: finding.expected, found: finding.found)
  }

  init(expected: String?, found: String?) {
    let (left, right) = (Array((expected ?? "nothing").printable), Array((found ?? "nothing").printable))
    let same = zip(left, right).prefix { $0 == $1 }.count
    let start = max(left.count, right.count) <= Self.limit ? 0 : max(0, same - Self.context)
    (self.expected, self.found) = (Self.part(left, from: start), Self.part(right, from: start))
  }

  private static func part(_ text: [Character], from start: Int) -> String {
    let start = min(start, text.count)
    let shown = text[start...].prefix(limit)
    return (start > 0 ? "…" : "") + String(shown) + (start + shown.count < text.count ? "…" : "")
  }
}
