import AppContainer

/// The parts of a `.sql` file: directives in comments, and two sections.
struct SQLFile {
  /// The directives that a file may have after `-- drydock:`.
  static let directives = ["database", "description", "destructive", "if-missing", "irreversible"]

  var values: [String: (text: String, position: YAMLPosition)] = [:]
  var up: SQLScript?
  var down: SQLScript?
  /// What stands before the first section.
  var head: SQLScript

  /// Splits a file into its sections. Lines keep their numbers.
  init(_ text: String, file: String) throws {
    head = SQLScript(text: "", file: file, firstLine: 1)
    var current: WritableKeyPath<SQLFile, SQLScript?>?
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let position = YAMLPosition(file: file, line: index + 1, column: 1)
      if let directive = Self.comment(line, "drydock:") {
        try add(directive, at: position)
      } else if let section = Self.comment(line, "migrate:") {
        guard section == "up" || section == "down" else {
          throw position.error(
            "unknown section `\(section)`; " + NearestWord.hint(for: section, among: ["up", "down"]))
        }
        let path: WritableKeyPath<SQLFile, SQLScript?> = section == "up" ? \.up : \.down
        guard self[keyPath: path] == nil else { throw position.error("a second section `\(section)`") }
        self[keyPath: path] = SQLScript(text: "", file: file, firstLine: index + 2)
        current = path
      } else if let current {
        self[keyPath: current]?.text += line + "\n"
      } else {
        head.text += line + "\n"
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

extension MigrationParser {
  /// A `.sql` file as a migration: one `sql` step.
  static func sql(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let start = YAMLPosition(file: file, line: 1, column: 1)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw start.error("the file is not UTF-8")
    }
    let parts = try SQLFile(text, file: file)
    guard let database = parts.values["database"], !database.text.isEmpty else {
      throw start.error("the file does not say which database it is for: add `-- drydock: database NAME`")
    }
    guard let up = parts.up else {
      throw start.error("the file has no section for the way up: add a line `-- migrate:up` before its SQL")
    }
    if !parts.head.isBlank {
      throw start.error("statements stand before `-- migrate:up`: move them below it")
    }
    var ifMissing = IfMissing.skip
    if let word = parts.values["if-missing"] {
      guard let choice = IfMissing(rawValue: word.text) else {
        throw word.position.error("`if-missing` is one of skip, fail, not `\(word.text)`")
      }
      ifMissing = choice
    }
    if let reason = parts.values["destructive"], reason.text.isEmpty {
      throw reason.position.error("`destructive` says why: add the reason after it")
    }
    let operation = RunSQL(
      database: database.text, position: database.position, up: up, down: parts.down, ifMissing: ifMissing,
      destructive: parts.values["destructive"]?.text)
    var body = MigrationBody()
    body.summary = parts.values["description"]?.text
    body.isIrreversible = parts.values["irreversible"] != nil
    let position = YAMLPosition(file: file, line: up.firstLine - 1, column: 1)
    body.steps = [MigrationStep(position: position, operation: operation)]
    return body
  }
}
