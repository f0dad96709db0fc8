import DrydockErrors

/// A public key: who has its identity can open what is encrypted to it.
package struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  /// The X25519 point, 32 bytes.
  let publicKey: [UInt8]

  private static let name = "age"

  init(publicKey: [UInt8]) { self.publicKey = publicKey }

  /// Reads a recipient as age writes it: `age1…`.
  ///
  /// - Throws: `DrydockError` (`.malformed`) for anything else. The text is not repeated in the message: it may be a
  ///   secret key that got into the wrong place.
  package init(_ text: String) throws {
    var text = text
    let decoded = text.withUTF8 {
      Bech32.decode(UnsafeRawBufferPointer($0), name: Self.name, count: X25519.keyLength)
    }
    guard let decoded else { throw DrydockError(.badKey, Self.complaint(text)) }
    publicKey = decoded.withBytes { Array($0) }
  }

  /// The text `age1…`.
  package var description: String {
    publicKey.withUnsafeBytes {
      Bech32.encode(Self.name, $0).withBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  private static func complaint(_ text: String) -> String {
    let start = text.uppercased()
    if start.hasPrefix("AGE-SECRET-KEY-") {
      return "this is a secret key where a recipient belongs: give its public key, "
        + "which `drydock keygen -y FILE` prints (age1…)"
    }
    if start.hasPrefix("SSH-") || start.hasPrefix("AGE1") && start.split(separator: "1").count > 2 {
      return
        "this is not a recipient of a kind known here: give an X25519 public key (age1 and 58 characters)"
    }
    return "this is not a recipient: check it against the key's `# public key:` line (age1 and 58 characters)"
  }
}
