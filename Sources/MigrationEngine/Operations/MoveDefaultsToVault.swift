import AgeEncryption
import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// `vault.move-from-defaults`: moves settings into the vault. A setting is removed only after its item was sealed, opened
/// again and compared.
struct MoveDefaultsToVault: MigrationOperation {
  static let name = "vault.move-from-defaults"
  static let keys =
    [
      "key", "keys", "service", "account", "access-group", "accessible", "label", "synchronizable", "as",
      "if-missing", "if-exists",
    ] + DefaultsTarget.keys

  private let target: DefaultsTarget
  /// The settings, each with the account of its item.
  private let moves: [(key: String, account: String?)]
  /// The other attributes of the items.
  private let template: VaultItem
  private let form: SecretForm?
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

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let file = try target.path(in: stage.container)
    try recorded.noteMade(stage.container.vaultPath, on: stage)
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
      recorded.types.append(SettingType(of: value, key, in: file))
    }
    if let vault = try stage.vault() { recorded.items = try SealedItems(changes, sealedAs: vault) }
    // The values are recorded only in the sealed items.
    return try edit.save(to: stage)
  }

  /// Seals an item into the vault and reads it back; nil when an existing one is kept.
  private func put(
    _ item: VaultItem, of key: String, _ stage: StagedContainer, _ notes: inout [String]
  ) throws -> Vault? {
    var vault = try stage.vault() ?? Vault(new: stage.requireDeviceKeys(Self.name))
    var item = item
    let now = UTCTime.text(Date())
    (item.created, item.modified) = (now, now)
    if let existing = vault[item.id] {
      if existing.value == item.value {
        notes.append("the vault item \(item) has the value of `\(key)` already: the setting is removed")
        return vault
      }
      switch ifExists {
      case .keep:
        notes.append(
          "the vault item \(item) exists already: kept, and the setting `\(key)` left unchanged")
        return nil
      case .replace: item.created = existing.created
      case .fail:
        throw StepFailure(
          message:
            "the vault item \(item) exists already, with another value than the setting `\(key)`: say "
            + "`if-exists: keep` or `if-exists: replace`", path: stage.container.vaultPath.description)
      }
    }
    vault.put(item)
    try stage.setVault(vault)
    guard let written = try stage.vault()?[item.id], written == item else {
      throw StepFailure(
        message: "the vault item \(item), read back, differs from the setting `\(key)`",
        path: stage.container.vaultPath.description)
    }
    return vault
  }
}

extension MoveDefaultsToVault {
  var needsVault: Bool { true }
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
  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard var vault = try stage.vault() else { return ["there is no vault: skipped"] }
    let file = try target.path(in: stage.container)
    for item in try returns(recorded, stage) {
      guard let now = vault[item.written] else {
        edit.notes.append("the vault item \(item.written) does not exist: skipped")
        continue
      }
      guard edit.values[item.key] == nil else {
        edit.notes.append("`\(item.key)` exists already: kept, and the vault item \(item.written) too")
        continue
      }
      let value = try now.value.withBytes {
        try SecretForm.setting(of: Array($0), as: form, type: item.type, key: item.key)
      }
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

  private func returns(_ recorded: DownValues?, _ stage: StagedContainer) throws -> [Return] {
    guard let recorded else {
      return moves.map { move in
        var item = template
        item.account = move.account
        return Return(key: move.key, type: nil, written: item.id, before: nil, wasThere: false)
      }
    }
    let changes = try recorded.items?.open(on: stage) ?? []
    return zip(recorded.types, changes).compactMap { type, change in
      change.after.map { after in
        Return(
          key: type.key, type: type.value, written: after.id, before: change.before,
          wasThere: change.before == after)
      }
    }
  }
}

/// The form of a secret that was a setting of another type than text or data.
enum SecretForm: String, CaseIterable, Sendable {
  /// A number or Bool as text, as `defaults.convert` writes it.
  case text
  /// A JSON document: dictionaries, arrays, text, numbers, Bools.
  case json

  /// The bytes: text as UTF-8, data unchanged, other types only in an explicit form.
  static func bytes(of value: PropertyListValue, as form: SecretForm?, key: String) throws -> SecretBytes {
    var bytes: [UInt8]
    switch (form, value) {
    case (nil, .string(let text)): bytes = Array(text.utf8)
    case (nil, .data(let data)): bytes = data
    case (.text?, _):
      guard case .string(let text) = SettingValueType.string.convert(value) else {
        throw StepFailure(
          message: "the setting `\(key)`, \(value.nounPhrase), cannot be text: say `as: json`")
      }
      bytes = Array(text.utf8)
    case (.json?, _):
      guard let document = JSONValue(value) else {
        throw StepFailure(
          message:
            "the setting `\(key)`, \(value.nounPhrase), contains a value that JSON cannot represent: a date, data or "
            + "a number that is not finite")
      }
      bytes = JSONDocument(document, isIndented: false).bytes
    case (nil, _):
      throw StepFailure(
        message:
          "the setting `\(key)` is \(value.nounPhrase), and a secret is text or data: say `as: text` or "
          + "`as: json`")
    }
    return SecretBytes(wiping: &bytes)
  }

  /// The setting that a secret was made of.
  ///
  /// - Parameter type: its type; nil when that is unknown.
  /// - Throws: ``StepFailure`` when the bytes are not of that type.
  static func setting(
    of bytes: [UInt8], as form: SecretForm?, type: PropertyListValue?, key: String
  ) throws -> PropertyListValue {
    let text = String(validating: bytes, as: UTF8.self)
    let value: PropertyListValue? =
      switch (form, type) {
      case (nil, .data?): .data(bytes)
      case (nil, _): text.map { .string($0) } ?? .data(bytes)
      case (.text?, let type?):
        text.flatMap { SettingValueType(of: type)?.convert(.string($0))?.typed(like: type) }
      case (.text?, nil): nil
      case (.json?, _): try? JSONDocument(bytes: bytes).value.propertyListValue?.typed(like: type)
      }
    if let value { return value }
    throw StepFailure(
      message:
        "the vault item of the setting `\(key)` cannot be moved back: "
        + (type == nil
          ? "the setting's type is unknown" : "it is no longer \(type?.nounPhrase ?? "of its type")"))
  }
}
