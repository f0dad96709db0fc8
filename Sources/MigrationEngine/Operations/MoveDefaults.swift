import AppStores
import ContainerTransaction
import Cryptography
import FileSystem
import Formats
import Foundation

struct MoveDefaultsToFile: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.move-to-file",
      "Moves a setting that grew too large into a file.",
      Argument<String>("key", "the setting"), Argument<ContainerPath>("to", "the file"),
      Argument(
        "format",
        "`raw`: the bytes of text or data (default for these); `json`: an indented JSON document; "
          + "`plist`: a binary property list, which preserves every type", default: Format.raw),
      Argument<PropertyListValue?>(
        "reference",
        "a new value for the setting, such as the file's name; without it the setting is removed"),
      IfMissing.argument, IfExists.argument, DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {draft: Dear Ada}",
        step: "{key: draft, to: Documents/draft.txt, reference: draft.txt}",
        after: "{settings: {draft: draft.txt}, files: {Documents/draft.txt: Dear Ada}}"),
      make: Self.init)
  ]

  private enum Format: String, CaseIterable, ArgumentValue { case json, plist, raw }

  private let key: String
  private let to: ContainerPath
  private let format: Format
  private let reference: PropertyListValue?
  private let ifMissing: IfMissing
  private let ifExists: IfExists
  private let target: DefaultsTarget

  private var encoding: SettingEncoding { SettingEncoding(rawValue: format.rawValue) ?? .raw }
  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    if try stage.status(of: to) != nil { recorded.skipped.append(to.description) }
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    if let reference, value.matches(reference), try stage.status(of: to) != nil { return edit.notes }
    let bytes = try encode(value)
    let problem = "the file `\(to)` of the setting `\(key)` exists already"
    guard try recorded.makeRoom(at: to, on: stage, ifExists, or: problem) else {
      edit.notes.append("`\(to)` exists already: kept, and the setting `\(key)` left unchanged")
      return edit.notes
    }
    try recorded.noteMade(to, on: stage)
    // The file gets the permissions of the settings file.
    try stage.write(bytes, to: to, mode: stage.metadata(of: target.path(in: stage))?.mode)
    guard try encoding.setting(of: stage.read(to), like: value) == value else {
      throw StepFailure("the file `\(to)`, read back, differs from the setting `\(key)`", at: to)
    }
    edit.values[key] = reference
    return try edit.save(to: stage, &recorded)
  }

  private func encode(_ value: PropertyListValue) throws -> [UInt8] {
    try encoding.bytes(
      of: value, key: key, isIndented: true, argument: ("format", [.raw, .json, .plist]))
  }

  /// Moves the file's present content back into the setting.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    let recorded = try PriorValues.required(recorded)
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage)
    guard let setting = recorded.setting(key, in: path), let before = setting.before?.value else {
      let isNewer = try recorded.skipped.isEmpty && stage.status(of: to) != nil
      return isNewer ? ["`\(to)` was written since: left unchanged, and `\(key)` too"] : []
    }
    guard edit.values[key] == setting.after?.value else {
      return ["`\(key)` was changed since: kept, and `\(to)` too"]
    }
    guard try stage.status(of: to) != nil else { return ["`\(to)` does not exist: skipped"] }
    let bytes = try stage.read(to)
    // An unchanged file restores the exact value: JSON has fewer types than settings.
    let value = try bytes == encode(before) ? before : try encoding.setting(of: bytes, like: before)
    guard let value else {
      throw StepFailure("`\(to)` cannot become a setting: it is null, or not UTF-8 text", at: to)
    }
    edit.values[key] = value
    try stage.remove(to)
    edit.notes += try recorded.restore(recorded.removed, on: stage)
    return try edit.save(to: stage)
  }
}

