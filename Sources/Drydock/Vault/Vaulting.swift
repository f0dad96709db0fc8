import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors

/// Looks into a container's vault and changes it, each change in one transaction.
///
/// The keys of the device are those of `TransactionOptions.deviceKeys`.
package enum Vaulting {
  /// The vault; nil when the container has none.
  ///
  /// - Throws: `DrydockError`: `vaultLocked` without a key that opens it, `badVault` when it is damaged.
  package static func open(
    _ container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> Vault? {
    try Transaction.inspect(container, options: options) { try $0.vault() }
  }

  /// One item, with its value.
  ///
  /// - Throws: as ``open(_:options:)``; `DrydockError`: `missing`, or `ambiguous` with the items that fit.
  package static func item(
    _ address: VaultAddress, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> VaultItem {
    guard let vault = try open(container, options: options) else {
      throw DrydockError(
        .missing, "the container has no vault; `drydock vault set` makes one",
        path: container.vaultPath.description)
    }
    return try vault.one(address)
  }

  /// Makes a change: it can be undone, and touches nothing when everything is so already.
  ///
  /// - Parameter newKeys: the keys that a change seals to, as far as they are at hand: what is written is opened with them.
  /// - Throws: `DrydockError`, `DrydockError`; nothing has changed then.
  package static func run(
    _ change: VaultChange, on container: Container, newKeys: DeviceKeys? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<VaultChangeReport> {
    let options = options.with(newKeys)
    // What is refused is refused before a transaction begins, and what it does is in its record.
    let planned = try Transaction.inspect(container, options: options) { try plan(change, $0).report }
    return try Transaction.run(on: container, .vault, summary: planned.summary, options: options) {
      try make(change, $0)
    }
  }

  /// Does what ``run(_:on:newKeys:options:)`` does and throws it away.
  package static func dryRun(
    _ change: VaultChange, on container: Container, newKeys: DeviceKeys? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<VaultChangeReport> {
    try Transaction.dryRun(on: container, options: options.with(newKeys)) {
      try make(change, $0)
    }
  }

  private static func make(_ change: VaultChange, _ staged: StagedContainer) throws -> VaultChangeReport {
    let (vault, report) = try plan(change, staged)
    try staged.setVault(vault)
    return report
  }

  private static func plan(
    _ change: VaultChange, _ staged: StagedContainer
  ) throws -> (vault: Vault, report: VaultChangeReport) {
    let keys = try staged.requireDeviceKeys("changing the vault")
    do {
      return try change.made(in: staged.vault(), keys: keys)
    } catch var error as DrydockError where error.path == nil {
      error.path = staged.container.vaultPath.description
      throw error
    }
  }
}

extension TransactionOptions {
  /// With further keys at hand.
  fileprivate func with(_ newKeys: DeviceKeys?) -> TransactionOptions {
    guard let newKeys, let deviceKeys else { return self }
    var options = self
    options.deviceKeys = DeviceKeys(
      deviceKeys.present, earlier: Array(deviceKeys.identities.dropFirst()) + newKeys.identities)
    return options
  }
}
