import AppContainer
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors

extension Container {
  /// The vault; nil when the container has none. ``TransactionOptions/deviceKeys`` open it.
  ///
  /// - Throws: ``DrydockError``: `vaultLocked` without a key that opens it, `badVault` when it is damaged.
  public func vault(options: TransactionOptions = TransactionOptions()) throws -> Vault? {
    try DiscardedStage(on: self, options: options).vault()
  }

  /// One item of the vault, with its value.
  ///
  /// - Throws: as ``vault(options:)``; ``DrydockError``: `missing`, or `ambiguous` with the items that match.
  public func vaultItem(
    _ address: VaultItem.Address, options: TransactionOptions = TransactionOptions()
  ) throws -> VaultItem {
    guard let vault = try vault(options: options) else {
      throw DrydockError(.notFound, "the container has no vault", path: vaultPath.description)
    }
    return try vault.one(address)
  }
}

extension ContainerChange<VaultChange.Report> {
  /// Changes the vault in one transaction, which can be undone; changes nothing when the vault is already so.
  ///
  /// - Parameters:
  ///   - change: what is to change.
  ///   - newKeys: of ``VaultChange/rekey(_:)``, whose result is verified by opening it with them.
  ///   - options: of the transaction.
  public static func vault(
    _ change: VaultChange, newKeys: DeviceKeys? = nil, options: TransactionOptions = TransactionOptions()
  ) -> Self {
    let options = options.with(newKeys)
    return Self {
      try Transaction.run(on: $0, .vault, options: options) {
        staged -> TransactionPlan<(vault: Vault, report: VaultChange.Report), VaultChange.Report> in
        let planned = try change.plan(staged)
        return .change(planned, summary: planned.report.summary)
      } body: { staged, planned in
        try staged.setVault(planned.vault)
        return planned.report
      }
    } dryRun: {
      let stage = try DiscardedStage(on: $0, options: options)
      let planned = try change.plan(stage)
      try stage.setVault(planned.vault)
      return try stage.outcome(planned.report)
    }
  }
}

extension VaultChange {
  fileprivate func plan(_ staged: StagedContainer) throws -> (vault: Vault, report: VaultChange.Report) {
    let keys = try staged.requireDeviceKeys("changing the vault")
    return try DrydockError.locating(staged.container.vaultPath.description) {
      try made(in: staged.vault(), keys: keys)
    }
  }
}

extension TransactionOptions {
  fileprivate func with(_ newKeys: DeviceKeys?) -> TransactionOptions {
    guard let newKeys, let deviceKeys else { return self }
    var options = self
    options.deviceKeys = DeviceKeys(
      deviceKeys.present, earlier: Array(deviceKeys.identities.dropFirst()) + newKeys.identities)
    return options
  }
}
