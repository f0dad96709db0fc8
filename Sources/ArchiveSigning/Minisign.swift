import Cryptography
import DrydockErrors
import Foundation

/// The files of minisign, and of signify, from which it has its format: a comment, and a line of base64.
enum Minisign {
  /// The first line of every file, before a text that nothing authenticates.
  static let comment = "untrusted comment: "
  static let trustedComment = "trusted comment: "

  /// The number of a key as minisign prints it.
  static func name(ofNumber number: [UInt8]) -> String { number.reversed().hex.uppercased() }

  /// The lines of a file, of which the last one may lack its line feed; nil for a file without such a comment, or with other
  /// bytes than text.
  static func lines(_ bytes: some Collection<UInt8>) -> [String]? {
    guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(comment) else { return nil }
    var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      // minisign writes CRLF nowhere, and accepts it everywhere.
      String(line.last == "\r" ? line.dropLast() : line)
    }
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}

/// A signature of minisign (`.minisig`) or signify (`.sig`).
struct MinisignSignature: Sendable {
  let keyNumber: [UInt8]
  private let signature: [UInt8]
  /// Whether the BLAKE2b of the file is signed, and not the file.
  private let isOfHash: Bool
  /// A comment that is signed together with the signature; signify has none.
  private let comment: (text: String, signature: [UInt8])?

  init(_ lines: [String]) throws {
    guard lines.count == 2 || lines.count == 4, let bytes = Base64.decode(lines[1].utf8, isPadded: true),
      bytes.count == 74,
      bytes[0] == UInt8(ascii: "E"), bytes[1] == UInt8(ascii: "d") || bytes[1] == UInt8(ascii: "D")
    else { throw DrydockError.malformedSignature("not a signature of minisign or signify") }
    isOfHash = bytes[1] == UInt8(ascii: "D")
    (keyNumber, signature) = (Array(bytes[2..<10]), Array(bytes[10...]))
    guard lines.count == 4 else {
      guard !isOfHash else { throw DrydockError.malformedSignature("its trusted comment is missing") }
      comment = nil
      return
    }
    guard lines[2].hasPrefix(Minisign.trustedComment), let end = Base64.decode(lines[3].utf8, isPadded: true),
      end.count == Ed25519.signatureLength
    else { throw DrydockError.malformedSignature("its trusted comment is invalid") }
    comment = (String(lines[2].dropFirst(Minisign.trustedComment.count)), end)
  }

  func isValid(_ message: [UInt8], by key: [UInt8]) throws -> Bool {
    let verifier = SignatureKey.ed25519(key)
    guard try verifier.verifies(signature, of: isOfHash ? HashFunction.blake2b.hash(message) : message)
    else { return false }
    guard let comment else { return true }
    return try verifier.verifies(comment.signature, of: signature + Array(comment.text.utf8))
  }
}

/// A secret key of minisign or signify.
struct MinisignSecretKey: Sendable {
  /// Whether it is minisign's, and not signify's.
  let isMinisign: Bool
  private let number: [UInt8]
  let publicKey: VerifyingKey
  private let seed: SecretBytes

  private static let sealedLength = 104

