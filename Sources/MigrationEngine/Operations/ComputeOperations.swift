import AppStores
import ContainerTransaction
import Cryptography
import Formats

/// What to do when a value that an expression needs does not exist.
enum IfParameterMissing: String, CaseIterable, ArgumentValue { case skip, fail, null }

struct ComputeDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.compute",
      "Writes settings that SQLite [computes](Migrations.md#computed-values) from settings.",
      Argument(
        [
          "key, value": "the setting, and a SQL expression with settings as parameters (`:user_name`); or",
          "values":
            "several: setting: expression, or setting: `{value, type}`. All expressions are evaluated "
            + "before any setting is written",
          "type": "with `key`: `string` (or `text`), `integer`, `real`, `boolean`, `date`, `data`, `array`, "
            + "`dictionary`, Android's `int`, `long`, `float`, `set`; any other value fails; default: the "
            + "type that SQLite gives",
        ], read: results),
      Argument(["parameters": "parameter: setting, for settings whose names are not SQL names"]) {
        reader, _ in
        try ExpressionParameters(reader["parameters"])
      },
      Argument(
        "if-null",
        "for a result that is NULL: `fail` (default); `keep`: leave the setting unchanged; `delete` it",
        default: Unmapped.fail),
      Argument(
        "if-missing",
        "of a setting in the expression: `skip` (default), `fail`, or `null`: its value is NULL",
        default: IfParameterMissing.skip),
      Argument(
        "if-exists", "as usual; a setting that an expression of the step reads is replaced without it",
        default: IfExists.fail), DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {first_name: Ada, last_name: Lovelace}",
        step: "{key: full_name, value: \":first_name || ' ' || :last_name\", type: text}",
        after: "settings: {first_name: Ada, last_name: Lovelace, full_name: Ada Lovelace}"),
      make: Self.init)
  ]

  private struct Result: Sendable {
    let key: String
    let expression: SQLExpression
    let type: SettingType?
  }

  private let results: [Result]
  private let parameters: ExpressionParameters
  /// The settings of parameters that have other names.
  private let settings: [String: String]
  private let ifNull: Unmapped
  private let ifMissing: IfParameterMissing
  private let ifExists: IfExists
  private let target: DefaultsTarget

  private var expressions: [SQLExpression] { results.map(\.expression) }
  var kind: StepKind { .computing(expressions, parameters) }
  var effects: StepEffects { StepEffects() }

  private init(
    _ results: [Result], _ parameters: ExpressionParameters, _ ifNull: Unmapped,
    _ ifMissing: IfParameterMissing, _ ifExists: IfExists, _ target: DefaultsTarget
  ) throws {
    (self.results, self.parameters, self.target) = (results, parameters, target)
    settings = try parameters.map { name, node in try node.text("the setting of `:\(name)`") }
    (self.ifNull, self.ifMissing, self.ifExists) = (ifNull, ifMissing, ifExists)
  }

  private static func results(_ reader: YAMLReader, _: MigrationFiles) throws -> [Result] {
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
        let outcome = try ifNull.outcome(what, "if-null") { StepFailure("\(what): say \($0)") }
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

/// No message has a value.
struct ComputeVaultItems: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.compute",
      "Gives items a value that SQLite [computes](Migrations.md#computed-values) from items.",
      Argument<SQLExpression>("value", "a SQL expression; `:value` is the item's value"),
      Argument(["parameters": "parameter: the selection of another item, whose value it has"]) { reader, _ in
        try ExpressionParameters(reader["parameters"], known: own)
      },
      Argument(
        "if-null", "for a result that is NULL: `fail` (default), `keep`, `delete`", default: Unmapped.fail),
      Argument(
        "if-missing", "of an item: `skip` (default), `fail`, or `null`: the value of a parameter is NULL",
        default: IfParameterMissing.skip), VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, account: auth, value: \"'Bearer ' || :value\"}",
        after: "vault: {auth: Bearer secret}"),
      make: Self.init)
  ]

  /// The parameters that mean the item itself.
  private static let own: Set = ["value", "service", "account", "label", "access_group"]

  private let expression: SQLExpression
  private let parameters: ExpressionParameters
  /// The other items that parameters take their values from.
  private let others: [String: VaultSelection]
  private let ifNull: Unmapped
  private let ifMissing: IfParameterMissing
  private let selection: VaultSelection

  var kind: StepKind { .computing([expression], parameters) }
  var effects: StepEffects { StepEffects(needsVault: true) }

  private init(
    _ expression: SQLExpression, _ parameters: ExpressionParameters, _ ifNull: Unmapped,
    _ ifMissing: IfParameterMissing, _ selection: VaultSelection
  ) throws {
    (self.expression, self.parameters, self.selection) = (expression, parameters, selection)
    (self.ifNull, self.ifMissing) = (ifNull, ifMissing)
    others = try parameters.map { name, node in
      try VaultSelection(
        reading: YAMLReader(node, what: "`\(name)` of `parameters`", keys: VaultSelection.keys))
    }
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    let database = try ExpressionDatabase(stage.container.configuration.sql)
    try parameters.check([expression], in: database)
    let names = try expression.parameters(in: database)
    if let unknown = names.first(where: { !Self.own.contains($0) && others[$0] == nil }) {
      throw expression.position.error(
        "`:\(unknown)` is unknown: use `:value`, or name an item under `parameters`; "
          + NearestWord.hint(for: unknown, among: Array(Self.own.union(others.keys))))
    }
    let items = try edit.items(selection, ifMissing == .fail ? .fail : .skip)
    guard !items.isEmpty, let values = try otherValues(names, &edit) else { return edit.notes }
    try edit.convert(items, ifNull) { item in
      guard let value = try value(for: item, values, database) else {
        throw ValueMismatch(reason: "the expression gives NULL")
      }
      return value
    }
    return try edit.save(to: stage, &recorded)
  }

  /// The values of the other items; nil when one does not exist and the step is skipped.
  private func otherValues(_ names: [String], _ edit: inout VaultEdit) throws -> [String: SQLiteValue]? {
    var values: [String: SQLiteValue] = [:]
    for name in names {
      guard let selection = others[name] else { continue }
      let found =
        try ifMissing == .null
        ? edit.itemsOrNone(selection) : edit.items(selection, ifMissing == .fail ? .fail : .skip)
      guard found.count < 2 else {
        throw StepFailure(
          "`:\(name)` is the value of one vault item, and \(found.count) have \(selection): name more attributes"
        )
      }
      if found.isEmpty, ifMissing == .skip { return nil }
      values[name] = found.first.map { SQLiteValue($0.value) } ?? .null
    }
    return values
  }

  /// The new value of an item; nil when it is NULL, which is not a failure.
  private func value(
    for item: VaultItem, _ others: [String: SQLiteValue], _ database: ExpressionDatabase
  ) throws -> SecretBytes? {
    func text(_ text: String?) -> SQLiteValue { text.map { .text(SecretBytes(Array($0.utf8))) } ?? .null }
    let what = "the value of the vault item \(item)"
    let value = try expression.value(in: database, for: what, ifNull) { name in
      switch name {
      case "value": SQLiteValue(item.value)
      case "service": text(item.service)
      case "account": text(item.account)
      case "label": text(item.label)
      case "access_group": text(item.accessGroup)
      default: others[name] ?? .null
      }
    }
    switch value {
    case .text(let bytes)?, .blob(let bytes)?: return bytes
    case .integer?, .real?:
      let given = value?.nounPhrase ?? ""
      throw expression.failure(what, "the expression gives \(given), not text: write CAST(… AS TEXT)")
    case .null?, nil: return nil
    }
  }
}

extension SQLiteValue {
  /// A vault item's value: text if it is UTF-8 without NUL characters, else data.
  fileprivate init(_ value: SecretBytes) {
    self =
      value.withBytes { !$0.contains(0) && String(validating: $0, as: UTF8.self) != nil }
      ? .text(value) : .blob(value)
  }
}
