import AppContainer
import ContainerTransaction

/// What a restore does with the vault.
enum VaultHandling {
  /// Each item obeys its rules.
  case byItem
  /// All that can be had comes, into a private copy that is to be migrated.
  case whole
  /// From such a copy, under the rules of the archive that it was made of.
  case byItemOf(VaultOrigin)
}

/// What the items of a vault come from, as far as it decides which of them return.
struct VaultOrigin: Sendable, Equatable {
  /// Whether the archive is of this device, and all of its vault can be read; whether it is encrypted.
  var isSameDevice: Bool, isEncrypted: Bool
  /// What is known of the items that it does not give.
  var staying: [VaultExtract.Staying]
}

extension RestoreOptions {
  /// Options for a private copy of the archive, whose vault comes as it is.
  package func forCopy() -> RestoreOptions {
    var options = RestoreOptions()
    options.includeExcluded = includeExcluded
    (options.transaction.deviceKeys, options.transaction.redactor) = (
      transaction.deviceKeys, transaction.redactor
    )
    options.vault = .whole
    // Nobody else can reach the copy, and what is restored from it is asked for then.
    options.keepsSetID = true
    return options
  }

  /// These options, for a restore from such a copy.
  ///
  /// - Parameter report: what the copy's own restore said.
  package func fromCopy(_ report: RestoreReport) -> RestoreOptions {
    var options = self
    if let origin = report.vaultOrigin { options.vault = .byItemOf(origin) }
    return options
  }
}
