import AppContainer
import ContainerTransaction
import FileSystem
import Formats
import Foundation

/// The vault as one step changes it: opened once, sealed once, and only when something changed.
struct VaultEdit {
  /// Remarks so far.
  var notes: [String] = []
  private var vault: Vault?
  private var changes: [SealedItems.Change] = []
  private let path: ContainerPath

  init(_ stage: StagedContainer) throws {
    path = stage.container.vaultPath
    vault = try stage.vault()
  }

  /// The items that a step is about; when there are none the step fails, or leaves a remark.
  mutating func items(_ selection: VaultSelection, _ ifMissing: IfMissing) throws -> [VaultItem] {
    let found = vault.map(selection.items) ?? []
    if found.isEmpty {
      let why = vault == nil ? " (there is no vault)" : ""
      if ifMissing == .fail {
        throw StepFailure(message: "no vault item has \(selection)\(why)", path: path.description)
      }
      notes.append("no vault item has \(selection)\(why): skipped")
    }
    return found
  }

  /// Changes items, their names too. All old ones go before any new one comes, so that names may be swapped.
  mutating func change(
    _ items: [VaultItem], _ ifExists: IfExists = .fail, by change: (inout VaultItem) throws -> Void
  ) throws {
    var moves: [(old: VaultItem, new: VaultItem)] = []
    for old in items {
      var new = old
      try change(&new)
      if new == old { continue }
      new.modified = UTCTime.text(Date())
      if let other = moves.first(where: { $0.new.id == new.id }) {
        throw StepFailure(
          message: "the vault items \(other.old) and \(old) both become \(new): choose them one by one",
          path: path.description)
      }
      moves.append((old, new))
    }
    while let index = try moves.firstIndex(where: { try !mayMove(to: $0.new.id, $0.old, moves, ifExists) }) {
      notes.append("the vault item \(moves[index].new) is there already: kept, and \(moves[index].old) too")
      moves.remove(at: index)
    }
    let replaced = moves.compactMap { move in
      moves.contains { $0.old.id == move.new.id } ? nil : vault?[move.new.id]
    }
    changes += moves.map { ($0.old, $0.new) } + replaced.map { ($0, nil) }
    for move in moves { vault?.remove(move.old.id) }
    for move in moves { vault?.put(move.new) }
  }

  /// Whether an item may get an id, which may be that of one that goes.
  private func mayMove(
    to id: VaultItem.ID, _ old: VaultItem, _ moves: [(old: VaultItem, new: VaultItem)], _ ifExists: IfExists
  ) throws -> Bool {
    guard id != old.id, vault?[id] != nil, !moves.contains(where: { $0.old.id == id }) else { return true }
    if ifExists == .fail {
      throw StepFailure(
        message:
          "the vault item \(id) is there already, so that \(old) cannot become it: say `if-exists: keep` or "
          + "`if-exists: replace`", path: path.description)
    }
    return ifExists == .replace
  }

  /// Removes items.
  mutating func remove(_ items: [VaultItem]) {
    changes += items.map { ($0, nil) }
    for item in items { vault?.remove(item.id) }
  }

  /// Writes the vault when something changed.
  func save(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    if let vault, !changes.isEmpty {
      try stage.setVault(vault)
      memory.items = try SealedItems(changes, sealedAs: vault)
    }
    return notes
  }
}
