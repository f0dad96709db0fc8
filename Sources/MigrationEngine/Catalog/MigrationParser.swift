import DrydockErrors
import Formats

/// Reads the body of a migration from YAML or SQL.
struct MigrationParser {
  /// The files that steps may name.
  let files: MigrationFiles
  /// The errors: of keys, of single steps and assertions, of the directives and parts of a SQL file.
  private(set) var problems: [DrydockError] = []

  private static let keys = [
    "description", "steps", "check", "verify", "irreversible", "loses", "down", "down-loses",
  ]

  init(files: MigrationFiles) { self.files = files }

  /// Reads a migration in YAML. An error in one step goes to ``problems``, and the rest is read.
  ///
  /// - Throws: when the file as a whole cannot be read.
  mutating func yaml(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let document = try YAMLDocument(bytes, file: file)
    guard let root = document.root else {
      throw DrydockError(.catalog, "\(file):1:1: the migration is empty: it needs `steps:`")
    }
    let (reader, unknown) = try YAMLReader.tolerant(root, what: "a migration", keys: Self.keys)
    for error in unknown { add(error) }
    var body = MigrationBody()
    body.notes = document.notes
    body.summary = attempt { try reader.text("description") } ?? nil
    body.isIrreversible = (attempt { try reader.boolean("irreversible") } ?? nil) ?? false
    body.losses = (attempt { try reader["loses"].map { try $0.reasons(Self.lossesShape) } } ?? nil) ?? [:]
    body.downLosses =
      (attempt { try reader["down-loses"].map { try $0.reasons(Self.downLossesShape, asWritten: true) } }
        ?? nil) ?? [:]
    // Beside an unknown key, which may be a misspelt `steps`, a missing one is not a second error.
    if reader["steps"] != nil || problems.isEmpty {
      body.steps = attempt { try reader.required("steps") }.map { steps($0, "`steps`") } ?? []
    }
    body.down = reader["down"].map { steps($0, "`down`") } ?? []
    body.checks = reader["check"].map { assertions($0, "`check`") } ?? []
    body.verifications = reader["verify"].map { assertions($0, "`verify`") } ?? []
    for problem in body.checks.compactMap(\.problemAsCheck) { add(problem) }
    return body
  }

  private mutating func steps(_ node: YAMLNode, _ what: String) -> [MigrationStep] {
    let files = files
    return attempt { try node.elements(what) }?.compactMap { element in
      attempt { try Self.step(element, what, files) }
    } ?? []
  }

  private static func step(_ node: YAMLNode, _ what: String, _ files: MigrationFiles) throws -> MigrationStep
  {
    let (name, position, arguments) = try single(node, "a step of \(what)")
    return try Operations.step(name, at: position, arguments: arguments, files: files)
  }

  private mutating func assertions(_ node: YAMLNode, _ what: String) -> [Assertion] {
    let files = files
    return attempt { try node.elements(what) }?.compactMap { element in
      attempt {
        let (name, position, arguments) = try Self.single(element, "an element of \(what)")
        return try Assertion(name, position: position, arguments: arguments, files: files)
      }
    } ?? []
  }

  private mutating func attempt<T>(_ body: () throws -> T) -> T? {
    do {
      return try body()
    } catch {
      add(error)
      return nil
    }
  }

  private mutating func add(_ error: any Error) { problems.append(DrydockError(reading: error)) }

  /// The one key of a mapping, and its value.
  private static func single(_ node: YAMLNode, _ what: String) throws -> (String, YAMLPosition, YAMLNode) {
    let pairs = try node.pairs(what).pairs
    guard let pair = pairs.first, case .string(let name) = pair.key.value else {
      throw node.position.error("\(what) is `operation: {arguments}`")
    }
    if pairs.count > 1 {
      throw pairs[1].keyPosition.error(
        "\(what) has one operation: start another line with `- `, or indent `\(pairs[1].key.source)` more")
    }
    return (name, pair.keyPosition, pair.value)
  }

  /// A `.sql` file as a migration: one `sql` step for each database.
  ///
  /// An error in a directive or a part goes to ``problems``, and the rest is read.
  ///
  /// - Throws: when the file as a whole cannot be read.
  mutating func sql(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let parsed = try parse(bytes, file: file)
    return body(parsed) { part, database in
      let start = database.position
      guard let up = part.up else {
        throw (parsed.parts.count > 1 ? start : YAMLPosition(file: file, line: 1, column: 1)).error(
          "the file has no section `-- migrate:up`: add that line before its SQL")
      }
      if up.isBlank {
        throw YAMLPosition(file: file, line: up.firstLine - 1, column: 1).error(
          "no statement follows `-- migrate:up`")
      }
      if !part.head.isBlank {
        throw part.head.position(at: 0).error(
          "the file has statements before `-- migrate:up`: move them below it")
      }
      let position = YAMLPosition(file: file, line: up.firstLine - 1, column: 1)
      return (position, up, part.down)
    }
  }

