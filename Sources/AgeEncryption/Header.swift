import Cryptography
import DrydockErrors

/// The start of an age file: the file key, wrapped for each recipient.
package struct AgeHeader: Sendable {
  /// The most bytes of a file that `isPresent(in:)` looks at.
  package static let probeLength = 64
  /// The longest header, 1 MiB: a hostile file must not exhaust the memory.
  package static let maximumLength = 1 << 20
  /// The most recipients: a hostile file must not keep the reader busy.
  package static let maximumStanzas = 4096

  static let version = Array("age-encryption.org/v1\n".utf8)
  static let endMark = Array("---".utf8)

  private let stanzas: [Stanza]
  /// Whether a passphrase opens the file rather than an identity.
  package let needsPassphrase: Bool
  private let authenticated: [UInt8]
  private let mac: [UInt8]
  /// The header's length in bytes. The payload's nonce follows it.
  package let byteCount: Int

  /// Checks the stanzas. `authenticated` is the text up to and including `---`, and `mac` the code after it.
  init(_ stanzas: [Stanza], authenticated: [UInt8], mac: [UInt8], byteCount: Int) throws {
    guard !stanzas.isEmpty else { throw DrydockError.header("it has no stanza") }
    needsPassphrase = stanzas.contains { if case .scrypt = $0 { true } else { false } }
    guard !needsPassphrase || stanzas.count == 1 else {
      throw DrydockError.header("an scrypt stanza must be the only one")
    }
    self.stanzas = stanzas
    self.authenticated = authenticated
    self.mac = mac
    self.byteCount = byteCount
  }

  /// Whether a file that starts with these bytes is an age file, binary or armored.
  package static func isPresent(in firstBytes: some Sequence<UInt8>) -> Bool {
    let bytes = Array(firstBytes)
    if bytes.starts(with: version) { return true }
    // The age program accepts blank space before armor only.
    let blank: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    return bytes.drop { blank.contains($0) }.starts(with: Armor.begin)
  }

  /// Reads the header of a binary age file of `size` bytes. `read` fills a buffer with the bytes at an offset.
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

  /// How the file is encrypted, such as `encrypted to 2 recipients (X25519)`.
  package var summary: String {
    if needsPassphrase { return "encrypted with a passphrase (scrypt)" }
    let unknownCount = stanzas.count { if case .unknown = $0 { true } else { false } }
    let unknown = "of an unknown type"
    let count = stanzas.count - unknownCount
    if count == 0 {
      return "encrypted to \(unknownCount) recipient\(unknownCount == 1 ? "" : "s") \(unknown)"
    }
    let known = "encrypted to \(count) recipient\(count == 1 ? "" : "s") (X25519)"
    return unknownCount == 0 ? known : "\(known) and \(unknownCount) \(unknown)"
  }

  /// The file key, after checking the header's authentication code with it.
  ///
  /// - Throws: `DrydockError` (`.noIdentity`, `.mac`, or `.header` for a weak share).
  func fileKey(with keys: AgeKeys) throws -> SecretBytes {
    guard let fileKey = try unwrap(with: keys) else { throw noIdentity(keys) }
    let expected = try Self.authenticationCode(of: authenticated, fileKey: fileKey)
    guard LibCrypto.isSame(expected, mac) else {
      throw DrydockError(
        .mac, "the age header was modified: wrong authentication code; use another copy of the file")
    }
    return fileKey
  }

  /// HMAC-SHA256 over the header's text up to and including `---`.
  static func authenticationCode(of text: [UInt8], fileKey: SecretBytes) throws -> [UInt8] {
    let key = try LibCrypto.hkdf(fileKey, salt: [], info: "header")
    return try text.withUnsafeBytes { try LibCrypto.hmac($0, key: key) }
  }

  private func unwrap(with keys: AgeKeys) throws -> SecretBytes? {
    for passphrase in keys.passphrases {
      for stanza in stanzas {
        if let fileKey = try stanza.unwrap(with: passphrase) { return fileKey }
      }
    }
    for identity in keys.identities {
      for stanza in stanzas {
        if let fileKey = try stanza.unwrap(with: identity) { return fileKey }
      }
    }
    return nil
  }

  private func noIdentity(_ keys: AgeKeys) -> DrydockError {
    let why: String
    if needsPassphrase {
      switch keys.passphrases.count {
      case 0: why = "no passphrase was given"
      case 1: why = "the passphrase is wrong"
      case let count: why = "none of the \(count) passphrases is right"
      }
    } else {
      switch keys.identities.count {
      case 0: why = "no identity was given; use the key file of a recipient"
      case 1: why = "the identity does not match; use the key file of a recipient"
      case let count: why = "none of the \(count) identities matches; use the key file of a recipient"
      }
    }
    return DrydockError(.noIdentity, "\(summary): \(why)")
  }
}

/// Reads the text of a header, line by line, as strictly as the specification demands.
struct HeaderParser {
  private let bytes: UnsafeRawBufferPointer
  /// Whether these bytes are the whole file.
  private let isWhole: Bool
  private var position = 0

  private struct Incomplete: Error {}

  private init(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) {
    self.bytes = bytes
    self.isWhole = isWhole
  }

