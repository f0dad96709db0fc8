import AgeEncryption
import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// `vault.convert`: makes vault items that are text JSON documents of named fields.
struct ConvertVaultItems: MigrationOperation {
  static let name = "vault.convert"
  static let keys = ["fields", "separator", "with", "unmapped", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  /// The field that gets the text, or the fields that get its parts.
  private let fields: [String]
  private let separator: String?
  /// Further fields, the same for every item.
  private let constants: PropertyListValue
  private let unmapped: Unmapped
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    let node = try reader.required("fields")
    fields = try node.texts("`fields`")
    separator = try reader.text("separator")
    if fields.isEmpty || Set(fields).count < fields.count {
      throw node.position.error("`fields` names the fields of the document, each once")
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
      throw node.position.error("`with` holds what JSON has no form for: a date or data")
    }
    unmapped = try reader.choice("unmapped") ?? .fail
    ifMissing = try reader.ifMissing()
  }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertItems(on: stage, inverse: text)
  }

  /// The text that a document with exactly these fields was made of.
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

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
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
        case .keep: edit.notes.append("the vault item \(item): \(reason.text): kept as it is")
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
    return try edit.save(to: stage, &memory)
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
