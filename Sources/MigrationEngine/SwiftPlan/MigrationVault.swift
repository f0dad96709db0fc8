import AgeEncryption
import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// The vault as a stage changes it: opened once, and sealed once at the stage's end.
package struct MigrationVault {
  let draft: VaultDraft

  /// An item.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` without the device key.
  package func item(_ id: VaultItem.ID) throws -> VaultItem? { try draft.open()?[id] }

  /// The items of an address, all without one, in order.
  package func items(_ address: VaultAddress = VaultAddress()) throws -> [VaultItem] {
    try draft.open().map(address.items) ?? []
  }

  /// Puts an item, in place of one with the same id; a vault is made where there is none. A setting that goes in the same
  /// stage and whose value the item has is kept nowhere in the clear.
  package func put(_ item: VaultItem) throws { try draft.put(item) }

  /// Removes an item.
  ///
  /// - Returns: whether it was there.
  @discardableResult
  package func remove(_ id: VaultItem.ID) throws -> Bool { try draft.remove(id) }
}

/// The vault in the middle of a stage.
final class VaultDraft {
  /// Items that the stage has put.
  private(set) var put: [VaultItem] = []
  /// All values that were in it or have come, for messages without them.
  private(set) var seen: [SecretBytes] = []
  private let stage: StagedContainer
  /// Who asks for the device key, for the message without one.
  private let name: String
  private var vault: Vault?
  private var isOpen = false
  private var hasChanged = false

  init(_ stage: StagedContainer, _ name: String) {
    self.stage = stage
    self.name = name
  }

  func open() throws -> Vault? {
    if !isOpen {
      vault = try stage.vault()
      seen += vault?.items.values.map(\.value) ?? []
      isOpen = true
    }
    return vault
  }

  func put(_ item: VaultItem) throws {
    var vault = try open() ?? Vault(new: stage.requireDeviceKeys("the stage \(name)"))
    var item = item
    let now = UTCTime.text(Date())
    item.created = vault[item.id]?.created ?? item.created ?? now
    item.modified = now
    vault.put(item)
    put.append(item)
    seen.append(item.value)
    (self.vault, hasChanged) = (vault, true)
  }

  func remove(_ id: VaultItem.ID) throws -> Bool {
    guard try open() != nil, vault?.remove(id) != nil else { return false }
    hasChanged = true
    return true
  }

  /// Writes the vault when something changed, and forgets it.
  func save() throws {
    if hasChanged, let vault { try stage.setVault(vault) }
    (vault, isOpen, hasChanged) = (nil, false, false)
  }
}