  /// The header at the start of `bytes`; nil when it continues after them.
  static func parse(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) throws -> AgeHeader? {
    var parser = HeaderParser(bytes, isWhole: isWhole)
    do {
      return try parser.header()
    } catch is Incomplete {
      guard bytes.count < AgeHeader.maximumLength else {
        throw DrydockError.header("it is longer than \(AgeHeader.maximumLength) bytes")
      }
      return nil
    }
  }

  private mutating func header() throws -> AgeHeader {
    try version()
    var stanzas: [Stanza] = []
    while true {
      let start = position
      let line = try nextLine("a stanza or the line with the authentication code")
      if line.starts(with: Stanza.prefix) {
        guard stanzas.count < AgeHeader.maximumStanzas else {
          throw DrydockError.header("it has more than \(AgeHeader.maximumStanzas) stanzas")
        }
        stanzas.append(try stanza(line.dropFirst(Stanza.prefix.count)))
      } else if line.starts(with: AgeHeader.endMark) {
        let mac = try authenticationCode(line)
        let authenticated = Array(bytes[..<(start + AgeHeader.endMark.count)])
        return try AgeHeader(stanzas, authenticated: authenticated, mac: mac, byteCount: position)
      } else {
        throw DrydockError.header("a line is neither a stanza nor the authentication code")
      }
    }
  }

  private mutating func version() throws {
    let expected = AgeHeader.version
    guard bytes.prefix(expected.count).elementsEqual(expected.prefix(bytes.count)) else {
      throw DrydockError.header("it does not begin with the line age-encryption.org/v1")
    }
    _ = try nextLine("the version")
  }

  /// A type and its arguments, and the body on the lines that follow.
  private mutating func stanza(_ line: Slice<UnsafeRawBufferPointer>) throws -> Stanza {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
      throw DrydockError.header(
        "the arguments of a stanza are not printable words separated by single spaces")
    }
    let texts = words.map { String(decoding: $0, as: UTF8.self) }
    return try Stanza(texts, body: body())
  }

  private mutating func body() throws -> [UInt8] {
    var body: [UInt8] = []
    while true {
      let line = try nextLine("the body of a stanza")
      guard line.count <= Stanza.columns else {
        throw DrydockError.header("a line of a stanza's body is longer than 64 columns")
      }
      guard let part = Base64.decode(line) else {
        throw DrydockError.header(
          "the body of a stanza is not canonical base64 that ends with a short line")
      }
      body += part
      if line.count < Stanza.columns { return body }
    }
  }

  private func authenticationCode(_ line: Slice<UnsafeRawBufferPointer>) throws -> [UInt8] {
    let text = line.dropFirst(AgeHeader.endMark.count)
    guard text.first == UInt8(ascii: " "), let mac = Base64.decode(text.dropFirst()), mac.count == 32 else {
      throw DrydockError.header("the authentication code is not a space and 32 bytes in canonical base64")
    }
    return mac
  }

  /// The next line without its line feed. A carriage return stays in the line, and every rule rejects it.
  private mutating func nextLine(_ what: String) throws -> Slice<UnsafeRawBufferPointer> {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard isWhole else { throw Incomplete() }
      throw DrydockError.header("it ends within \(what)")
    }
    guard end < AgeHeader.maximumLength else {
      throw DrydockError.header("it is longer than \(AgeHeader.maximumLength) bytes")
    }
    defer { position = end + 1 }
    return bytes[position..<end]
  }
}

/// The start of a new age file, and the cipher for its payload. The chunks can be sealed in any order, on several
/// threads; `AgeWriter` seals them in one stream.
package struct AgeFileStart: Sendable {
  /// The header and the payload's nonce.
  package let bytes: [UInt8]
  package let cipher: PayloadCipher

  /// Generates a file key and wraps it for everyone in `target`.
  ///
  /// - Throws: `DrydockError` (`.badKey`) for no recipient or too many, a weak recipient, an empty passphrase, or a work
  ///   factor out of range; `.cryptography`.
  package init(to target: AgeTarget) throws {
    let fileKey = try RandomBytes.secret(Stanza.fileKeyLength)
    let stanzas = try Self.stanzas(for: target, fileKey)
    let text = AgeHeader.version + stanzas.flatMap(\.encoded) + AgeHeader.endMark
    let mac = try AgeHeader.authenticationCode(of: text, fileKey: fileKey)
    let nonce = try RandomBytes.make(PayloadCipher.nonceLength)
    bytes = text + [UInt8(ascii: " ")] + Base64.encode(mac) + [UInt8(ascii: "\n")] + nonce
    cipher = try PayloadCipher(fileKey: fileKey, nonce: nonce)
  }

  private static func stanzas(for target: AgeTarget, _ fileKey: SecretBytes) throws -> [Stanza] {
    switch target {
    case .passphrase(let passphrase, let workFactor):
      return [try Stanza.wrap(fileKey, passphrase: passphrase, workFactor: workFactor)]
    case .recipients(let recipients):
      var seen: Set<AgeRecipient> = []
      let recipients = recipients.filter { seen.insert($0).inserted }
      guard !recipients.isEmpty else {
        throw DrydockError(.badKey, "no recipient to encrypt to; name at least one")
      }
      guard recipients.count <= AgeHeader.maximumStanzas else {
        throw DrydockError(
          .badKey, "\(recipients.count) recipients are too many; name at most \(AgeHeader.maximumStanzas)")
      }
      return try recipients.map { try Stanza.wrap(fileKey, for: $0) }
    }
  }
}
