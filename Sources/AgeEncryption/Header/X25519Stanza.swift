import DrydockErrors

/// The file key, wrapped for the owner of an X25519 identity.
struct X25519Stanza: Sendable {
  static let type = "X25519"
  private static let label = "age-encryption.org/v1/X25519"

  private let share: [UInt8]
  private let wrapped: WrappedKey

  /// Reads a stanza of this type. Throws `DrydockError` (`.header`).
  init(_ stanza: Stanza) throws {
    guard stanza.arguments.count == 1, let share = Base64.decode(stanza.arguments[0].utf8),
      share.count == X25519.keyLength
    else { throw DrydockError.header("an X25519 stanza needs one argument, 32 bytes in canonical base64") }
    self.share = share
    wrapped = try WrappedKey(stanza)
  }

  /// Wraps a file key with a key pair that is used this once.
  static func wrap(_ fileKey: SecretBytes, for recipient: AgeRecipient) throws -> Stanza {
    let ephemeral = try RandomBytes.secret(X25519.keyLength)
    let share = try X25519.publicKey(of: ephemeral)
    guard let shared = try X25519.sharedSecret(ephemeral, with: recipient.publicKey) else {
      throw DrydockError(.badKey, "the recipient \(recipient) is a weak key: everybody could open the file")
    }
    let key = try LibCrypto.hkdf(shared, salt: share + recipient.publicKey, info: label)
    let argument = String(decoding: Base64.encode(share), as: UTF8.self)
    return Stanza(type: type, arguments: [argument], body: try WrappedKey(fileKey, with: key).bytes)
  }

  /// The file key, or nil when the stanza is for somebody else. Throws `DrydockError` (`.header`) for a weak share.
  func unwrap(with identity: AgeIdentity) throws -> SecretBytes? {
    guard let shared = try X25519.sharedSecret(identity.secret, with: share) else {
      throw DrydockError.header("an X25519 stanza has a weak share, which no honest program makes")
    }
    let key = try LibCrypto.hkdf(shared, salt: share + identity.recipient.publicKey, info: Self.label)
    return try wrapped.open(with: key)
  }
}
