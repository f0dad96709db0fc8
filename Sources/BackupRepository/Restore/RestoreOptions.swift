import AppContainer
import ContainerTransaction
import FileSystem

/// What a restore brings back and how.
package struct RestoreOptions: Sendable {
  /// The paths to act, and mirror, inside of; none means all.
  package var scope: [ContainerPath] = []
  /// The stores to act, and mirror, inside of; none means all.
  package var stores: Set<ContainerStore> = []
  /// Leaves what the archive does not have.
  package var keepExtra = false
  /// Replaces what a rule excludes where it lives.
  package var overwriteExcluded = false
  /// Brings back what was stored although a rule excluded it.
  package var includeExcluded = false
  /// Brings back synchronizable items of the vault, which overwrite what the owner's other devices have.
  package var includesSynchronizable = false
  /// Brings back set-user-id and set-group-id bits, and capabilities, which let whoever runs a file act with other rights.
  package var keepsSetID = false
  /// Takes another app's or instance's data.
  package var fromOther = false
  /// The container's schema version as far as it is known, for a partial restore.
  package var schemaVersion: Int?
  /// What the log says of the transaction; by default which archive was restored.
  package var summary: String?
  /// How the transaction is run; its device keys open the vault.
  package var transaction = TransactionOptions()
  /// What becomes of the vault; who restores a copy of an archive says which rules the archive itself comes under.
  var vault = VaultHandling.byItem

  /// The usual options: everything, mirrored.
  package init() {}

  /// Whether only a part of the archive comes back.
  package var isPartial: Bool { !scope.isEmpty || !stores.isEmpty }
}

/// What a restore did, or would do.
package struct RestoreReport: Sendable {
  /// A live path that was left alone, and why.
  package struct Spared: Sendable, Codable, Equatable {
    /// The path.
    package var path: ContainerPath
    /// Why: a rule, or what the archive says of it.
    package var reason: String
  }

  /// Paths that came back, with content from the archive or with their attributes.
  package var restored: [ContainerPath] = []
  /// Paths that the archive does not have and that went.
  package var removed: [ContainerPath] = []
  /// Paths that a rule excludes, or that the archive could not store.
  package var spared: [Spared] = []
  /// Paths that came back although a directory above is excluded now.
  package var restoredUnderExcluded: [ContainerPath] = []
  /// Paths that have set-id bits or capabilities in the archive and not in the container, as they were not asked for.
  package var withoutSetID: [ContainerPath] = []
  /// Number of paths that were right already.
  package var unchanged = 0
  /// What became of the vault's items; nil when it was right already, out of scope, or nowhere.
  package var vault: RestoredVault?
  /// Where the vault's items came from, for a restore of a copy of the archive.
  var vaultOrigin: VaultOrigin?
  /// Groups of the archive that the container does not have, so that nothing of them came back.
  package var missingGroups: [String] = []
  /// Compressed bytes that were read from the archive.
  package var bytesRead: UInt64 = 0

  /// No report yet.
  package init() {}

  /// Whether something that should have come back did not.
  package var isIncomplete: Bool {
    !missingGroups.isEmpty || vault.map { !$0.leftBehind.isEmpty } ?? false
  }
}
