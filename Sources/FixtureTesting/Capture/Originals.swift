import AppContainer

/// The values of a container that must not stand in its fixture.
struct Originals {
  /// What is known of one.
  struct Entry {
    /// Whether it is a secret; else it was chosen.
    var isSecret: Bool
    /// Where it was found first, for people.
    var source: String
    /// The text as it was found, in one way or another.
    var spellings: Set<String> = []
    /// Whether it tells a device or a container apart.
    var isIdentifier = false
  }

  /// Texts, line by line, with the letters A to Z in lower case: who writes an address in capitals means the same one.
  private(set) var texts: [String: Entry] = [:]
  /// Bytes that are no text.
  private(set) var data: [[UInt8]: Entry] = [:]

  /// Takes a text; what would look the same if it were made up tells nothing.
  mutating func add(_ text: String, isSecret: Bool, source: String) {
    for line in Self.lines(of: text).lazy.map(\.content) where Pseudonyms.canChange(line) {
      var entry = texts[line.asciiLowercased] ?? Entry(isSecret: isSecret, source: source)
      entry.isSecret = entry.isSecret || isSecret
      entry.spellings.insert(line)
      texts[line.asciiLowercased] = entry
    }
  }

  /// Takes an identifier of a device or a container; a UUID counts with its dashes.
  mutating func add(identifier: String, source: String) {
    let text = DeviceIdentifiers.uuid(identifier) ?? identifier
    add(text, isSecret: false, source: source)
    texts[text.asciiLowercased]?.isIdentifier = true
  }

  /// Takes bytes; few of them stand anywhere by chance.
  mutating func add(_ bytes: [UInt8], isSecret: Bool, source: String) {
    guard bytes.count >= PatternIndex.least else { return }
    data[bytes, default: Entry(isSecret: isSecret, source: source)].isSecret =
      isSecret || data[bytes]?.isSecret == true
  }

  /// The lines of a text: white space that a line starts and ends with belongs to none.
  static func lines(of text: String) -> [(content: String, gap: String)] {
    var lines: [(content: String, gap: String)] = []
    var rest = Substring(text)
    while !rest.isEmpty {
      let line = rest.prefix { !$0.isNewline }
      let lead = line.prefix { $0.isWhitespace }
      if !lead.isEmpty { lines.append(("", String(lead))) }
      var content = line.dropFirst(lead.count)
      while content.last?.isWhitespace == true { content.removeLast() }
      let end = rest[content.endIndex...].prefix { $0.isWhitespace }
      lines.append((String(content), String(end)))
      rest = rest[end.endIndex...]
    }
    return lines
  }
}