  /// Reads the file of a secret key.
  ///
  /// - Parameter passphrase: asked only for an encrypted key.
  /// - Throws: `DrydockError` with code `badKey`, which never repeats the text.
  init(
    _ base64: UnsafeRawBufferPointer, path: String, passphrase: () throws -> SecretBytes
  ) throws {
    guard let bytes = SecretBytes.decodingBase64(base64) else { throw Self.unknown(path) }
    // The methods of encryption and of the checksum; of signify also the rounds of the former.
    let methods = bytes.withBytes { Array($0.prefix(8)) }
    isMinisign = bytes.count == 54 + Self.sealedLength
    let isEncrypted = isMinisign && methods.starts(with: "EdScB2".utf8)
    // The number of the key, and the key.
    let opened: SecretBytes?
    if isEncrypted {
      opened = try Self.opened(bytes, passphrase, path)
    } else if isMinisign, methods.starts(with: "Ed\0\0B2".utf8) {
      opened = bytes.part(54..<bytes.count)
    } else if bytes.count == 104, methods.starts(with: "EdBK".utf8) {
      guard methods[4...].allSatisfy({ $0 == 0 }) else {
        throw DrydockError(
          .badKey,
          "signify's encrypted keys are not supported (bcrypt); make one without a passphrase (-n), or a key of minisign",
          path: path)
      }
      // They lie behind a checksum.
      opened = bytes.part(32..<bytes.count)
    } else {
      throw Self.unknown(path)
    }
    guard let opened, let seed = opened.part(8..<40), let half = opened.part(40..<72),
      // minisign compares a checksum of BLAKE2b with 32 bytes, which libcrypto 3.0 does not have. That the public half belongs
      // to the secret one says as much.
      case let key = try Ed25519.publicKey(of: seed), key == half.withBytes({ Array($0) })
    else {
      throw DrydockError(
        .badKey,
        isEncrypted
          ? "the passphrase does not open this key" : "the key file is damaged; use another copy", path: path)
    }
    self.seed = seed
    number = opened.withBytes { Array($0.prefix(8)) }
    publicKey = .minisign(number: number, key: key)
  }

  private static func unknown(_ path: String) -> DrydockError {
    DrydockError(.badKey, "not a secret key of minisign or signify; give its file", path: path)
  }

  /// What is encrypted of a key file of minisign, with parameters of scrypt that libsodium makes of two limits.
  private static func opened(
    _ bytes: SecretBytes, _ passphrase: () throws -> SecretBytes, _ path: String
  ) throws -> SecretBytes {
    let (salt, operations, memory) = bytes.withBytes { bytes in
      (
        Array(bytes[6..<38]), UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 38, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 46, as: UInt64.self))
      )
    }
    // What minisign writes takes 1 GiB.
    guard memory <= 2 << 30, operations <= 1 << 30 else {
      throw DrydockError(
        .badKey, "the key file asks for more memory or time than minisign's do; it is damaged", path: path)
    }
    let work = max(operations, 32768)
    let isBoundByWork = work < memory / 32
    let most = isBoundByWork ? work / 32 : memory / 1024
    var exponent: UInt64 = 1
    while exponent < 63, 1 << exponent <= most / 2 { exponent += 1 }
    let rounds: UInt64 = 1 << exponent
    let parallel = isBoundByWork ? 1 : max(1, min(work / 4 / rounds, 0x3FFF_FFFF) / 8)
    let stream = try passphrase().scryptKey(
      salt: salt, rounds: rounds, parallel: parallel, count: sealedLength)
    return bytes.withBytes { bytes in
      stream.withBytes { stream in
        SecretBytes(count: stream.count) { target in
          for index in target.indices { target[index] = bytes[54 + index] ^ stream[index] }
        }
      }
    }
  }

  /// The file of a signature, as the key's program writes it.
  ///
  /// - Parameter comment: signed too, by minisign.
  func signature(of message: [UInt8], comment: String) throws -> [UInt8] {
    let isOfHash = isMinisign
    let signature = try Ed25519.sign(isOfHash ? HashFunction.blake2b.hash(message) : message, seed: seed)
    let line = Data(Array((isOfHash ? "ED" : "Ed").utf8) + number + signature).base64EncodedString()
    let name = Minisign.name(ofNumber: number)
    var text = "\(Minisign.comment)signature of drydock with the key \(name)\n\(line)\n"
    if isMinisign {
      let end = try Ed25519.sign(signature + Array(comment.utf8), seed: seed)
      text += "\(Minisign.trustedComment)\(comment)\n\(Data(end).base64EncodedString())\n"
    }
    return Array(text.utf8)
  }
}

extension DrydockError {
  static func malformedSignature(_ what: String) -> DrydockError {
    DrydockError(.badSignature, "the signature is malformed: \(what)")
  }
}
