import AppStores
import ContainerTransaction
import Cryptography
import Formats

/// No message has a value.
struct ComputeVaultItems: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.compute",
      "Gives items a value that SQLite [computes](Migrations.md#computed-values) from items.",
      [
        "value": "required: a SQL expression; `:value` is the item's value",
        "parameters": "parameter: the selection of another item, whose value it has",
        "if-null": "for a result that is NULL: `fail` (default), `keep`, `delete`",
        "if-missing": "of an item: `skip` (default), `fail`, or `null`: the value of a parameter is NULL",
      ], common: VaultSelection.keys,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, account: auth, value: \"'Bearer ' || :value\"}",
        after: "vault: {auth: Bearer secret}")
    ) { try Self(reading: $0, files: $1) }
  ]

  /// The parameters that mean the item itself.
  private static let own: Set = ["value", "service", "account", "label", "access_group"]

  private let parameters: ExpressionParameters
  private let selection: VaultSelection
  private let expression: SQLExpression
  /// The other items that parameters stand for.
  private let others: [String: VaultSelection]
  private let ifNull: Unmapped
  private let ifMissing: IfParameterMissing

  var kind: StepKind { .computing([expression], parameters) }
  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none, needsVault: true) }

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    expression = try SQLExpression(reader.required("value"), "`value`")
    parameters = try ExpressionParameters(reader["parameters"], known: Self.own)
    others = try parameters.map { name, node in
      try VaultSelection(
        reading: YAMLReader(node, what: "`\(name)` of `parameters`", keys: VaultSelection.keys))
    }
    ifNull = try reader.choice("if-null") ?? .fail
    ifMissing = try reader.choiceOrNull("if-missing") ?? .skip
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
          message:
            "`:\(name)` stands for one vault item, and \(found.count) have \(selection): name more attributes"
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
