import AppContainer
import ContainerTransaction
import Foundation

/// Vault items that a step changed, sealed to the keys that the vault had: neither names nor values are in the clear.
struct SealedItems: Sendable, Codable, Equatable {
  /// One item, before and after; nil where there was none, or is none.
  typealias Change = (before: VaultItem?, after: VaultItem?)

  /// Places in the sorted items of the two sealed vaults.
  private struct Pair: Sendable, Codable, Equatable {
    var before, after: Int?
  }

  private var before, after: Data
  private var pairs: [Pair]

  /// Seals changes as the vault that they were made in is sealed.
  init(_ changes: [Change], sealedAs vault: Vault) throws {
    var empty = vault
    empty.removeAll()
    var (old, new) = (empty, empty)
    for change in changes {
      if let item = change.before { old.put(item) }
      if let item = change.after { new.put(item) }
    }
    let (oldIDs, newIDs) = (old.sorted.map(\.id), new.sorted.map(\.id))
    pairs = changes.map { change in
      Pair(
        before: change.before.flatMap { oldIDs.firstIndex(of: $0.id) },
        after: change.after.flatMap { newIDs.firstIndex(of: $0.id) })
    }
    (before, after) = (Data(try old.sealed()), Data(try new.sealed()))
  }

  /// The changes, in their order.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when no key at hand opens them.
  func open(on stage: StagedContainer) throws -> [Change] {
    let keys = try stage.requireDeviceKeys("taking back a step on the vault")
    let path = stage.container.vaultPath.description
    let old = try Vault(opening: [UInt8](before), with: keys, path: path).sorted
    let new = try Vault(opening: [UInt8](after), with: keys, path: path).sorted
    return try pairs.map { pair in
      guard pair.before.map(old.indices.contains) ?? true, pair.after.map(new.indices.contains) ?? true else {
        throw StepFailure(message: "what the step wrote down about the vault is damaged", path: path)
      }
      return (pair.before.map { old[$0] }, pair.after.map { new[$0] })
    }
  }
}
