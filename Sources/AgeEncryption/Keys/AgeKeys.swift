/// What opens encrypted files: identities and passphrases, which are tried in order.
package struct AgeKeys: Sendable {
  /// The secret keys.
  package var identities: [AgeIdentity]
  /// The passphrases.
  package var passphrases: [SecretBytes]

  /// Makes a set of keys, by default an empty one.
  package init(identities: [AgeIdentity] = [], passphrases: [SecretBytes] = []) {
    self.identities = identities
    self.passphrases = passphrases
  }

  /// Whether there is nothing that could open a file.
  package var isEmpty: Bool { identities.isEmpty && passphrases.isEmpty }
}
