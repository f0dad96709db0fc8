import DrydockErrors

/// The start of an age file: the file's key, wrapped for everybody who may open it.
package struct AgeHeader: Sendable {
  /// How many bytes of a file `isPresent(in:)` wants to see at most.
  package static let probeLength = 64
  /// The longest header that is read or written: 1 MiB, so that a hostile file cannot fill the memory.
  package static let maximumLength = 1 << 20
  /// The most recipients that a file can have here, so that a hostile file cannot keep the reader busy for long.
  package static let maximumStanzas = 4096

  static let version = Array("age-encryption.org/v1\n".utf8)
  static let endMark = Array("---".utf8)
  private static let armor = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)

  private let recipients: [X25519Stanza]
  private let passphrase: ScryptStanza?
  private let unknownCount: Int
  private let authenticated: [UInt8]
  private let mac: [UInt8]
  /// The header's length in bytes. The payload's nonce follows it.
  package let byteCount: Int

  /// Checks what a header holds. `authenticated` is its text up to and with `---`, and `mac` the code behind.
  init(_ stanzas: [Stanza], authenticated: [UInt8], mac: [UInt8], byteCount: Int) throws {
    guard !stanzas.isEmpty else { throw DrydockError.header("it has no stanza, so nobody can open the file") }
    recipients = try stanzas.filter { $0.type == X25519Stanza.type }.map { try X25519Stanza($0) }
    let scrypt = stanzas.filter { $0.type == ScryptStanza.type }
    guard scrypt.isEmpty || stanzas.count == 1 else {
      throw DrydockError.header(
        "an scrypt stanza stands beside others: who knows the passphrase must be alone")
    }
    passphrase = try scrypt.first.map { try ScryptStanza($0) }
    unknownCount = stanzas.count - recipients.count - scrypt.count
    self.authenticated = authenticated
    self.mac = mac
    self.byteCount = byteCount
  }

  /// Whether a file that starts with these bytes is an age file, binary or armored.
  package static func isPresent(in firstBytes: some Sequence<UInt8>) -> Bool {
    let bytes = Array(firstBytes)
    if bytes.starts(with: version) { return true }
    // The age tool accepts blank space before the armor, and nowhere else.
    let blank: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    return bytes.drop { blank.contains($0) }.starts(with: armor)
  }

  /// Reads the header of a binary age file of `size` bytes. `read` fills a buffer with the bytes at an offset.
  ///
  /// - Throws: `DrydockError` (`.header`), or what `read` throws.
  package static func read(
    size: UInt64, _ read: (_ into: UnsafeMutableRawBufferPointer, _ offset: UInt64) throws -> Void
  ) throws -> AgeHeader {
    var count = 4096
    while true {
      count = Int(min(UInt64(count), size))
      var bytes = [UInt8](repeating: 0, count: count)
      try bytes.withUnsafeMutableBytes { try read($0, 0) }
      let header = try bytes.withUnsafeBytes { try HeaderParser.parse($0, isWhole: UInt64(count) == size) }
      if let header { return header }
      count = min(2 * count, maximumLength)
    }
  }

  /// Whether a passphrase opens the file, and not an identity.
  package var needsPassphrase: Bool { passphrase != nil }

  /// How the file is encrypted, such as `encrypted to 2 recipients (X25519)`.
  package var summary: String {
    if passphrase != nil { return "encrypted with a passphrase (scrypt)" }
    let unknown = "of a kind unknown here"
    if recipients.isEmpty {
      return "encrypted to \(unknownCount) recipient\(unknownCount == 1 ? "" : "s") \(unknown)"
    }
    let known = "encrypted to \(recipients.count) recipient\(recipients.count == 1 ? "" : "s") (X25519)"
    return unknownCount == 0 ? known : "\(known) and \(unknownCount) \(unknown)"
  }

  /// The key of the file, after the header's authentication code was checked with it.
  ///
  /// - Throws: `DrydockError` (`.noIdentity`, `.mac`, or `.header` for a weak share).
  func fileKey(with keys: AgeKeys) throws -> SecretBytes {
    guard let fileKey = try unwrap(with: keys) else { throw noIdentity(keys) }
    let expected = try Self.authenticationCode(of: authenticated, fileKey: fileKey)
    guard LibCrypto.isSame(expected, mac) else {
      throw DrydockError(
        .mac, "the age header was changed: its authentication code is wrong; use another copy of the file")
    }
    return fileKey
  }

  /// HMAC-SHA256 over the header's text up to and with `---`.
  static func authenticationCode(of text: [UInt8], fileKey: SecretBytes) throws -> [UInt8] {
    let key = try LibCrypto.hkdf(fileKey, salt: [], info: "header")
    return try text.withUnsafeBytes { try LibCrypto.hmac($0, key: key) }
  }

  private func unwrap(with keys: AgeKeys) throws -> SecretBytes? {
    if let passphrase {
      for candidate in keys.passphrases {
        if let fileKey = try passphrase.unwrap(with: candidate) { return fileKey }
      }
      return nil
    }
    for identity in keys.identities {
      for stanza in recipients {
        if let fileKey = try stanza.unwrap(with: identity) { return fileKey }
      }
    }
    return nil
  }

  private func noIdentity(_ keys: AgeKeys) -> DrydockError {
    let why: String
    if passphrase != nil {
      switch keys.passphrases.count {
      case 0: why = "no passphrase was given: give it"
      case 1: why = "the passphrase given is another one"
      case let count: why = "none of the \(count) passphrases given is the right one"
      }
    } else {
      switch keys.identities.count {
      case 0: why = "no identity was given: give the key file of one of its recipients"
      case 1: why = "the identity given is none of theirs: give the key file of one of its recipients"
      case let count:
        why = "none of the \(count) identities given is theirs: give the key file of one of its recipients"
      }
    }
    return DrydockError(.noIdentity, "\(summary), and \(why)")
  }
}
