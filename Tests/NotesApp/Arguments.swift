/// The command's words: values in order, and options anywhere.
struct Arguments {
  private var words: [String]

  init(_ words: some Sequence<String>) {
    self.words = Array(words)
  }

  /// The next word that is no option.
  mutating func next(_ what: String) throws -> String {
    guard let word = words.first, !word.hasPrefix("--") else { throw AppError("\(what) is missing") }
    words.removeFirst()
    return word
  }

  /// An option's value.
  mutating func value(_ option: String) throws -> String? {
    guard let index = words.firstIndex(of: option) else { return nil }
    guard index + 1 < words.count else { throw AppError("\(option) needs a value") }
    let value = words[index + 1]
    words.removeSubrange(index...(index + 1))
    return value
  }

  /// An option's value as a number that is not negative.
  mutating func number(_ option: String) throws -> Int? {
    guard let text = try value(option) else { return nil }
    guard let number = Int(text), number >= 0 else { throw AppError("\(option) needs a number, not \(text)") }
    return number
  }

  /// Whether an option without a value is given.
  mutating func flag(_ option: String) -> Bool {
    guard let index = words.firstIndex(of: option) else { return false }
    words.remove(at: index)
    return true
  }

  /// Fails when something is left over.
  func finish() throws {
    if let word = words.first { throw AppError("\(word) is not understood here") }
  }
}
