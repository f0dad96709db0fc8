import AppStores
import ContainerTransaction
import Cryptography
import Formats
import Foundation

struct MoveDefaultsToVault: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.move-from-defaults",
      "Moves settings into [the vault](Stores.md#the-vault).",
      [
        "key": "the setting, or",
        "keys": "setting: account, for several settings",
        "service": "required: the items' service",
        "account": "the item's account, with `key`",
        "access-group, label": "of the items",
        "accessible": "a class, such as `afterFirstUnlock`; default `whenUnlocked`",
        "synchronizable": "`true` or `false` (default)",
        "as": "for a value that is neither text nor data: `text` (a number or Bool as text) or `json` "
          + "(dictionaries, arrays, text, numbers, Bools)",
      ], common: ["if-missing", "if-exists"] + DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {auth_token: secret, theme: dark}",
        step: "{key: auth_token, service: s, account: auth}",
        after: "{settings: {theme: dark}, vault: {auth: secret}}")
    ) { try Self(reading: $0, files: $1) }
  ]

  private enum Form: String, CaseIterable { case text, json }

  private let target: DefaultsTarget
  /// The settings, each with the account of its item.
  private let moves: [(key: String, account: String?)]
  /// The other attributes of the items.
  private let template: VaultItem
  private let encoding: SettingEncoding
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    moves = try Self.moves(reader)
    var item = VaultItem(
      service: try reader.required("service").text("`service`"), accessGroup: try reader.text("access-group"),
      accessibility: try reader.choice("accessible") ?? .whenUnlocked, value: SecretBytes([]))
    item.label = try reader.text("label")
    item.isSynchronizable = try reader.boolean("synchronizable") ?? false
    template = item
    let form: Form? = try reader.choice("as")
    encoding = form.flatMap { SettingEncoding(rawValue: $0.rawValue) } ?? .raw
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  private static func moves(_ reader: YAMLReader) throws -> [(key: String, account: String?)] {
    let (key, node) = try reader.only(["key", "keys"], needs: "`key`, or `keys` (setting: account)")
    if key == "key" { return [(try node.text("`key`"), try reader.text("account"))] }
    if let account = reader["account"] {
      throw account.position.error("`keys` names an account for each setting: leave `account` out")
    }
    var accounts: Set<String> = []
    return try node.pairs("`keys`").pairs.map { pair in
      let key = try pair.textKey("a setting's name")
      let account = try pair.value.text("the account of `\(key)`")
      guard accounts.insert(account).inserted else {
        throw pair.value.position.error("two settings become the account `\(account)`")
      }
      return (key, account)
    }
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let (file, path) = try (target.path(in: stage), stage.container.vaultPath)
    try recorded.noteMade(path, on: stage)
    var vault = try stage.vault()
    var written: [(key: String, item: VaultItem)] = []
    var changes: [SealedItems.Change] = []
    var secrets: [MovedSecret] = []
    let now = UTCTime.text(Date())
    for (key, account) in moves {
      var item = template
      item.account = account
      let before = vault?[item.id]
      if before != nil { recorded.skipped.append(key) }
      guard let value = try edit.source(key, ifMissing) else { continue }
      var bytes = try encoding.bytes(
        of: value, key: key, isIndented: false, argument: ("as", [.raw, .text, .json]))
      item.value = SecretBytes(wiping: &bytes)
      (item.created, item.modified) = (before == nil ? now : before?.created, now)
      var changed = try vault ?? Vault(new: stage.requireDeviceKeys(name))
      if let before, before.value == item.value {
        edit.notes.append("the vault item \(item) has the value of `\(key)` already: the setting is removed")
      } else {
        let problem = "the vault item \(item) exists already, with another value than the setting `\(key)`"
        guard try before == nil || ifExists.replaces(or: problem, path: path) else {
          edit.notes.append(
            "the vault item \(item) exists already: kept, and the setting `\(key)` left unchanged")
          continue
        }
        changed.put(item)
        written.append((key, item))
      }
      secrets.append(MovedSecret(path: file, key: key, value: value))
      edit.values[key] = nil
      changes.append((before, changed[item.id]))
      recorded.types.append(.init(file: file, key: key, before: StoredValue(value.emptied)))
      vault = changed
    }
    if let vault {
      if !written.isEmpty { try stage.setVault(vault) }
      // Before the settings go.
      let read = try stage.vault()
      for (key, item) in written where read?[item.id] != item {
        throw StepFailure(
          message: "the vault item \(item), read back, differs from the setting `\(key)`",
          path: path.description)
      }
      for secret in secrets { stage.keepSealed(secret, to: vault.recipients) }
      recorded.items = try SealedItems(changes, sealedAs: vault)
    }
    // The values are recorded only in the sealed items.
    return try edit.save(to: stage)
  }
}