struct MoveDefaultsToVault: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.move-from-defaults",
      "Moves settings into [the vault](Stores.md#the-vault).",
      Argument(
        [
          "key": "the setting, or",
          "keys": "setting: account, for several settings",
          "account": "the item's account, with `key`",
        ], read: moves),
      Argument(
        [
          "service": "required: the items' service",
          "access-group, label": "of the items",
          "accessible": "a class, such as `afterFirstUnlock`; default `whenUnlocked`",
          "synchronizable": "`true` or `false` (default)",
        ], read: item),
      Argument<Form?>(
        "as",
        "for a value that is neither text nor data: `text` (a number or Bool as text) or `json` "
          + "(dictionaries, arrays, text, numbers, Bools)"), IfMissing.argument, IfExists.argument,
      DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {auth_token: secret, theme: dark}",
        step: "{key: auth_token, service: s, account: auth}",
        after: "{settings: {theme: dark}, vault: {auth: secret}}"),
      make: Self.init)
  ]

  private enum Form: String, CaseIterable, ArgumentValue { case text, json }

  /// The settings, each with the account of its item.
  private let moves: [(key: String, account: String?)]
  /// The other attributes of the items.
  private let template: VaultItem
  private let form: Form?
  private let ifMissing: IfMissing
  private let ifExists: IfExists
  private let target: DefaultsTarget

  private var encoding: SettingEncoding {
    form.flatMap { SettingEncoding(rawValue: $0.rawValue) } ?? .raw
  }

  /// The attributes of the items other than the account.
  private static func item(_ reader: YAMLReader, _: MigrationFiles) throws -> VaultItem {
    var item = VaultItem(
      service: try reader.required("service").text("`service`"), accessGroup: try reader.text("access-group"),
      accessibility: try reader.choice("accessible") ?? .whenUnlocked, value: SecretBytes([]))
    item.label = try reader.text("label")
    item.isSynchronizable = try reader.boolean("synchronizable") ?? false
    return item
  }

  private static func moves(
    _ reader: YAMLReader, _: MigrationFiles
  ) throws -> [(key: String, account: String?)] {
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
    var changes: [RecordedItems.Change] = []
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
      var changed = try vault ?? Vault(new: stage.requireDeviceKeys(Self.kinds[0].name))
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
        throw StepFailure("the vault item \(item), read back, differs from the setting `\(key)`", at: path)
      }
      for secret in secrets { stage.keepSealed(secret, to: vault.recipients) }
      recorded.items = try RecordedItems(changes, sealedAs: vault)
    }
    // The values are recorded only in the sealed items.
    return try edit.save(to: stage)
  }

  var effects: StepEffects { StepEffects(needsVault: true) }

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
    guard var vault = try stage.vault() else { return ["the vault does not exist: skipped"] }
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
      "the vault item of the setting `\(key)` cannot be moved back: "
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

/// How a setting is written as bytes, to a file or a vault item.
enum SettingEncoding: String, Sendable {
  /// Text as UTF-8, data unchanged.
  case raw
  /// A number or Bool as text, as `defaults.convert` writes it.
  case text
  case json
  /// A binary property list, which keeps every type.
  case plist

  /// - Parameters:
  ///   - isIndented: whether JSON has a line for each value.
  ///   - argument: the name of the operation's argument for the encoding, with the encodings that it accepts, those for
  ///     more types last.
  /// - Throws: ``StepFailure`` when the encoding cannot represent the value.
  func bytes(
    of value: PropertyListValue, key: String, isIndented: Bool,
    argument: (name: String, encodings: [SettingEncoding])
  ) throws -> [UInt8] {
    let problem: String
    switch (self, value) {
    case (.raw, .string(let text)): return Array(text.utf8)
    case (.raw, .data(let bytes)): return bytes
    case (.raw, _): problem = "neither text nor data"
    case (.text, _):
      if case .string(let text) = SettingType.string.convert(value) { return Array(text.utf8) }
      problem = "which cannot be text"
    case (.json, _):
      if let json = JSONValue(value) { return JSONDocument(json, isIndented: isIndented).bytes }
      problem =
        "and contains a value that JSON cannot represent: a date, data or a number that is not finite"
    case (.plist, _): return try PropertyListDocument(format: .binary, value: value).encoded()
    }
    let others = argument.encodings.drop { $0 != self }.dropFirst()
      .map { "`\(argument.name): \($0.rawValue)`" }.joined(separator: " or ")
    throw StepFailure(
      "the setting `\(key)` is \(value.nounPhrase), \(problem)"
        + (others.isEmpty ? "" : ": say \(others)"))
  }

  /// The setting that was written.
  ///
  /// - Parameter type: a value of its type, which bytes in most encodings do not have; nil when that is unknown.
  /// - Returns: nil when the bytes are not of that type.
  func setting(of bytes: [UInt8], like type: PropertyListValue?) throws -> PropertyListValue? {
    let text = String(validating: bytes, as: UTF8.self)
    switch self {
    case .raw:
      if case .data = type { return .data(bytes) }
      return text.map { .string($0) }
    case .text:
      guard let text, let type else { return nil }
      // A real of 32 bits is written in the digits that it needs, and read as any real.
      let written = SettingType(of: type).map { $0 == .float ? .real : $0 }
      return written?.convert(.string(text))?.typed(like: type)
    case .json: return try JSONDocument(bytes: bytes).value.propertyListValue?.typed(like: type)
    case .plist: return try PropertyListDocument(bytes: bytes).value
    }
  }
}
