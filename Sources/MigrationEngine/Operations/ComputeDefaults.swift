import AppStores
import ContainerTransaction
import Formats

/// What to do when a value that an expression needs does not exist.
enum IfParameterMissing: String, CaseIterable, Sendable { case skip, fail, null }

struct ComputeDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.compute",
      "Writes settings that SQLite [computes](Migrations.md#computed-values) from settings.",
      [
        "key, value": "the setting, and a SQL expression with settings as parameters (`:user_name`); or",
        "values": "several: setting: expression, or setting: `{value, type}`. All expressions are evaluated "
          + "before any setting is written",
        "type": "with `key`: `string` (or `text`), `integer`, `real`, `boolean`, `date`, `data`, `array`, "
          + "`dictionary`, Android's `int`, `long`, `float`, `set`; any other value fails; default: the "
          + "type that SQLite gives",
        "parameters": "parameter: setting, for settings whose names are not SQL names",
        "if-null":
          "for a result that is NULL: `fail` (default); `keep`: leave the setting unchanged; `delete` "
          + "it",
        "if-missing":
          "of a setting in the expression: `skip` (default), `fail`, or `null`: its value is NULL",
        "if-exists": "as usual; a setting that an expression of the step reads is replaced without it",
      ], common: DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {first_name: Ada, last_name: Lovelace}",
        step: "{key: full_name, value: \":first_name || ' ' || :last_name\", type: text}",
        after: "settings: {first_name: Ada, last_name: Lovelace, full_name: Ada Lovelace}")
    ) { try Self(reading: $0, files: $1) }
  ]

  private struct Result: Sendable {
    let key: String
    let expression: SQLExpression
    let type: SettingType?
  }

  private let parameters: ExpressionParameters
  private let target: DefaultsTarget
  private let results: [Result]
  /// The settings that parameters stand for, where they are not named like them.
  private let settings: [String: String]
  private let ifNull: Unmapped
  private let ifMissing: IfParameterMissing
  private let ifExists: IfExists

  private var expressions: [SQLExpression] { results.map(\.expression) }
  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none) }
  var kind: StepKind { .computing(expressions, parameters) }

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    results = try Self.results(reader)
    parameters = try ExpressionParameters(reader["parameters"])
    settings = try parameters.map { name, node in try node.text("the setting of `:\(name)`") }
    ifNull = try reader.choice("if-null") ?? .fail
    ifMissing = try reader.choiceOrNull("if-missing") ?? .skip
    ifExists = try reader.ifExists()
  }

  private static func results(_ reader: YAMLReader) throws -> [Result] {
    let (name, node) = try reader.only(
      ["key", "values"], needs: "`key` and `value`, or `values` (setting: expression)")
    if name == "key" {
      return [
        Result(
          key: try node.text("`key`"), expression: try SQLExpression(reader.required("value"), "`value`"),
          type: try reader.choice("type"))
      ]
    }
    for other in ["value", "type"] {
      guard let node = reader[other] else { continue }
      throw node.position.error("`values` has an expression for each setting: write `\(other)` there")
    }
    let results = try node.pairs("`values`").pairs.map { pair in
      let key = try pair.textKey("a setting's name")
      if pair.value.mapping == nil {
        return Result(key: key, expression: try SQLExpression(pair.value, "the value of `\(key)`"), type: nil)
      }
      let result = try YAMLReader(pair.value, what: "`\(key)` of `values`", keys: ["value", "type"])
      return Result(
        key: key, expression: try SQLExpression(result.required("value"), "`value`"),
        type: try result.choice("type"))
    }
    if results.isEmpty { throw node.position.error("`values` is empty") }
    return results
  }

  /// All expressions are evaluated before any setting is written.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let database = try ExpressionDatabase(stage.container.configuration.sql)
    try parameters.check(expressions, in: database)
    var computed: [(result: Result, value: PropertyListValue?)] = []
    var read: [String: PropertyListValue?] = [:]
    for result in results {
      let keys = try result.expression.parameters(in: database).map { settings[$0] ?? $0 }
      for key in keys where read[key] == nil {
        read[key] = try .some(
          ifMissing == .null ? edit.seenOrNil(key) : edit.seen(key, ifMissing == .fail ? .fail : .skip))
      }
      if ifMissing == .skip, keys.contains(where: { read[$0] == .some(nil) }) { continue }
      let isReplaced = read[result.key] != nil || ifExists == .replace
      let old = isReplaced ? edit.values[result.key] : nil
      computed.append((result, try value(of: result, replacing: old, read, database)))
    }
    for (result, value) in computed {
      guard let value else {
        let what = "the expression for \(edit.shown(result.key)) gives NULL"
        let outcome = try ifNull.outcome(what, "if-null") { StepFailure(message: "\(what): say \($0)") }
        if outcome.isDeleted { edit.values[result.key] = nil }
        edit.notes.append(outcome.note)
        continue
      }
      if let existing = edit.values[result.key], existing.matches(value) { continue }
      // An expression that reads the setting changes it.
      if try read[result.key] != nil || edit.mayWrite(result.key, ifExists) {
        edit.values[result.key] = value
      }
    }
    return try edit.save(to: stage, &recorded)
  }

  /// The value; nil when it is NULL, which is not a failure.
  private func value(
    of result: Result, replacing old: PropertyListValue?, _ read: [String: PropertyListValue?],
    _ database: ExpressionDatabase
  ) throws -> PropertyListValue? {
    let what = "the setting `\(result.key)`"
    let value = try result.expression.value(in: database, for: what, ifNull) { parameter in
      let key = settings[parameter] ?? parameter
      guard let setting = read[key] ?? nil else { return .null }
      do { return try SQLiteValue(setting) } catch let mismatch as ValueMismatch {
        throw result.expression.failure(what, "the setting `\(key)` is \(mismatch.reason)")
      }
    }
    guard let value else { return nil }
    do {
      return try result.type?.setting(value) ?? SettingType.natural(value, replacing: old)
    } catch let mismatch as ValueMismatch {
      throw result.expression.failure(what, "the expression gives \(mismatch.reason)")
    }
  }
}
