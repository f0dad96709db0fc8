extension Collection where Element: CustomStringConvertible {
  /// The first ones, and how many more there are: `a, b and 3 more`.
  package func listed(_ limit: Int, separator: String = ", ") -> String {
    prefix(limit).map(\.description).joined(separator: separator)
      + (count > limit ? " and \(count - limit) more" : "")
  }
}
