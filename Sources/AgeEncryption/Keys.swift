import Cryptography
import DrydockErrors

/// A public key. Its identity opens what is encrypted to it.
public struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  /// The X25519 point, 32 bytes.
  let publicKey: [UInt8]

  private static let name = "age"

  init(publicKey: [UInt8]) { self.publicKey = publicKey }

  /// Reads a recipient as age writes it: `age1…`.
  ///
  /// - Throws: `DrydockError` (`.badKey`) for anything else. The message does not repeat the text: it may be a secret
  ///   key in the wrong place.
  public init(_ text: String) throws {
    var text = text
    let decoded = text.withUTF8 {
      Bech32.decode(UnsafeRawBufferPointer($0), name: Self.name, count: X25519.keyLength)
    }
    guard let decoded else { throw DrydockError(.badKey, Self.reason(against: text)) }
    publicKey = decoded.withBytes { Array($0) }
  }

  /// The text `age1…`.
  public var description: String {
    publicKey.withUnsafeBytes {
      Bech32.encode(Self.name, $0).withBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  private static func reason(against text: String) -> String {
    let start = text.uppercased()
    if start.hasPrefix("AGE-SECRET-KEY-") {
      return
        "this is a secret key, not a recipient; use its public key (age1…)"
    }
    if start.hasPrefix("SSH-") || start.hasPrefix("AGE1") && start.split(separator: "1").count > 2 {
      return "this type of recipient is not supported; use an X25519 public key (age1 and 58 characters)"
    }
    return "this is not a recipient; compare it with the key's `# public key:` line (age1 and 58 characters)"
  }
}

/// A secret key. It opens what is encrypted to its recipient.
public final class AgeIdentity: Sendable, CustomStringConvertible {
  let secret: SecretBytes
  /// The public key.
  public let recipient: AgeRecipient

  private static let name = "age-secret-key-"

  private init(secret: SecretBytes) throws {
    self.secret = secret
    recipient = AgeRecipient(publicKey: try X25519.publicKey(of: secret))
  }

  /// A new identity from libcrypto's random generator.
  public static func generate() throws -> AgeIdentity {
    try AgeIdentity(secret: RandomBytes.secret(X25519.keyLength))
  }

  /// Reads an identity as age writes it: `AGE-SECRET-KEY-1…`.
  ///
  /// - Throws: `DrydockError` (`.badKey`) for anything else; the message does not contain the text.
  public convenience init(_ text: SecretBytes) throws {
    let secret = text.withBytes {
      Bech32.decode($0, name: Self.name, count: X25519.keyLength, isUpperCase: true)
    }
    guard let secret else {
      throw DrydockError(
        .badKey,
        "this is not an identity; it is a whole line of a key file, in upper case, as age-keygen writes it")
    }
    try self.init(secret: secret)
  }

  /// The text `AGE-SECRET-KEY-1…`, without a line break.
  public var secretText: SecretBytes {
    let lower = secret.withBytes { Bech32.encode(Self.name, $0) }
    return lower.withBytes { lower in
      SecretBytes(count: lower.count) { upper in
        for index in lower.indices {
          upper[index] = lower[index].isLetter ? lower[index] & 0xDF : lower[index]
        }
      }
    }
  }

  /// The recipient, never the secret.
  public var description: String { "the identity of \(recipient)" }
}

extension AgeIdentity: CustomReflectable {
  /// The recipient, never the secret.
  public var customMirror: Mirror { Mirror(self, children: ["recipient": recipient]) }
}

/// Key files as the age programs write and read them: one key per line, comments after `#`, empty lines.
package enum KeyFile {
  /// The identities in a file, of which there must be at least one.
  ///
  /// - Throws: `DrydockError` (`.badKey`) with the line number; the message contains nothing of the line.
  package static func identities(in file: SecretBytes, path: String?) throws -> [AgeIdentity] {
    try file.withBytes { bytes in
      guard !AgeHeader.isPresent(in: bytes.prefix(AgeHeader.probeLength)) else {
        throw DrydockError(
          .badKey, "the key file is encrypted itself; decrypt it first, with `age -d`", path: path)
      }
      return try keys(in: bytes, path, none: "identity") {
        try AgeIdentity(SecretBytes(copying: $0))
      }
    }
  }

  /// The recipients in a file, of which there must be at least one.
  ///
  /// - Throws: `DrydockError` (`.badKey`) with the line number; the message contains nothing of the line, which may be a
  ///   secret key in the wrong file.
  package static func recipients(in file: [UInt8], path: String?) throws -> [AgeRecipient] {
    try file.withUnsafeBytes {
      try keys(in: $0, path, none: "recipient; add one (age1…)") {
        try AgeRecipient(String(decoding: $0, as: UTF8.self))
      }
    }
  }

  /// The text of a key file with one identity, as `age-keygen` writes it. `created` is an RFC 3339 time.
  package static func text(of identity: AgeIdentity, created: String) -> SecretBytes {
    let comments = Array("# created: \(created)\n# public key: \(identity.recipient)\n".utf8)
    return identity.secretText.withBytes { key in
      SecretBytes(count: comments.count + key.count + 1) { text in
        text.copyBytes(from: comments)
        UnsafeMutableRawBufferPointer(rebasing: text[comments.count...]).copyMemory(from: key)
        text[text.count - 1] = UInt8(ascii: "\n")
      }
    }
  }

  /// Reads each line with a key, without its line break (LF or CRLF).
  private static func keys<Key>(
    in bytes: UnsafeRawBufferPointer, _ path: String?, none: String,
    _ read: (UnsafeRawBufferPointer) throws -> Key
  ) throws -> [Key] {
    var keys: [Key] = []
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      guard let first = line.first, first != UInt8(ascii: "#") else { continue }
      do {
        keys.append(try read(UnsafeRawBufferPointer(rebasing: line)))
      } catch let error as DrydockError {
        throw DrydockError(error.code, "line \(index + 1): \(error.message)", path: path)
      }
    }
    guard !keys.isEmpty else { throw DrydockError(.badKey, "this file has no \(none)", path: path) }
    return keys
  }
}
