import AgeEncryption
import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// `vault.move-from-defaults`: makes settings vault items. A setting goes only after its item was sealed, opened again and
/// compared.
struct MoveDefaultsToVault: MigrationOperation {
  static let name = "vault.move-from-defaults"
  static let keys =
    [
      "key", "keys", "service", "account", "access-group", "accessible", "label", "synchronizable", "as",
      "if-missing", "if-exists",
    ] + DefaultsTarget.keys
  static let needsVault = true

  let target: DefaultsTarget
  /// The settings, each with the account that its item gets.
  let moves: [(key: String, account: String?)]
  let template: VaultItem
  let form: SecretForm?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    moves = try Self.moves(reader)
    var item = VaultItem(
      service: try reader.required("service").text("`service`"), accessGroup: try reader.text("access-group"),
      accessibility: try reader.choice("accessible") ?? .whenUnlocked, value: SecretBytes([]))
    item.label = try reader.text("label")
    item.isSynchronizable = try reader.boolean("synchronizable") ?? false
    template = item
    form = try reader.choice("as")
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  private static func moves(_ reader: YAMLReader) throws -> [(key: String, account: String?)] {
    switch (reader["key"], reader["keys"]) {
    case (let node?, nil): return [(try node.text("`key`"), try reader.text("account"))]
    case (nil, let node?):
      if let account = reader["account"] {
        throw account.position.error("`keys` names an account for each setting: leave `account` out")
      }
      var accounts: Set<String> = []
      return try node.pairs("`keys`").pairs.map { pair in
        guard case .text(let key) = pair.key.value else {
          throw pair.keyPosition.error("a setting's name is text, not \(pair.key.value.summary): quote it")
        }
        let account = try pair.value.text("the account of `\(key)`")
        guard accounts.insert(account).inserted else {
          throw pair.value.position.error("two settings become the account `\(account)`")
        }
        return (key, account)
      }
    case (nil, nil): throw reader.position.error("\(name) needs `key`, or `keys` (setting: account)")
    case (_?, let node?): throw node.position.error("name either `key` or `keys`, not both")
    }
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let file = try target.path(in: stage.container)
    try memory.noteMade(stage.container.vaultPath, on: stage)
    var changes: [SealedItems.Change] = []
    for (key, account) in moves {
      guard let value = try edit.source(key, ifMissing) else { continue }
      var item = template
      item.account = account
      item.value = try SecretForm.bytes(of: value, as: form, key: key)
      let before = try stage.vault()?[item.id]
      guard let vault = try put(item, of: key, stage, &edit.notes) else { continue }
      stage.keepSealed(MovedSecret(path: file, key: key, value: value), to: vault.recipients)
      edit.values[key] = nil
      changes.append((before, vault[item.id]))
      memory.types.append(SettingType(of: value, key, in: file))
    }
    if let vault = try stage.vault() { memory.items = try SealedItems(changes, sealedAs: vault) }
    // The values are not written down: that the settings are in the vault says all.
    var nothing = StepMemory()
    return try edit.save(to: stage, &nothing)
  }

  /// Seals an item into the vault and reads it back; nil when another one is kept.
  private func put(
    _ item: VaultItem, of key: String, _ stage: StagedContainer, _ notes: inout [String]
  ) throws -> Vault? {
    var vault = try stage.vault() ?? Vault(new: stage.requireDeviceKeys(Self.name))
    var item = item
    let now = UTCTime.text(Date())
    (item.created, item.modified) = (now, now)
    if let existing = vault[item.id] {
      if existing.value == item.value {
        notes.append("the vault item \(item) has the value of `\(key)` already: the setting goes")
        return vault
      }
      switch ifExists {
      case .keep:
        notes.append(
          "the vault item \(item) is there already: kept, and the setting `\(key)` left where it is")
        return nil
      case .replace: item.created = existing.created
      case .fail:
        throw StepFailure(
          message:
            "the vault item \(item) is there already, with another value than the setting `\(key)`: say "
            + "`if-exists: keep` or `if-exists: replace`", path: stage.container.vaultPath.description)
      }
    }
    vault.put(item)
    try stage.setVault(vault)
    guard let written = try stage.vault()?[item.id], written == item else {
      throw StepFailure(
        message: "the vault item \(item) is not what the setting `\(key)` was when it is read back",
        path: stage.container.vaultPath.description)
    }
    return vault
  }
}
