import AgeEncryption
import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// `vault.rename`: changes the service or account of vault items, or a prefix of these.
struct RenameVaultItems: MigrationOperation {
  static let name = "vault.rename"
  static let keys = ["to", "if-missing", "if-exists"] + VaultSelection.keys
  static let needsVault = true

  private static let targetKeys = ["service", "account", "service-prefix", "account-prefix"]

  private let selection: VaultSelection
  private let service, account: Rename?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  /// The new value of an attribute.
  enum Rename: Sendable {
    case whole(String)
    case prefix(old: String, new: String)

    func applied(to text: String?) -> String {
      switch self {
      case .whole(let new): new
      case .prefix(let old, let new):
        new + String(decoding: (text ?? "").utf8.dropFirst(old.utf8.count), as: UTF8.self)
      }
    }
  }

  init(
    _ selection: VaultSelection, service: Rename?, account: Rename?, ifMissing: IfMissing, ifExists: IfExists,
    at position: YAMLPosition
  ) throws {
    if service == nil && account == nil {
      throw position.error("`to` names a new `service`, `account`, `service-prefix` or `account-prefix`")
    }
    (self.selection, self.service, self.account) = (selection, service, account)
    (self.ifMissing, self.ifExists) = (ifMissing, ifExists)
  }

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    let selection = try VaultSelection(reading: reader)
    let node = try reader.required("to")
    let target = try YAMLReader(node, what: "`to` of \(Self.name)", keys: Self.targetKeys)
    try self.init(
      selection, service: Self.rename("service", .service, target, selection),
      account: Self.rename("account", .account, target, selection), ifMissing: reader.ifMissing(),
      ifExists: reader.ifExists(), at: node.position)
  }

  private static func rename(
    _ key: String, _ attribute: VaultAttribute, _ target: YAMLReader, _ selection: VaultSelection
  ) throws -> Rename? {
    let whole = try target.text(key)
    guard let node = target[key + "-prefix"] else { return whole.map { .whole($0) } }
    if whole != nil { throw node.position.error("name either `\(key)` or `\(key)-prefix`, not both") }
    guard let old = selection.prefix(of: attribute) else {
      throw node.position.error("a prefix replaces a prefix: choose the items by `\(key)-prefix`, too")
    }
    return .prefix(old: old, new: try node.text("`\(key)-prefix`"))
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items, ifExists) { item in
      if let service { item.service = service.applied(to: item.service) }
      if let account { item.account = account.applied(to: item.account) }
    }
    return try edit.save(to: stage, &recorded)
  }
}

/// `vault.move-to`: moves vault items to another access group.
struct MoveVaultItems: MigrationOperation {
  static let name = "vault.move-to"
  static let keys = ["to", "if-missing", "if-exists"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  /// Empty for the app's own.
  private let group: String
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    group = try reader.required("to").text("`to`")
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items, ifExists) { $0.accessGroup = group }
    return try edit.save(to: stage, &recorded)
  }
}

/// `vault.set-accessibility`: sets when a device can read vault items, and so whether they may leave it.
struct SetVaultAccessibility: MigrationOperation {
  static let name = "vault.set-accessibility"
  static let keys = ["accessible", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  let selection: VaultSelection
  let accessibility: VaultAccessibility
  let ifMissing: IfMissing

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items) { $0.accessibility = accessibility }
    return try edit.save(to: stage, &recorded)
  }
}

extension SetVaultAccessibility {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    _ = try reader.required("accessible")
    accessibility = try reader.choice("accessible") ?? .whenUnlocked
    ifMissing = try reader.ifMissing()
  }
}

/// `vault.delete`: removes vault items.
struct DeleteVaultItems: MigrationOperation {
  static let name = "vault.delete"
  static let keys = ["destructive", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  let selection: VaultSelection
  let ifMissing: IfMissing
  let reason: DestructiveReason

  var isDestructive: Bool { true }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    edit.remove(try edit.items(selection, ifMissing))
    return try edit.save(to: stage, &recorded)
  }
}

extension DeleteVaultItems {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    ifMissing = try reader.ifMissing()
    reason = try reader.reason()
  }
}

