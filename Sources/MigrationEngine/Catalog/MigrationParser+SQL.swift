import Formats

extension MigrationParser {
  /// A `.sql` file as a migration: one `sql` step for each database.
  static func sql(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let parsed = try parse(bytes, file: file)
    return try body(parsed) { part, database in
      let start = database.position
      guard let up = part.up else {
        throw (parsed.parts.count > 1 ? start : YAMLPosition(file: file, line: 1, column: 1)).error(
          "the file has no section for the way up: add a line `-- migrate:up` before its SQL")
      }
      if up.isBlank {
        throw YAMLPosition(file: file, line: up.firstLine - 1, column: 1).error(
          "no statement follows `-- migrate:up`")
      }
      if !part.head.isBlank {
        throw part.head.position(at: 0).error("statements stand before `-- migrate:up`: move them below it")
      }
      let position = YAMLPosition(file: file, line: up.firstLine - 1, column: 1)
      return (position, up, part.down)
    }
  }

  /// A pair of `NAME.up.sql` and `NAME.down.sql` as a migration: the whole files are the ways, the one up says what
  /// they need.
  static func pair(up: [UInt8], down: [UInt8]?, file: String, downFile: String) throws -> MigrationBody {
    let parsed = try parse(up, file: file)
    let ways = try down.map { try downWays($0, file: downFile, up: parsed) } ?? [:]
    return try body(parsed) { part, database in
      try refuseSections(part)
      if part.head.isBlank {
        throw database.position.error("no statement is for the database \(database.text)")
      }
      return (part.head.position(at: 0), part.head, ways[database.text])
    }
  }

  /// The ways down by the database that they are for. A file that names none is for the only one of the way up.
  private static func downWays(_ bytes: [UInt8], file: String, up: SQLFile) throws -> [String: SQLScript] {
    let databases = up.parts.compactMap { $0.values["database"]?.text }
    var ways: [String: SQLScript] = [:]
    for part in try parse(bytes, file: file).parts {
      try refuseSections(part)
      if let other = part.values.first(where: { $0.key != "database" }) {
        throw other.value.position.error("`\(other.key)` belongs into the file of the way up")
      }
      let database = part.values["database"]
      guard database != nil || databases.count == 1 else {
        throw YAMLPosition(file: file, line: 1, column: 1).error(
          "the way up is for several databases: say with `-- drydock: database NAME` which this is for")
      }
      let name = database?.text ?? databases[0]
      guard databases.contains(name) else {
        throw part.head.position(at: 0).error(
          "the way up has nothing for the database `\(name)`; "
            + NearestWord.hint(for: name, among: databases))
      }
      ways[name] = part.head
    }
    return ways
  }

  private static func refuseSections(_ part: SQLFile.Part) throws {
    guard let section = part.up ?? part.down else { return }
    throw YAMLPosition(file: section.file, line: section.firstLine - 1, column: 1).error(
      "a file `.up.sql` or `.down.sql` is one way as a whole: take the line `-- migrate:` out, or name the file `.sql`"
    )
  }

  private static func parse(_ bytes: [UInt8], file: String) throws -> SQLFile {
    guard let text = MigrationFiles.text(bytes) else {
      throw YAMLPosition(file: file, line: 1, column: 1).error("the file is not UTF-8")
    }
    return try SQLFile(text, file: file)
  }

  private static func body(
    _ file: SQLFile,
    _ ways: (SQLFile.Part, (text: String, position: YAMLPosition)) throws -> (
      YAMLPosition, up: SQLScript, down: SQLScript?
    )
  ) throws -> MigrationBody {
    var body = MigrationBody()
    body.summary = file.value("description")?.text
    body.isIrreversible = file.value("irreversible") != nil
    for part in file.parts {
      guard let database = part.values["database"], !database.text.isEmpty else {
        throw YAMLPosition(file: part.head.file, line: 1, column: 1).error(
          "the file does not say which database it is for: add `-- drydock: database NAME`")
      }
      let (position, up, down) = try ways(part, database)
      let operation = try RunSQL(
        database: database.text, position: database.position, up: up, down: down,
        ifMissing: try ifMissing(part),
        destructive: try destructive(part))
      body.steps.append(MigrationStep(position: position, operation: operation))
    }
    return body
  }

  private static func ifMissing(_ part: SQLFile.Part) throws -> IfNoDatabase? {
    guard let word = part.values["if-missing"] else { return nil }
    guard let choice = IfNoDatabase(rawValue: word.text) else {
      throw word.position.error("`if-missing` is one of create, skip, fail, not `\(word.text)`")
    }
    return choice
  }

  private static func destructive(_ part: SQLFile.Part) throws -> DestructiveReason? {
    try part.values["destructive"].map { try DestructiveReason(directive: $0.text, at: $0.position) }
  }
}
