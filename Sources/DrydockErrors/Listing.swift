extension Collection where Element: CustomStringConvertible {
  /// The first ones, and how many more there are: `a, b and 3 more`.
  ///
  /// - Parameter total: how many there are, where these are only some of them.
  package func listed(_ limit: Int, of total: Int? = nil, separator: String = ", ") -> String {
    let rest = Swift.max(total ?? 0, count) - Swift.min(limit, count)
    return prefix(limit).map(\.description).joined(separator: separator)
      + (rest > 0 ? " and \(rest) more" : "")
  }

  /// The first ones as lines, and a line on how many more there are: `… and 3 more`.
  ///
  /// - Parameters:
  ///   - total: how many there are, where these are only some of them.
  ///   - what: what the last line says of them.
  package func lines(_ limit: Int = .max, of total: Int? = nil, more what: String = "more") -> [String] {
    let rest = Swift.max(total ?? 0, count) - Swift.min(limit, count)
    return prefix(limit).map(\.description) + (String.more(rest, what).map { [$0] } ?? [])
  }
}

extension Int {
  /// The number and a noun, such as `1 file` or `2 files`.
  package func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}

extension String {
  /// What ends a list of which only the first ones are shown: `… and 3 more`; nil when these are all.
  package static func more(_ rest: Int, _ what: String = "more") -> String? {
    rest > 0 ? "… and \(rest) \(what)" : nil
  }
}
