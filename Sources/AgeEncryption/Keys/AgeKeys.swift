/// What opens encrypted files: identities and passphrases, which are tried in order.
public struct AgeKeys: Sendable {
  /// The secret keys.
  public var identities: [AgeIdentity]
  /// The passphrases.
  public var passphrases: [SecretBytes]

  /// Makes a set of keys, by default an empty one.
  public init(identities: [AgeIdentity] = [], passphrases: [SecretBytes] = []) {
    self.identities = identities
    self.passphrases = passphrases
  }

  /// Whether there is nothing that could open a file.
  public var isEmpty: Bool { identities.isEmpty && passphrases.isEmpty }
}