extension MoveDefaultsToVault {
  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none, needsVault: true) }
  var reversal: Reversal { .byArguments }

  /// One setting to restore.
  private struct Return {
    var key: String
    var type: PropertyListValue?
    /// The item that the step wrote, and the one that it replaced.
    var written: VaultItem.ID, before: VaultItem?
    /// Whether the item had the value already.
    var wasThere: Bool
  }

  /// Moves the items back into settings, with their present values.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard var vault = try stage.vault() else { return ["there is no vault: skipped"] }
    let file = try target.path(in: stage)
    for item in try returns(recorded, vault, stage) {
      guard let now = vault[item.written] else {
        edit.notes.append("the vault item \(item.written) does not exist: skipped")
        continue
      }
      guard edit.values[item.key] == nil else {
        edit.notes.append("`\(item.key)` exists already: kept, and the vault item \(item.written) too")
        continue
      }
      if recorded != nil, item.type == nil, encoding == .text {
        edit.notes.append("the vault item \(item.written) was written since: left unchanged")
        continue
      }
      let value = try now.value.withBytes { try setting(of: Array($0), like: item.type, key: item.key) }
      edit.values[item.key] = value
      // The undo entry of this rollback keeps the setting sealed, as that of the move does.
      stage.keepSealed(MovedSecret(path: file, key: item.key, value: value), to: vault.recipients)
      if item.wasThere { continue }
      vault.remove(item.written)
      if let before = item.before { vault.put(before) }
    }
    if vault.items.isEmpty, recorded?.made.contains(stage.container.vaultPath) == true {
      try stage.remove(stage.container.vaultPath)
    } else {
      try stage.setVault(vault)
    }
    return try edit.save(to: stage)
  }

  private func setting(
    of bytes: [UInt8], like type: PropertyListValue?, key: String
  ) throws -> PropertyListValue {
    if let value = try? encoding.setting(of: bytes, like: type) { return value }
    if encoding == .raw { return .data(bytes) }
    throw StepFailure(
      message: "the vault item of the setting `\(key)` cannot be moved back: "
        + (type.map { "it is no longer \($0.nounPhrase)" } ?? "the setting's type is unknown"))
  }

  private func returns(
    _ recorded: PriorValues?, _ vault: Vault, _ stage: StagedContainer
  ) throws -> [Return] {
    let all = moves.map { move in
      var item = template
      item.account = move.account
      return Return(key: move.key, type: nil, written: item.id, before: nil, wasThere: false)
    }
    guard let recorded else { return all }
    let changes = try recorded.items?.open(on: stage) ?? []
    let moved = zip(recorded.types, changes).compactMap { type, change in
      change.after.map { after in
        Return(
          key: type.key, type: type.before?.value, written: after.id, before: change.before,
          wasThere: change.before == after)
      }
    }
    // Without a setting to move, the app may have written the item since.
    let newer = all.filter { item in
      vault[item.written] != nil && !recorded.skipped.containsExactly(item.key)
        && !moved.contains { $0.key.isExactly(item.key) }
    }
    return moved + newer
  }
}
