import AppContainer

extension MigrationParser {
  /// A `.sql` file as a migration: one `sql` step.
  static func sql(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let start = YAMLPosition(file: file, line: 1, column: 1)
    guard let text = MigrationFiles.text(bytes) else {
      throw start.error("the file is not UTF-8")
    }
    let parts = try SQLFile(text, file: file)
    guard let database = parts.values["database"], !database.text.isEmpty else {
      throw start.error("the file does not say which database it is for: add `-- drydock: database NAME`")
    }
    guard let up = parts.up else {
      throw start.error("the file has no section for the way up: add a line `-- migrate:up` before its SQL")
    }
    if up.isBlank {
      throw YAMLPosition(file: file, line: up.firstLine - 1, column: 1).error(
        "no statement follows `-- migrate:up`")
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
