import AgeEncryption

/// The keys of one device, which open its vault: the present one, and earlier ones that still open old files.
public struct DeviceKeys: Sendable {
  /// The present one first.
  public let identities: [AgeIdentity]
  /// The one that new vaults are sealed to.
  public let present: AgeIdentity

  /// The present key, and earlier ones.
  public init(_ present: AgeIdentity, earlier: [AgeIdentity] = []) {
    self.present = present
    identities = [present] + earlier
  }

  /// Reads key files as age writes them, the present key's first.
  ///
  /// - Throws: ``ContainerError`` with code `vaultLocked` for a file that cannot be read, or holds no identity.
  public init?(files: [String]) throws {
    let read = try files.flatMap { path in
      do {
        return try KeyFile.identities(in: SecretFile.read(path, limit: 1 << 20), path: path)
      } catch let error as AgeError {
        throw ContainerError(.vaultLocked, "no device key: \(error.message)", path: path, cause: error)
      } catch let error as ContainerError {
        throw ContainerError(.vaultLocked, "no device key: \(error.message)", path: path, cause: error)
      }
    }
    guard let first = read.first else { return nil }
    self.init(first, earlier: Array(read.dropFirst()))
  }

  /// The public keys.
  public var recipients: [AgeRecipient] { identities.map(\.recipient) }

  /// What opens files.
  var ageKeys: AgeKeys { AgeKeys(identities: identities) }
}