  /// A pair of `NAME.up.sql` and `NAME.down.sql` as a migration: the directives are in the first one.
  mutating func pair(
    up: [UInt8], down: [UInt8]?, file: String, downFile: String
  ) throws -> MigrationBody {
    let parsed = try parse(up, file: file)
    let downs = try down.map { try downScripts($0, file: downFile, up: parsed) } ?? [:]
    return body(parsed) { part, database in
      try Self.refuseSections(part)
      if part.head.isBlank {
        throw database.position.error("the database \(database.text) has no statement")
      }
      return (part.head.position(at: 0), part.head, downs[database.text])
    }
  }

  /// The down scripts by database. A file that names none is for the only database of the `.up.sql`.
  private mutating func downScripts(
    _ bytes: [UInt8], file: String, up: SQLFile
  ) throws -> [String: SQLScript] {
    let databases = up.parts.compactMap { $0.values["database"]?.text }
    let parsed = try parse(bytes, file: file)
    var scripts: [String: SQLScript] = [:]
    // What follows from an error in the other file is not reported.
    if databases.isEmpty { return scripts }
    for part in parsed.parts {
      attempt {
        let name = try Self.databaseOfDown(part, file: file, among: databases)
        scripts[name] = part.head
      }
    }
    return scripts
  }

  private static func databaseOfDown(
    _ part: SQLFile.Part, file: String, among databases: [String]
  ) throws -> String {
    try refuseSections(part)
    if let other = part.values.first(where: { $0.key != "database" }) {
      throw other.value.position.error("`\(other.key)` belongs in the file `.up.sql`")
    }
    let database = part.values["database"]
    guard database != nil || databases.count == 1 else {
      throw YAMLPosition(file: file, line: 1, column: 1).error(
        "the file `.up.sql` is for several databases: say with `-- drydock: database NAME` which this is for")
    }
    let name = database?.text ?? databases[0]
    guard databases.contains(name) else {
      throw part.head.position(at: 0).error(
        "the file `.up.sql` has no statement for the database `\(name)`; "
          + NearestWord.hint(for: name, among: databases))
    }
    return name
  }

  private static func refuseSections(_ part: SQLFile.Part) throws {
    guard let section = part.up ?? part.down else { return }
    throw YAMLPosition(file: section.file, line: section.firstLine - 1, column: 1).error(
      "a file `.up.sql` or `.down.sql` has no sections: remove the line `-- migrate:`, or name the file `.sql`"
    )
  }

  private mutating func parse(_ bytes: [UInt8], file: String) throws -> SQLFile {
    guard let text = TextFile.utf8(bytes) else {
      throw YAMLPosition(file: file, line: 1, column: 1).error("the file is not UTF-8")
    }
    let parsed = SQLFile(TextFile.committed(text), file: file)
    for problem in parsed.problems { add(problem) }
    return parsed
  }

  private mutating func body(
    _ file: SQLFile,
    _ scripts: (SQLFile.Part, SQLFile.Directive) throws -> (
      YAMLPosition, up: SQLScript, down: SQLScript?
    )
  ) -> MigrationBody {
    var body = MigrationBody()
    body.summary = file.value("description")?.text
    body.isIrreversible = file.value("irreversible") != nil
    if let words = file.value("loses") {
      body.losses = attempt { try words.read { try $0.reasons(Self.lossesShape) } } ?? [:]
    }
    if let words = file.value("down-loses") {
      body.downLosses =
        attempt { try words.read { try $0.reasons(Self.downLossesShape, asWritten: true) } } ?? [:]
    }
    for part in file.parts {
      do {
        body.steps.append(try Self.step(part, scripts))
      } catch  where !file.problems.isEmpty {
        // What follows from an error in a directive is not reported.
      } catch {
        add(error)
      }
    }
    return body
  }

  private static func step(
    _ part: SQLFile.Part,
    _ scripts: (SQLFile.Part, SQLFile.Directive) throws -> (
      YAMLPosition, up: SQLScript, down: SQLScript?
    )
  ) throws -> MigrationStep {
    guard let database = part.values["database"], !database.text.isEmpty else {
      throw YAMLPosition(file: part.head.file, line: 1, column: 1).error(
        "the file does not say which database it is for: add `-- drydock: database NAME`")
    }
    let (position, up, down) = try scripts(part, database)
    let operation = try RunSQL(
      database: NamedDatabase(database.text, at: database.position), up: up, down: down,
      ifMissing: ifMissing(part),
      destructive: part.values["destructive"].map {
        try $0.read(isYAML: $0.text.hasPrefix("{"), DestructiveReason.init)
      }, language: .directives,
      withoutTriggers: part.values["without-triggers"]?.read { try $0.reasons("triggers: {NAME: why}") }
        ?? [:])
    return MigrationStep(position: position, name: "sql", operation: operation)
  }

  private static let lossesShape = "what may be lost: {trip.title: \"shortened to 80 characters\"}"
  private static let downLossesShape =
    "columns, tables, settings, vault items or paths: {trip.title: \"the column was dropped\"}"

