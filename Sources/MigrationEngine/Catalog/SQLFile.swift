import AppContainer

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

  /// Splits a file into its sections. Lines keep their numbers.
  init(_ text: String, file: String) throws {
    var section = Section(file: file, name: nil, firstLine: 1)
    parts = [Part(head: section.script)]
    // By line feeds alone: a carriage return before one belongs to the text, as the rest of a line does.
    let lines = text[...].utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let position = YAMLPosition(file: file, line: index + 1, column: 1)
      if let directive = Self.comment(Substring(line), "drydock:") {
        if directive.prefix(while: { !$0.isWhitespace }) == "database", isStarted(section) {
          end(section)
          section = Section(file: file, name: nil, firstLine: index + 1)
          parts.append(Part(head: section.script))
        }
        try add(directive, at: position)
        section.lines.append("".utf8[...])
      } else if let name = Self.comment(Substring(line), "migrate:") {
        guard name == "up" || name == "down" else {
          throw position.error(
            "unknown section `\(name)`; " + NearestWord.hint(for: name, among: ["up", "down"]))
        }
        end(section)
        let part = parts[parts.count - 1]
        guard (name == "up" ? part.up : part.down) == nil else {
          throw position.error(
            "a second section `\(name)`: for another database, `-- drydock: database NAME` stands before it")
        }
        section = Section(file: file, name: name, firstLine: index + 2)
        end(section)
      } else {
        section.lines.append(line)
      }
    }
    end(section)
  }

  /// The lines of a section, as far as they have been read.
  private struct Section {
    let file: String
    let name: String?
    let firstLine: Int
    var lines: [Substring.UTF8View] = []

    var script: SQLScript {
      SQLScript(
        text: lines.map { String(Substring($0)) }.joined(separator: "\n"), file: file, firstLine: firstLine)
    }
  }

  private mutating func end(_ section: Section) {
    let last = parts.count - 1
    switch section.name {
    case "up": parts[last].up = section.script
    case "down": parts[last].down = section.script
    default: parts[last].head = section.script
    }
  }

  /// Whether the present part has its database and statements, so that another database starts another one.
  private func isStarted(_ section: Section) -> Bool {
    guard let part = parts.last, part.values["database"] != nil else { return false }
    return section.name != nil || part.up != nil || !section.script.isBlank
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
  private static func comment(_ line: Substring, _ word: String) -> String? {
    var rest = trimmed(line)[...]
    guard rest.hasPrefix("--") else { return nil }
    rest = trimmed(rest.dropFirst(2))[...]
    return rest.hasPrefix(word) ? trimmed(rest.dropFirst(word.count)) : nil
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    let start = text.drop { $0.isWhitespace }
    return String(String(start.reversed().drop { $0.isWhitespace }.reversed()))
  }
}
