import AgeEncryption
import AppContainer
import ContainerTransaction

extension StepMemory {
  /// Takes back what the step changed in the vault: each attribute, and the value, where it still is what the step wrote. An
  /// item that was changed since keeps what is newer.
  ///
  /// - Parameter inverse: the old form of a value that is newer than the step; nil when it has none.
  /// - Returns: remarks on what stays.
  func revertItems(
    on stage: StagedContainer, inverse: (VaultItem) throws -> SecretBytes? = { _ in nil }
  ) throws -> [String] {
    guard let items else { return [] }
    let changes = try items.open(on: stage)
    guard var vault = try stage.vault() ?? emptyVault(changes, stage) else {
      return ["there is no vault: skipped"]
    }
    var notes: [String] = []
    var returning: [(now: VaultItem, then: VaultItem)] = []
    for case (let before?, let after?) in changes {
      guard let now = vault[after.id] else {
        notes.append("the vault item \(after) is not there: skipped")
        continue
      }
      var then = now.taking(back: before, from: after)
      if before.value != after.value && now.value != after.value {
        if let value = try inverse(now) {
          then.value = value
        } else {
          notes.append("the vault item \(now) was changed since: its value is left as it is")
        }
      }
      returning.append((now, then))
    }
    for item in returning { vault.remove(item.now.id) }
    for item in returning {
      if vault[item.then.id] == nil {
        vault.put(item.then)
      } else {
        notes.append("the vault item \(item.then) is there already: kept, and \(item.now) too")
        vault.put(item.now)
      }
    }
    for case (let before?, nil) in changes {
      if vault[before.id] == nil {
        vault.put(before)
      } else {
        notes.append("the vault item \(before) is there now: left as it is")
      }
    }
    try stage.setVault(vault)
    return notes
  }

  /// What deleted items come back into when the vault itself is gone since.
  private func emptyVault(_ changes: [SealedItems.Change], _ stage: StagedContainer) throws -> Vault? {
    guard changes.contains(where: { $0.after == nil }) else { return nil }
    return try Vault(new: stage.requireDeviceKeys("taking back a step on the vault"))
  }
}

extension VaultItem {
  /// This item with each attribute as it was before, where it still is what was written.
  fileprivate func taking(back before: VaultItem, from after: VaultItem) -> VaultItem {
    var item = self
    for attribute in VaultAttribute.allCases where self[attribute] == after[attribute] {
      item[attribute] = before[attribute]
    }
    if accessibility == after.accessibility { item.accessibility = before.accessibility }
    if value == after.value { item.value = before.value }
    if modified == after.modified { item.modified = before.modified }
    return item
  }
}
