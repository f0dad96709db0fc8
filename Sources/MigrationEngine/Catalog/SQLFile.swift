import AppContainer

/// The parts of a `.sql` file: directives in comments, and two sections.
struct SQLFile {
  /// The directives that a file may have after `-- drydock:`.
  static let directives = ["database", "description", "destructive", "if-missing", "irreversible"]

  var values: [String: (text: String, position: YAMLPosition)] = [:]
  private(set) var up: SQLScript?
  private(set) var down: SQLScript?
  /// What stands before the first section.
  private(set) var head: SQLScript

  /// Splits a file into its sections. Lines keep their numbers.
  init(_ text: String, file: String) throws {
    head = SQLScript(text: "", file: file, firstLine: 1)
    var sections: [(name: String?, firstLine: Int, lines: [Substring.UTF8View])] = [(nil, 1, [])]
    // By line feeds alone: a carriage return before one belongs to the text, as the rest of a line does.
    let lines = text[...].utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let position = YAMLPosition(file: file, line: index + 1, column: 1)
      if let directive = Self.comment(Substring(line), "drydock:") {
        try add(directive, at: position)
        sections[sections.count - 1].lines.append("".utf8[...])
      } else if let section = Self.comment(Substring(line), "migrate:") {
        guard section == "up" || section == "down" else {
          throw position.error(
            "unknown section `\(section)`; " + NearestWord.hint(for: section, among: ["up", "down"]))
        }
        guard !sections.contains(where: { $0.name == section }) else {
          throw position.error("a second section `\(section)`")
        }
        sections.append((section, index + 2, []))
      } else {
        sections[sections.count - 1].lines.append(line)
      }
    }
    for section in sections {
      let text = section.lines.map { String(Substring($0)) }.joined(separator: "\n")
      let script = SQLScript(text: text, file: file, firstLine: section.firstLine)
      switch section.name {
      case "up": up = script
      case "down": down = script
      default: head = script
      }
    }
  }

  private mutating func add(_ directive: String, at position: YAMLPosition) throws {
    let words = directive.split(separator: " ", maxSplits: 1).map(String.init)
    let name = words.first ?? ""
    guard Self.directives.contains(name) else {
      throw position.error("unknown word `\(name)`; " + NearestWord.hint(for: name, among: Self.directives))
    }
    let value = words.count > 1 ? Self.trimmed(words[1]) : ""
    guard values.updateValue((value, position), forKey: name) == nil else {
      throw position.error("`\(name)` is there twice: keep one of them")
    }
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