  private static func ifMissing(_ part: SQLFile.Part) throws -> IfNoDatabase? {
    guard let word = part.values["if-missing"] else { return nil }
    guard let choice = IfNoDatabase(rawValue: word.text) else {
      throw word.position.error("`if-missing` is one of create, skip, fail, not `\(word.text)`")
    }
    return choice
  }
}

/// A `.sql` file: directives in comments, and for each database its statements and down statements.
struct SQLFile {
  /// The directives that a file may have after `-- drydock:`.
  static let directives = [
    "database", "description", "destructive", "down-loses", "if-missing", "irreversible", "loses",
    "without-triggers",
  ]
  /// The directives for the whole file.
  private static let ofTheFile: Set<String> = ["description", "down-loses", "irreversible", "loses"]

  /// What follows a directive's name.
  struct Directive {
    let text: String
    let position: YAMLPosition

    /// Decodes it as the argument of a step: YAML, or the text as it is.
    func read<Value>(isYAML: Bool = true, _ decode: (YAMLNode) throws -> Value) throws -> Value {
      guard isYAML else { return try decode(YAMLNode(.string(text), at: position)) }
      do {
        let document = try YAMLDocument(Array(text.utf8), file: position.file)
        return try decode(document.root ?? YAMLNode(.string(text), at: position))
      } catch let error as DrydockError {
        // The lines of the text are not those of the file.
        throw position.error(error.located.message, cause: error)
      }
    }
  }

  /// The part of the file for one database.
  struct Part {
    var values: [String: SQLFile.Directive] = [:]
    fileprivate(set) var up: SQLScript?
    fileprivate(set) var down: SQLScript?
    /// The text before the first section.
    fileprivate(set) var head: SQLScript
  }

  /// At least one; each but the first starts with its database.
  private(set) var parts: [Part]
  /// The errors in directives and sections; these are left out of the parts.
  private(set) var problems: [DrydockError] = []

  /// A directive of whichever part has it.
  func value(_ name: String) -> SQLFile.Directive? {
    parts.lazy.compactMap { $0.values[name] }.first
  }

  /// Splits a file into its sections. Lines keep their numbers; directives stay in the text, where they are comments.
  init(_ bytes: [UInt8], file: String) {
    var section = Section(file: file, name: nil, firstLine: 1, start: 0)
    parts = [Part(head: SQLScript(bytes: [], file: file, firstLine: 1))]
    // In a block comment or a string, a line with `--` is text.
    for (number, line) in SQLTokens.commentLines(in: bytes) {
      let (start, end) = (line.lowerBound, line.upperBound)
      let position = YAMLPosition(file: file, line: number, column: 1)
      if let directive = Self.comment(bytes[start..<end], "drydock:") {
        if directive.prefix(while: { !$0.isWhitespace }) == "database",
          isStarted(section, bytes[section.start..<start])
        {
          self.end(section, bytes[section.start..<start])
          section = Section(file: file, name: nil, firstLine: number, start: start)
          parts.append(Part(head: SQLScript(bytes: [], file: file, firstLine: number)))
        }
        do { try add(directive, at: position) } catch { problems.append(DrydockError(reading: error)) }
      } else if let name = Self.comment(bytes[start..<end], "migrate:") {
        self.end(section, bytes[section.start..<start])
        if let problem = refusal(ofSection: name, at: position) {
          problems.append(problem)
          // Its text belongs to no section.
          section = Section(file: file, name: "", firstLine: number + 1, start: min(end + 1, bytes.count))
          continue
        }
        section = Section(
          file: file, name: name, firstLine: number + 1, start: min(end + 1, bytes.count))
        self.end(section, [])
      }
    }
    end(section, bytes[section.start...])
  }

  /// A section, as far as it has been read.
  private struct Section {
    let file: String
    let name: String?
    let firstLine: Int
    let start: Int
  }

  private mutating func end(_ section: Section, _ text: ArraySlice<UInt8>) {
    let last = parts.count - 1
    let script = SQLScript(bytes: Array(text), file: section.file, firstLine: section.firstLine)
    switch section.name {
    case "up": parts[last].up = script
    case "down": parts[last].down = script
    case nil: parts[last].head = script
    default: break
    }
  }

  private func refusal(ofSection name: String, at position: YAMLPosition) -> DrydockError? {
    guard name == "up" || name == "down" else {
      return position.error(
        "unknown section `\(name)`; " + NearestWord.hint(for: name, among: ["up", "down"]),
        code: .catalog)
    }
    let part = parts[parts.count - 1]
    if (name == "up" ? part.up : part.down) == nil { return nil }
    return position.error(
      "a second section `\(name)`: for another database, write `-- drydock: database NAME` before it",
      code: .catalog)
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
    guard !isThere else { throw position.error("`\(name)` is given twice: keep one of them") }
    parts[parts.count - 1].values[name] = Directive(text: text, position: position)
  }

  /// The text after `-- <word>` in a comment line.
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
