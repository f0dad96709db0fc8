import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem

/// The way back of a vault, item by item.
extension Undoing {
  /// The three states of a vault that a rollback tells apart; nil where there was none.
  private struct States {
    /// What the transaction replaced, and what it wrote.
    var before: Vault?, written: Vault?
    /// What is there now.
    var present: Vault?
  }

  mutating func undoVault(_ change: ChangeRecord) throws {
    // As the transaction left it: the very file comes back, and no key is needed.
    if try digest(change.path) == change.after?.digest { return try undoWhole(change) }
    guard let keys = staged.deviceKeys else {
      // Who gives up what is newer gives up all of a file that nobody can look into.
      if discardingNewer { return try undoWhole(change) }
      throw locked(change, "", nil)
    }
    let states: States
    do {
      states = States(
        before: try vault((change.kept, kept), keys, change),
        written: try vault(written(change), keys, change),
        present: try staged.vault())
    } catch let error as DrydockError where error.code == .vaultLocked {
      throw locked(change, "the key at hand does not open all of it; ", error)
    } catch let error as DrydockError where error.code == .badVault {
      // One of the three is damaged: then there are no items to compare.
      return try undoWhole(change)
    }
    try undoItems(change, states)
  }

  private func vault(
    _ place: (name: ContainerPath?, kept: KeptFiles), _ keys: DeviceKeys, _ change: ChangeRecord
  ) throws -> Vault? {
    let kept = place.kept
    guard let name = place.name, try kept.status(name) != nil else { return nil }
    return try Vault(opening: kept.contents(name), with: keys, path: change.path.description)
  }

  private func locked(_ change: ChangeRecord, _ why: String, _ cause: DrydockError?) -> DrydockError {
    DrydockError(
      .vaultLocked,
      "the vault was changed since, and which items can be taken back cannot be told without the device key: \(why)give "
        + "it with --device-key (earlier ones, too), or --discard-newer to give up what was written since",
      path: change.path.description, cause: cause)
  }

  // MARK: Items

  private mutating func undoItems(_ change: ChangeRecord, _ states: States) throws {
    let (before, written) = (states.before?.items ?? [:], states.written?.items ?? [:])
    guard var vault = states.present ?? states.before ?? states.written else { return }
    // What the app has removed as a whole stays removed, but for what the transaction changed.
    if states.present == nil { vault.removeAll() }
    for id in Set(before.keys).union(written.keys).sorted() where before[id] != written[id] {
      let now = states.present?[id]
      if now == before[id] { continue }
      if now != written[id] {
        conflicts.append(
          RollbackConflict(
            path: change.path, key: id.description, before: shown(before[id]), written: shown(written[id]),
            now: shown(now)))
        if !discardingNewer { continue }
      }
      if let item = before[id] { vault.put(item) } else { vault.remove(id) }
    }
    try undoKeys(change, states, &vault)
    if vault.items.isEmpty && change.before == nil {
      if states.present != nil { try staged.remove(change.path) }
    } else if !vault.items.isEmpty || states.present != nil {
      try staged.setVault(vault)
    }
  }

  /// Seals it to the keys from before again, when the transaction had changed these.
  private mutating func undoKeys(_ change: ChangeRecord, _ states: States, _ vault: inout Vault) throws {
    guard let before = states.before?.recipients, let written = states.written?.recipients,
      before != written, let now = states.present?.recipients, now != before
    else { return }
    if now != written {
      conflicts.append(
        RollbackConflict(
          path: change.path, key: "keys", before: shown(before), written: shown(written), now: shown(now)))
      if !discardingNewer { return }
    }
    try vault.rekey(to: before)
  }

  private func shown(_ recipients: [AgeRecipient]) -> String {
    recipients.map(\.description).joined(separator: ", ")
  }

  private func shown(_ item: VaultItem?) -> String {
    item.map { "\(staged.redactor.shown(secret: $0.value)), accessible \($0.accessibility.rawValue)" }
      ?? "absent"
  }
}
