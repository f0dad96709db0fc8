import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem

/// What a snapshot has of the container's vault.
package struct SnapshotVault: Sendable, Codable, Equatable {
  /// Its place.
  package var path: ContainerPath
  /// How many items other devices can get, and how many stay with this one; nil when no device key was at hand, or the
  /// archive is not encrypted: then all of them do.
  package var leaving: Int?, staying: Int?
  /// What kept the items from being copied although a device key was at hand.
  package var problem: String?

  /// Looks into the vault that a snapshot has just stored; nil when it has stored none.
  ///
  /// - Returns: and the items that are to be in the archive, too.
  static func look(
    _ container: Container, _ root: Directory, _ manifest: ManifestWriter, _ options: SnapshotOptions
  ) throws -> (SnapshotVault, VaultExtract?)? {
    let path = container.vaultPath
    guard let digest = try manifest.digest(of: path) else { return nil }
    var report = SnapshotVault(path: path)
    guard options.encryption != nil, let keys = options.deviceKeys else { return (report, nil) }
    do {
      let sealed = try root.contents(path, limit: Vault.sizeLimit)
      guard try SHA256.hash(sealed) == digest else {
        report.problem = "it changed meanwhile"
        return (report, nil)
      }
      let extract = VaultExtract(of: try Vault(opening: sealed, with: keys, path: path.description))
      (report.leaving, report.staying) = (extract.document.items.count, extract.staying.count)
      return (report, extract)
    } catch let error as DrydockError {
      // It is in the archive as it is; that is less than was asked for, and better than no archive.
      report.problem = error.message
      return (report, nil)
    }
  }
}
