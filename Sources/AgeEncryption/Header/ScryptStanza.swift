import DrydockErrors

/// The file key, wrapped for who knows a passphrase.
struct ScryptStanza: Sendable {
  static let type = "scrypt"
  /// What one try may cost at most, as a power of two: each takes 2^(factor + 10) bytes of memory, which a file chooses before
  /// anything in it is authenticated. With 18, what age and Drydock write, it is 256 MiB; with 22 it would be 4 GiB.
  static let maximumWorkFactor = 18
  private static let label = Array("age-encryption.org/v1/scrypt".utf8)
  private static let saltLength = 16

  private let salt: [UInt8]
  private let workFactor: Int
  private let wrapped: WrappedKey

  /// Reads a stanza of this type. Throws `DrydockError` (`.header`).
  init(_ stanza: Stanza) throws {
    guard stanza.arguments.count == 2, let salt = Base64.decode(stanza.arguments[0].utf8),
      salt.count == Self.saltLength
    else {
      throw DrydockError.header(
        "an scrypt stanza needs two arguments, the first of them 16 bytes in canonical base64")
    }
    self.salt = salt
    workFactor = try Self.workFactor(stanza.arguments[1])
    wrapped = try WrappedKey(stanza)
  }

  /// Wraps a file key.
  static func wrap(_ fileKey: SecretBytes, passphrase: SecretBytes, workFactor: Int) throws -> Stanza {
    guard (1...maximumWorkFactor).contains(workFactor) else {
      throw DrydockError(
        .badKey, "the work factor \(workFactor) is out of range: use one from 1 to \(maximumWorkFactor)")
    }
    guard passphrase.count > 0 else {
      throw DrydockError(.badKey, "the passphrase is empty: everybody could open the file; choose one")
    }
    let salt = try RandomBytes.make(saltLength)
    let key = try LibCrypto.scrypt(passphrase, salt: label + salt, workFactor: workFactor)
    let argument = String(decoding: Base64.encode(salt), as: UTF8.self)
    return Stanza(
      type: type, arguments: [argument, String(workFactor)], body: try WrappedKey(fileKey, with: key).bytes)
  }

  /// The file key, or nil when the passphrase is another one.
  func unwrap(with passphrase: SecretBytes) throws -> SecretBytes? {
    let key = try LibCrypto.scrypt(passphrase, salt: Self.label + salt, workFactor: workFactor)
    return try wrapped.open(with: key)
  }

  /// Decimal digits without a leading zero, up to the cap.
  private static func workFactor(_ text: String) throws -> Int {
    guard !text.isEmpty, text.first != "0", text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw DrydockError.header(
        "the work factor of an scrypt stanza is not a plain decimal number above zero")
    }
    guard let value = Int(text), value <= maximumWorkFactor else {
      throw DrydockError.header(
        "the work factor of an scrypt stanza is above \(maximumWorkFactor), which takes 256 MiB of memory; if you trust the "
          + "file, decrypt it with the age program first")
    }
    return value
  }
}
