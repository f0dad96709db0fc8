extension Collection where Element: CustomStringConvertible {
  /// The first ones, and how many more there are: `a, b and 3 more`.
  package func listed(_ limit: Int, separator: String = ", ") -> String {
    prefix(limit).map(\.description).joined(separator: separator)
      + (count > limit ? " and \(count - limit) more" : "")
  }

  /// The first ones as lines, and a line on how many more there are: `… and 3 more`.
  ///
  /// - Parameters:
  ///   - total: how many there are, where these are only some of them.
  ///   - what: what the last line says of them.
  package func lines(_ limit: Int = .max, of total: Int? = nil, more what: String = "more") -> [String] {
    let rest = Swift.max(total ?? 0, count) - Swift.min(limit, count)
    return prefix(limit).map(\.description) + (rest > 0 ? ["… and \(rest) \(what)"] : [])
  }
}
