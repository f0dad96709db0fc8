import Cryptography
import DrydockErrors

/// One entry of an age header: the file key wrapped in one way, for one recipient.
enum Stanza: Sendable {
  /// For the owner of an X25519 identity, with the public half of a key pair that is used once.
  case x25519(share: [UInt8], wrapped: [UInt8])
  /// With a passphrase.
  case scrypt(salt: [UInt8], workFactor: Int, wrapped: [UInt8])
  /// In another program's way.
  case unknown

  static let fileKeyLength = 16
  /// The width at which the text of the body is wrapped.
  static let columns = 64
  static let prefix = Array("-> ".utf8)

  /// One try takes 2^(factor + 10) bytes of memory, and the file chooses the factor before anything is authenticated.
  /// 18, which age and Drydock write, takes 256 MiB; 22 would take 4 GiB.
  static let maximumWorkFactor = 18
  private static let saltLength = 16

  private static let x25519Label = "age-encryption.org/v1/X25519"
  private static let scryptLabel = Array("age-encryption.org/v1/scrypt".utf8)

  /// The texts are a type and its arguments.
  init(_ texts: [String], body: [UInt8]) throws {
    let arguments = texts.dropFirst()
    switch texts[0] {
    case "X25519":
      guard arguments.count == 1, let share = Base64.decode(texts[1].utf8), share.count == X25519.keyLength
      else { throw DrydockError.header("an X25519 stanza needs one argument, 32 bytes in canonical base64") }
      self = .x25519(share: share, wrapped: try Self.wrapped(body, texts[0]))
    case "scrypt":
      guard arguments.count == 2, let salt = Base64.decode(texts[1].utf8), salt.count == Self.saltLength
      else {
        throw DrydockError.header(
          "an scrypt stanza needs two arguments, the first one 16 bytes in canonical base64")
      }
      self = .scrypt(
        salt: salt, workFactor: try Self.workFactor(texts[2]), wrapped: try Self.wrapped(body, texts[0]))
    default: self = .unknown
    }
  }

  /// The body of a stanza. Another length is an error: a longer body could be made to decrypt under two keys.
  private static func wrapped(_ body: [UInt8], _ type: String) throws -> [UInt8] {
    guard body.count == fileKeyLength + ChaChaPoly.tagLength else {
      throw DrydockError.header("the body of a stanza of type \(type) has \(body.count) bytes, not 32")
    }
    return body
  }

  /// Parses decimal digits without a leading zero, up to the maximum.
  private static func workFactor(_ text: String) throws -> Int {
    guard !text.isEmpty, text.first != "0", text.utf8.allSatisfy(\.isDigit) else {
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

  /// The lines of the stanza with their line breaks. The last line of the body is shorter than 64 columns, if need be
  /// empty. Those of other programs are not written.
  var encoded: [UInt8] {
    let (words, body): ([[UInt8]], [UInt8])
    switch self {
    case .x25519(let share, let wrapped):
      (words, body) = ([Array("X25519".utf8), Base64.encode(share)], wrapped)
    case .scrypt(let salt, let workFactor, let wrapped):
      (words, body) = (
        [Array("scrypt".utf8), Base64.encode(salt), Array(String(workFactor).utf8)], wrapped
      )
    case .unknown: return []
    }
    var text = Self.prefix + words.joined(separator: [UInt8(ascii: " ")]) + [UInt8(ascii: "\n")]
    var rest = Base64.encode(body)[...]
    while rest.count >= Self.columns {
      text += rest.prefix(Self.columns) + [UInt8(ascii: "\n")]
      rest = rest.dropFirst(Self.columns)
    }
    return text + rest + [UInt8(ascii: "\n")]
  }

  // MARK: Wrapping

  static func wrap(_ fileKey: SecretBytes, for recipient: AgeRecipient) throws -> Stanza {
    let ephemeral = try RandomBytes.secret(X25519.keyLength)
    let share = try X25519.publicKey(of: ephemeral)
    guard let shared = try X25519.sharedSecret(ephemeral, with: recipient.publicKey) else {
      throw DrydockError(.badKey, "the recipient \(recipient) is a weak key: anyone could open the file")
    }
    let key = try LibCrypto.hkdf(shared, salt: share + recipient.publicKey, info: x25519Label)
    return .x25519(share: share, wrapped: try seal(fileKey, with: key))
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
    let key = try scryptKey(passphrase, salt, workFactor)
    return .scrypt(salt: salt, workFactor: workFactor, wrapped: try seal(fileKey, with: key))
  }

  /// The file key, or nil when the stanza is for another identity. Throws `DrydockError` (`.header`) for a weak share.
  func unwrap(with identity: AgeIdentity) throws -> SecretBytes? {
    guard case .x25519(let share, let wrapped) = self else { return nil }
    guard let shared = try X25519.sharedSecret(identity.secret, with: share) else {
      throw DrydockError.header("an X25519 stanza has a weak share")
    }
    let salt = share + identity.recipient.publicKey
    return try Self.open(wrapped, with: LibCrypto.hkdf(shared, salt: salt, info: Self.x25519Label))
  }

  /// The file key, or nil when the passphrase is wrong.
  func unwrap(with passphrase: SecretBytes) throws -> SecretBytes? {
    guard case .scrypt(let salt, let workFactor, let wrapped) = self else { return nil }
    return try Self.open(wrapped, with: Self.scryptKey(passphrase, salt, workFactor))
  }

  private static func scryptKey(
    _ passphrase: SecretBytes, _ salt: [UInt8], _ workFactor: Int
  ) throws -> SecretBytes {
    try passphrase.scryptKey(salt: scryptLabel + salt, rounds: 1 << UInt64(workFactor))
  }

  /// Encrypts a file key with a key that is used for nothing else; so the nonce is zero. Gives it and its tag: 32 bytes.
  private static func seal(_ fileKey: SecretBytes, with key: SecretBytes) throws -> [UInt8] {
    let cipher = try ChaChaPoly(key: key)
    var sealed = [UInt8](repeating: 0, count: fileKey.count + ChaChaPoly.tagLength)
    try fileKey.withBytes { plain in
      try sealed.withUnsafeMutableBytes { try cipher.seal(plain, number: 0, isLast: false, into: $0) }
    }
    return sealed
  }

  /// The file key, or nil when `key` is the wrong one.
  private static func open(_ wrapped: [UInt8], with key: SecretBytes) throws -> SecretBytes? {
    let cipher = try ChaChaPoly(key: key)
    var isOpen = false
    let fileKey = wrapped.withUnsafeBytes { sealed in
      SecretBytes(count: fileKeyLength) { isOpen = cipher.open(sealed, number: 0, isLast: false, into: $0) }
    }
    return isOpen ? fileKey : nil
  }
}
