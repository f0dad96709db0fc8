import DrydockErrors

/// A secret key, which opens what is encrypted to its recipient.
package final class AgeIdentity: Sendable, CustomStringConvertible {
  let secret: SecretBytes
  /// The public key that belongs to it.
  package let recipient: AgeRecipient

  private static let name = "age-secret-key-"

  private init(secret: SecretBytes) throws {
    self.secret = secret
    recipient = AgeRecipient(publicKey: try X25519.publicKey(of: secret))
  }

  /// A new identity from libcrypto's generator of random bytes. Throws `DrydockError` when that has no entropy.
  package static func generate() throws -> AgeIdentity {
    try AgeIdentity(secret: RandomBytes.secret(X25519.keyLength))
  }

  /// Reads an identity as age writes it: `AGE-SECRET-KEY-1…`.
  ///
  /// - Throws: `DrydockError` (`.malformed`) for anything else; the text is not in the message.
  package convenience init(_ text: SecretBytes) throws {
    let secret = text.withBytes {
      Bech32.decode($0, name: Self.name, count: X25519.keyLength, isUpperCase: true)
    }
    guard let secret else {
      throw DrydockError(
        .badKey,
        "this is not an identity: it has to be the whole line of a key file, in upper case, as age-keygen writes it"
      )
    }
    try self.init(secret: secret)
  }

  /// The text `AGE-SECRET-KEY-1…`, without a line break.
  package var secretText: SecretBytes {
    let lower = secret.withBytes { Bech32.encode(Self.name, $0) }
    return lower.withBytes { lower in
      SecretBytes(count: lower.count) { upper in
        for index in lower.indices {
          let isLetter = lower[index] >= UInt8(ascii: "a") && lower[index] <= UInt8(ascii: "z")
          upper[index] = isLetter ? lower[index] & 0xDF : lower[index]
        }
      }
    }
  }

  /// The recipient, never the secret.
  package var description: String { "the identity of \(recipient)" }
}

extension AgeIdentity: CustomReflectable {
  /// The recipient, never the secret.
  package var customMirror: Mirror { Mirror(self, children: ["recipient": recipient]) }
}
