import AppStores
import ContainerTransaction
import Cryptography
import FileSystem
import Formats
import Foundation

/// The vault items of a step or a check: all that have every attribute that is named.
struct VaultSelection: Sendable, CustomStringConvertible {
  static let keys = [
    "class", "service", "service-prefix", "account", "account-prefix", "access-group", "synchronizable",
  ]
  static let argument = Argument([:], common: keys) { reader, _ in try Self(reading: reader) }

  private let address: VaultItem.Address
  private let prefixes: [VaultItem.Attribute: String]
  let description: String

  init(reading reader: YAMLReader) throws {
    var words: [String] = []
    let itemClass: VaultItem.Class? = try reader.choice("class")
    if let itemClass { words.append("class \(itemClass.rawValue)") }
    var attributes: [VaultItem.Attribute: String] = [:]
    var prefixes: [VaultItem.Attribute: String] = [:]
    for (key, attribute) in [("service", VaultItem.Attribute.service), ("account", .account)] {
      let prefix = reader[key + "-prefix"]
      if let prefix, reader[key] != nil {
        throw prefix.position.error("name either `\(key)` or `\(key)-prefix`, not both")
      }
      attributes[attribute] = try reader.text(key)
      prefixes[attribute] = try reader.text(key + "-prefix")
      if let prefix, prefixes[attribute]?.isEmpty == true {
        throw prefix.position.error("every \(key) starts with an empty prefix")
      }
      if let text = attributes[attribute] { words.append(Self.words(key, text)) }
      if let text = prefixes[attribute] { words.append("\(key) `\(text)…`") }
    }
    attributes[.accessGroup] = try reader.text("access-group")
    if let group = attributes[.accessGroup] { words.append(Self.words("access group", group)) }
    if attributes.isEmpty && prefixes.isEmpty && itemClass == nil {
      throw reader.position.error(
        "\(reader.what) does not say which items: name a `service`, an `account` or a `service-prefix`")
    }
    address = VaultItem.Address(
      itemClass: itemClass, attributes: attributes, isSynchronizable: try reader.boolean("synchronizable"))
    self.prefixes = prefixes
    description = words.joined(separator: ", ")
  }

  private static func words(_ what: String, _ text: String) -> String {
    text.isEmpty ? "no \(what)" : "\(what) `\(text)`"
  }

  /// The prefix of an attribute that selects the items.
  func prefix(of attribute: VaultItem.Attribute) -> String? { prefixes[attribute] }

  func items(of vault: Vault) -> [VaultItem] {
    address.items(in: vault).filter { item in
      prefixes.allSatisfy { (item[$0] ?? "").utf8.starts(with: $1.utf8) }
    }
  }
}

/// The vault as one step changes it: opened once, sealed once, and only when something changed.
struct VaultEdit {
  var notes: [String] = []
  private var vault: Vault?
  private var changes: [RecordedItems.Change] = []
  private let path: ContainerPath

  init(_ stage: StagedContainer) throws {
    path = stage.container.vaultPath
    vault = try stage.vault()
  }

  /// The items of a selection; when there are none the step fails or adds a note.
  mutating func items(_ selection: VaultSelection, _ ifMissing: IfMissing) throws -> [VaultItem] {
    let found = itemsOrNone(selection)
    if found.isEmpty {
      let why = vault == nil ? " (no vault)" : ""
      notes.append(try ifMissing.skipped("no vault item has \(selection)\(why)", path: path))
    }
    return found
  }

  /// The items of a selection, without a failure or a note when there are none.
  func itemsOrNone(_ selection: VaultSelection) -> [VaultItem] { vault.map(selection.items) ?? [] }

  /// Changes items and their names. All old ones are removed before any new one is added, so that names may be swapped.
  mutating func change(
    _ items: [VaultItem], _ ifExists: IfExists = .fail, by change: (inout VaultItem) throws -> Void
  ) throws {
    var moves: [(old: VaultItem, new: VaultItem)] = []
    for old in items {
      var new = old
      try change(&new)
      if new == old { continue }
      if let problem = new.problem, old.problem == nil {
        throw StepFailure("the vault item \(old) cannot be changed: \(problem)", at: path)
      }
      new.modified = UTCTime.text(Date())
      if let other = moves.first(where: { $0.new.id == new.id }) {
        throw StepFailure(
          "the vault items \(other.old) and \(old) both become \(new): choose them one by one", at: path)
      }
      moves.append((old, new))
    }
    while let index = try moves.firstIndex(where: { try !mayMove(to: $0.new.id, $0.old, moves, ifExists) }) {
      notes.append("the vault item \(moves[index].new) exists already: kept, and \(moves[index].old) too")
      moves.remove(at: index)
    }
    let replaced = moves.compactMap { move in
      moves.contains { $0.old.id == move.new.id } ? nil : vault?[move.new.id]
    }
    changes += moves.map { ($0.old, $0.new) } + replaced.map { ($0, nil) }
    for move in moves { vault?.remove(move.old.id) }
    for move in moves { vault?.put(move.new) }
  }

  /// Gives items new values.
  ///
  /// - Parameter value: throws ``ValueMismatch`` for an item that has none.
  mutating func convert(
    _ items: [VaultItem], _ unmapped: Unmapped, by value: (VaultItem) throws -> SecretBytes
  ) throws {
    var (converted, gone): ([VaultItem.ID: SecretBytes], [VaultItem]) = ([:], [])
    for item in items {
      do {
        converted[item.id] = try value(item)
      } catch let mismatch as ValueMismatch {
        let outcome = try unmapped.outcome("the vault item \(item): \(mismatch.reason)") {
          StepFailure("the vault item \(item) cannot be converted: \(mismatch.reason); say \($0)", at: path)
        }
        notes.append(outcome.note)
        if outcome.isDeleted { gone.append(item) }
      }
    }
    try change(items) { item in
      if let value = converted[item.id] { item.value = value }
    }
    remove(gone)
  }

  /// Whether an item may get an ID, which may be that of another moved item.
  private func mayMove(
    to id: VaultItem.ID, _ old: VaultItem, _ moves: [(old: VaultItem, new: VaultItem)], _ ifExists: IfExists
  ) throws -> Bool {
    guard id != old.id, vault?[id] != nil, !moves.contains(where: { $0.old.id == id }) else { return true }
    return try ifExists.replaces(
      or: "the vault item \(id) exists already, so that \(old) cannot be renamed to it", path: path)
  }

  mutating func remove(_ items: [VaultItem]) {
    changes += items.map { ($0, nil) }
    for item in items { vault?.remove(item.id) }
  }

  /// Writes the vault when something changed.
  func save(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    if let vault, !changes.isEmpty {
      try stage.setVault(vault)
      // The others, too: a revert takes what else it finds for written since.
      let others = vault.sorted.filter { item in !changes.contains { $0.after?.id == item.id } }
      recorded.items = try RecordedItems(changes + others.map { ($0, $0) }, sealedAs: vault)
    }
    return notes
  }
}
