import AgeEncryption
import DrydockErrors
import FileSystem

/// The keys of one device, which open its vault: the present one, and earlier ones that still open old files.
package struct DeviceKeys: Sendable {
  /// The present one first.
  package let identities: [AgeIdentity]
  /// The one that new vaults are sealed to.
  package let present: AgeIdentity

  /// The present key, and earlier ones.
  package init(_ present: AgeIdentity, earlier: [AgeIdentity] = []) {
    self.present = present
    identities = [present] + earlier
  }

  /// Reads key files as age writes them, the present key's first.
  ///
  /// - Throws: ``DrydockError`` with code `vaultLocked` for a file that cannot be read, or holds no identity.
  package init?(files: [String]) throws {
    let read = try files.flatMap { path in
      do {
        return try KeyFile.identities(in: SecretFile.read(path, limit: 1 << 20), path: path)
      } catch let error as DrydockError {
        throw DrydockError(.vaultLocked, "no device key: \(error.message)", path: path, cause: error)
      }
    }
    guard let first = read.first else { return nil }
    self.init(first, earlier: Array(read.dropFirst()))
  }

  /// The public keys.
  package var recipients: [AgeRecipient] { identities.map(\.recipient) }

  /// What opens files.
  var ageKeys: AgeKeys { AgeKeys(identities: identities) }
}
