import ArgumentParser
import Drydock
import Foundation

/// The keys that sign new archives.
struct SigningOptions: ParsableArguments {
  @Option(
    name: .customLong("sign"), "Sign with this secret key (minisign, signify or OpenSSH); repeatable.",
    value: "file")
  var files: [String] = []

  @Option(
    name: .customLong("sign-passphrase-file"), "Open the signing key with the passphrase in this file.",
    value: "file")
  var passphraseFile: String?

  /// How copies of archives are signed: the originals must have been signed by who is trusted.
  func copies(_ configuration: ContainerConfiguration) throws -> CopySigning {
    CopySigning(keys: try keys(), trusted: try TrustOptions.standing(configuration))
  }

  /// The keys in the files, or without any in those that `DRYDOCK_SIGN` names, separated by colons.
  func keys() throws -> [SigningKey] {
    let agent = ProcessInfo.processInfo.environment["SSH_AUTH_SOCK"]
    return try SigningKey.separate(
      Environment.files(files, or: "SIGN").map { file in
        try SigningKey(file: file, agent: agent) {
          if let passphraseFile { return try Passphrase.read(passphraseFile) }
          guard Passphrase.canAsk else { throw SigningKey.noPassphrase }
          return try Passphrase.ask("passphrase for the signing key \(file)")
        }
      })
  }
}

extension SnapshotOptions {
  /// Options with the cache of the environment, which waits as long as a transaction.
  ///
  /// - Parameter keys: what opens earlier archives.
  init(
    _ transaction: TransactionOptions, encryption: AgeTarget?, signing: CopySigning = CopySigning(),
    keys: AgeKeys = ArchiveKeys.ofEnvironment()
  ) {
    self.init()
    (lockTimeout, busyTimeout) = (transaction.lockTimeout, transaction.busyTimeout)
    (deviceKeys, progress) = (transaction.deviceKeys, transaction.progress)
    (self.encryption, self.keys, cache) = (encryption, keys, Environment.cache)
    (self.signing, trusted) = (signing.keys, signing.trusted)
  }
}

/// The keys whose signatures archives must have to be read.
struct TrustOptions: ParsableArguments {
  @Option(
    name: .customLong("trusted"), "Read only archives that a public key in this file has signed; repeatable.",
    value: "file")
  var files: [String] = []

  /// The keys in the files, else in those that `DRYDOCK_TRUSTED` names, separated by colons, else `trusted:` of drydock.yaml;
  /// nil if any archive is read.
  func keys(_ configuration: ContainerConfiguration) throws -> TrustedKeys? {
    try files.isEmpty ? Self.standing(configuration) : TrustedKeys(files: files)
  }

  static func standing(_ configuration: ContainerConfiguration) throws -> TrustedKeys? {
    guard let text = Environment["TRUSTED"] else { return try configuration.trustedKeys() }
    let named = text.split(separator: ":").map(String.init)
    // With no file, archives would be read that nobody has signed.
    guard !named.isEmpty else {
      throw UsageError("DRYDOCK_TRUSTED has no file; name files with public keys, separated by colons")
    }
    return try TrustedKeys(files: named)
  }
}

extension Signer {
  /// The name that the key has among the trusted ones, and the key.
  var shown: String { name.map { "\($0) (\(key))" } ?? key }
}