/// `vault.convert`: converts the text of vault items to JSON documents of named fields.
struct ConvertVaultItems: MigrationOperation {
  static let name = "vault.convert"
  static let keys = ["fields", "separator", "with", "unmapped", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  /// The field of the text, or those of its parts.
  private let fields: [String]
  private let separator: String?
  /// More fields, the same for every item.
  private let constants: PropertyListValue
  private let unmapped: Unmapped
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    let node = try reader.required("fields")
    fields = try node.texts("`fields`")
    separator = try reader.text("separator")
    if fields.isEmpty || Set(fields).count < fields.count {
      throw node.position.error("`fields` names each field of the document once")
    }
    if fields.count > 1, separator?.isEmpty ?? true {
      throw node.position.error("more than one field needs a `separator` that splits the text")
    }
    if fields.count == 1, let node = reader["separator"] {
      throw node.position.error("`separator` splits the text into several fields: name them in `fields`")
    }
    let constants = try reader["with"]?.pairs("`with`")
    for pair in constants?.pairs ?? [] where fields.contains(pair.key.source) {
      throw pair.keyPosition.error("`\(pair.key.source)` is one of `fields`, too")
    }
    self.constants = .dictionary(try constants?.propertyListValues() ?? [:])
    if let node = reader["with"], self.constants.json == nil {
      throw node.position.error("`with` contains a value that JSON cannot represent: a date or data")
    }
    unmapped = try reader.choice("unmapped") ?? .fail
    ifMissing = try reader.ifMissing()
  }

  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    try DownValues.required(recorded).revertItems(on: stage, inverse: text)
  }

  /// The text of a document with exactly these fields; nil for other documents.
  private func text(of item: VaultItem) -> SecretBytes? {
    let object = item.value.withBytes { try? JSONSerialization.jsonObject(with: Data($0)) }
    guard let document = object as? [String: Any], let constants = constants.json as? [String: Any],
      Set(document.keys) == Set(fields).union(constants.keys)
    else { return nil }
    let parts = fields.compactMap { document[$0] as? String }
    guard parts.count == fields.count else { return nil }
    var bytes = Array(parts.joined(separator: separator ?? "").utf8)
    return SecretBytes(wiping: &bytes)
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    var (converted, gone): ([VaultItem.ID: SecretBytes], [VaultItem]) = ([:], [])
    let items = try edit.items(selection, ifMissing)
    for item in items {
      do {
        converted[item.id] = try document(of: item)
      } catch let reason as Reason {
        switch unmapped {
        case .fail:
          throw StepFailure(
            message: "the vault item \(item) cannot be converted: \(reason.text); say `unmapped: keep` or "
              + "`unmapped: delete`", path: stage.container.vaultPath.description)
        case .keep: edit.notes.append("the vault item \(item): \(reason.text): left unchanged")
        case .delete:
          edit.notes.append("the vault item \(item): \(reason.text): deleted")
          gone.append(item)
        }
      }
    }
    try edit.change(items) { item in
      if let value = converted[item.id] { item.value = value }
    }
    edit.remove(gone)
    return try edit.save(to: stage, &recorded)
  }

  private struct Reason: Error {
    let text: String
  }

  private func document(of item: VaultItem) throws -> SecretBytes {
    guard let text = item.value.withBytes({ String(validating: $0, as: UTF8.self) }) else {
      throw Reason(text: "its value is not UTF-8")
    }
    if (try? JSONSerialization.jsonObject(with: Data(text.utf8))) is [String: Any] {
      throw Reason(text: "its value is a JSON document already")
    }
    let parts = separator.map { text.components(separatedBy: $0) } ?? [text]
    guard parts.count == fields.count else {
      let count = parts.count == 1 ? "1 part" : "\(parts.count) parts"
      throw Reason(text: "its value has \(count), and \(fields.count) fields are named")
    }
    var document = constants.json as? [String: Any] ?? [:]
    for (field, part) in zip(fields, parts) { document[field] = part }
    var bytes = try SecretForm.json(document)
    return SecretBytes(wiping: &bytes)
  }
}
