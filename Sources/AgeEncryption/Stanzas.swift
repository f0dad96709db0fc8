import Cryptography
import DrydockErrors

/// One entry of an age header: the file key wrapped in one way, for one recipient.
struct Stanza: Sendable {
  /// How the key is wrapped: `X25519`, `scrypt`, or another program's type.
  let type: String
  let arguments: [String]
  let body: [UInt8]

  /// The width at which the text of the body is wrapped.
  static let columns = 64
  static let prefix = Array("-> ".utf8)

  /// The lines of the stanza with their line breaks. The last line of the body is shorter than 64 columns, if need be
  /// empty.
  var encoded: [UInt8] {
    var text = Self.prefix + Array(([type] + arguments).joined(separator: " ").utf8) + [UInt8(ascii: "\n")]
    var rest = Base64.encode(body)[...]
    while rest.count >= Self.columns {
      text += rest.prefix(Self.columns) + [UInt8(ascii: "\n")]
      rest = rest.dropFirst(Self.columns)
    }
    return text + rest + [UInt8(ascii: "\n")]
  }
}

/// The file key, wrapped for the owner of an X25519 identity.
struct X25519Stanza: Sendable {
  static let type = "X25519"
  private static let label = "age-encryption.org/v1/X25519"

  private let share: [UInt8]
  private let wrapped: WrappedKey

  init(_ stanza: Stanza) throws {
    guard stanza.arguments.count == 1, let share = Base64.decode(stanza.arguments[0].utf8),
      share.count == X25519.keyLength
    else { throw DrydockError.header("an X25519 stanza needs one argument, 32 bytes in canonical base64") }
    self.share = share
    wrapped = try WrappedKey(stanza)
  }

  /// Wraps a file key with a key pair that is used once.
  static func wrap(_ fileKey: SecretBytes, for recipient: AgeRecipient) throws -> Stanza {
    let ephemeral = try RandomBytes.secret(X25519.keyLength)
    let share = try X25519.publicKey(of: ephemeral)
    guard let shared = try X25519.sharedSecret(ephemeral, with: recipient.publicKey) else {
      throw DrydockError(.badKey, "the recipient \(recipient) is a weak key: anyone could open the file")
    }
    let key = try LibCrypto.hkdf(shared, salt: share + recipient.publicKey, info: label)
    let argument = String(decoding: Base64.encode(share), as: UTF8.self)
    return Stanza(type: type, arguments: [argument], body: try WrappedKey(fileKey, with: key).bytes)
  }

  /// The file key, or nil when the stanza is for another identity. Throws `DrydockError` (`.header`) for a weak share.
  func unwrap(with identity: AgeIdentity) throws -> SecretBytes? {
    guard let shared = try X25519.sharedSecret(identity.secret, with: share) else {
      throw DrydockError.header("an X25519 stanza has a weak share")
    }
    let key = try LibCrypto.hkdf(shared, salt: share + identity.recipient.publicKey, info: Self.label)
    return try wrapped.open(with: key)
  }
}

/// The file key, wrapped with a passphrase.
struct ScryptStanza: Sendable {
  static let type = "scrypt"
  /// One try takes 2^(factor + 10) bytes of memory, and the file chooses the factor before anything is authenticated.
  /// 18, which age and Drydock write, takes 256 MiB; 22 would take 4 GiB.
  static let maximumWorkFactor = 18
  private static let label = Array("age-encryption.org/v1/scrypt".utf8)
  private static let saltLength = 16

  private let salt: [UInt8]
  private let workFactor: Int
  private let wrapped: WrappedKey

  init(_ stanza: Stanza) throws {
    guard stanza.arguments.count == 2, let salt = Base64.decode(stanza.arguments[0].utf8),
      salt.count == Self.saltLength
    else {
      throw DrydockError.header(
        "an scrypt stanza needs two arguments, the first one 16 bytes in canonical base64")
    }
    self.salt = salt
    workFactor = try Self.workFactor(stanza.arguments[1])
    wrapped = try WrappedKey(stanza)
  }

  static func wrap(_ fileKey: SecretBytes, passphrase: SecretBytes, workFactor: Int) throws -> Stanza {
    guard (1...maximumWorkFactor).contains(workFactor) else {
      throw DrydockError(
        .badKey, "the work factor \(workFactor) is out of range: use one from 1 to \(maximumWorkFactor)")
    }
    guard passphrase.count > 0 else {
      throw DrydockError(.badKey, "the passphrase is empty; choose one")
    }
    let salt = try RandomBytes.make(saltLength)
    let key = try passphrase.scryptKey(salt: label + salt, rounds: 1 << UInt64(workFactor))
    let argument = String(decoding: Base64.encode(salt), as: UTF8.self)
    return Stanza(
      type: type, arguments: [argument, String(workFactor)], body: try WrappedKey(fileKey, with: key).bytes)
  }

  /// The file key, or nil when the passphrase is wrong.
  func unwrap(with passphrase: SecretBytes) throws -> SecretBytes? {
    let key = try passphrase.scryptKey(salt: Self.label + salt, rounds: 1 << UInt64(workFactor))
    return try wrapped.open(with: key)
  }

  /// Parses decimal digits without a leading zero, up to the maximum.
  private static func workFactor(_ text: String) throws -> Int {
    guard !text.isEmpty, text.first != "0", text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw DrydockError.header(
        "the work factor of an scrypt stanza is not a positive decimal number")
    }
    guard let value = Int(text), value <= maximumWorkFactor else {
      throw DrydockError.header(
        "the work factor of an scrypt stanza is above \(maximumWorkFactor), which takes 256 MiB of memory; to open the "
          + "file, decrypt it with the age program")
    }
    return value
  }
}

/// A file key, encrypted with a key that is used for nothing else; so the nonce is zero.
struct WrappedKey: Sendable {
  static let fileKeyLength = 16

  /// The file key, encrypted, and its tag: 32 bytes.
  let bytes: [UInt8]

  /// Reads the body of a stanza. Another length is an error: a longer body could be made to decrypt under two keys.
  init(_ stanza: Stanza) throws {
    guard stanza.body.count == Self.fileKeyLength + ChaChaPoly.tagLength else {
      throw DrydockError.header(
        "the body of a stanza of type \(stanza.type) has \(stanza.body.count) bytes, not 32")
    }
    bytes = stanza.body
  }

  init(_ fileKey: SecretBytes, with key: SecretBytes) throws {
    let cipher = try ChaChaPoly(key: key, .seal)
    var sealed = [UInt8](repeating: 0, count: fileKey.count + ChaChaPoly.tagLength)
    try fileKey.withBytes { plain in
      try sealed.withUnsafeMutableBytes { try cipher.seal(plain, .zero, into: $0) }
    }
    bytes = sealed
  }

  /// The file key, or nil when `key` is the wrong one.
  func open(with key: SecretBytes) throws -> SecretBytes? {
    let cipher = try ChaChaPoly(key: key, .open)
    var isOpen = false
    let fileKey = bytes.withUnsafeBytes { sealed in
      SecretBytes(count: Self.fileKeyLength) { isOpen = cipher.open(sealed, .zero, into: $0) }
    }
    return isOpen ? fileKey : nil
  }
}
