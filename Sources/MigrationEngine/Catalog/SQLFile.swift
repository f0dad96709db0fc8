import Formats

/// A `.sql` file: directives in comments, and for each database that it is for a way up and a way down.
struct SQLFile {
  /// The directives that a file may have after `-- drydock:`.
  static let directives = ["database", "description", "destructive", "if-missing", "irreversible"]
  /// Those that are about the file as a whole.
  private static let ofTheFile: Set<String> = ["description", "irreversible"]

  /// What the file has for one database.
  struct Part {
    var values: [String: (text: String, position: YAMLPosition)] = [:]
    fileprivate(set) var up: SQLScript?
    fileprivate(set) var down: SQLScript?
    /// What stands before the first section.
    fileprivate(set) var head: SQLScript
  }

  /// At least one; each but the first starts with its database.
  private(set) var parts: [Part]

  /// A directive of whichever part has it.
  func value(_ name: String) -> (text: String, position: YAMLPosition)? {
    parts.lazy.compactMap { $0.values[name] }.first
  }

  /// Splits a file into its sections. Lines keep their numbers; directives stay in the text, where they are comments.
  init(_ bytes: [UInt8], file: String) throws {
    var section = Section(file: file, name: nil, firstLine: 1, start: 0)
    parts = [Part(head: SQLScript(bytes: [], file: file, firstLine: 1))]
    var (start, number) = (0, 0)
    while start <= bytes.count {
      // By line feeds alone: a carriage return before one belongs to the text, as the rest of a line does.
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      number += 1
      let position = YAMLPosition(file: file, line: number, column: 1)
      if let directive = Self.comment(bytes[start..<end], "drydock:") {
        if directive.prefix(while: { !$0.isWhitespace }) == "database",
          isStarted(section, bytes[section.start..<start])
        {
          self.end(section, bytes[section.start..<start])
          section = Section(file: file, name: nil, firstLine: number, start: start)
          parts.append(Part(head: SQLScript(bytes: [], file: file, firstLine: number)))
        }
        try add(directive, at: position)
      } else if let name = Self.comment(bytes[start..<end], "migrate:") {
        guard name == "up" || name == "down" else {
          throw position.error(
            "unknown section `\(name)`; " + NearestWord.hint(for: name, among: ["up", "down"]))
        }
        self.end(section, bytes[section.start..<start])
        let part = parts[parts.count - 1]
        guard (name == "up" ? part.up : part.down) == nil else {
          throw position.error(
            "a second section `\(name)`: for another database, `-- drydock: database NAME` stands before it")
        }
        section = Section(
          file: file, name: name, firstLine: number + 1, start: min(end + 1, bytes.count))
        self.end(section, [])
      }
      start = end + 1
    }
    end(section, bytes[section.start...])
  }

  /// A section, as far as it has been read.
  private struct Section {
    let file: String
    let name: String?
    let firstLine: Int
    /// Where its text starts.
    let start: Int
  }

  private mutating func end(_ section: Section, _ text: ArraySlice<UInt8>) {
    let last = parts.count - 1
    let script = SQLScript(bytes: Array(text), file: section.file, firstLine: section.firstLine)
    switch section.name {
    case "up": parts[last].up = script
    case "down": parts[last].down = script
    default: parts[last].head = script
    }
  }

  /// Whether the present part has its database and statements, so that another database starts another one.
  private func isStarted(_ section: Section, _ text: ArraySlice<UInt8>) -> Bool {
    guard let part = parts.last, part.values["database"] != nil else { return false }
    if section.name != nil || part.up != nil { return true }
    return !SQLScript(bytes: Array(text), file: section.file, firstLine: 1).isBlank
  }

  private mutating func add(_ directive: String, at position: YAMLPosition) throws {
    let words = directive.split(separator: " ", maxSplits: 1).map(String.init)
    let name = words.first ?? ""
    guard Self.directives.contains(name) else {
      throw position.error("unknown word `\(name)`; " + NearestWord.hint(for: name, among: Self.directives))
    }
    let text = words.count > 1 ? Self.trimmed(words[1]) : ""
    let isThere =
      Self.ofTheFile.contains(name) ? value(name) != nil : parts[parts.count - 1].values[name] != nil
    guard !isThere else { throw position.error("`\(name)` is there twice: keep one of them") }
    parts[parts.count - 1].values[name] = (text, position)
  }

  /// What follows `-- <word>` in a comment line.
  private static func comment(_ line: ArraySlice<UInt8>, _ word: StaticString) -> String? {
    var rest = line.drop { $0 == 0x20 || $0 == 0x09 }
    guard rest.first == UInt8(ascii: "-"), rest.dropFirst().first == UInt8(ascii: "-") else { return nil }
    rest = rest.dropFirst(2).drop { $0 == 0x20 || $0 == 0x09 }
    guard rest.starts(with: UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)) else {
      return nil
    }
    return trimmed(String(decoding: rest.dropFirst(word.utf8CodeUnitCount), as: UTF8.self))
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    let start = text.drop { $0.isWhitespace }
    return String(String(start.reversed().drop { $0.isWhitespace }.reversed()))
  }
}
