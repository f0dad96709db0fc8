/// Times of archives, all UTC, as text: it sorts as the times do.
enum ArchiveTime {
  /// Whether a text is a time as headers have it, such as `2026-11-20T10:15:00Z`.
  static func isWhole(_ text: String) -> Bool { text.utf8.count == 20 && beginning(text) != nil }

  /// The beginning of such a time that a person means: `2026`, `2026-11`, `2026-11-14`, `2026-11-14T12:00`, with or
  /// without `Z`, or `20261114T120000Z` as file names have it. Nil for what is no time.
  static func beginning(_ text: String) -> String? {
    if let parts = text.wholeMatch(of: #/([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z/#)?
      .output
    {
      return beginning("\(parts.1)-\(parts.2)-\(parts.3)T\(parts.4):\(parts.5):\(parts.6)Z")
    }
    let date = #/[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?/#
    let clock = #/([01][0-9]|2[0-3])(:[0-5][0-9](:([0-5][0-9]|60))?)?Z?/#
    let parts = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    guard let day = parts.first, day.wholeMatch(of: date) != nil else { return nil }
    if parts.count == 1 { return text }
    guard day.utf8.count == 10, parts[1].wholeMatch(of: clock) != nil else { return nil }
    return text.hasSuffix("Z") ? String(text.dropLast()) : text
  }
}
