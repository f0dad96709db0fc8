import DrydockErrors

/// A file key under a key that is used for nothing else, which is why the nonce is zero.
struct WrappedKey: Sendable {
  static let fileKeyLength = 16

  /// The file key, encrypted, and its tag: 32 bytes.
  let bytes: [UInt8]

  /// Reads the body of a stanza. Throws `DrydockError` (`.header`) when it has another length: a longer key could be
  /// made to fit under two keys.
  init(_ stanza: Stanza) throws {
    guard stanza.body.count == Self.fileKeyLength + ChaChaPoly.tagLength else {
      throw DrydockError.header(
        "the body of a stanza of type \(stanza.type) has \(stanza.body.count) bytes, not 32")
    }
    bytes = stanza.body
  }

  /// Wraps a file key.
  init(_ fileKey: SecretBytes, with key: SecretBytes) throws {
    let cipher = try ChaChaPoly(key: key, .seal)
    var sealed = [UInt8](repeating: 0, count: fileKey.count + ChaChaPoly.tagLength)
    try fileKey.withBytes { plain in
      try sealed.withUnsafeMutableBytes { try cipher.seal(plain, .zero, into: $0) }
    }
    bytes = sealed
  }

  /// The file key, or nil when it is wrapped with another key.
  func open(with key: SecretBytes) throws -> SecretBytes? {
    let cipher = try ChaChaPoly(key: key, .open)
    var isOpen = false
    let fileKey = bytes.withUnsafeBytes { sealed in
      SecretBytes(count: Self.fileKeyLength) { isOpen = cipher.open(sealed, .zero, into: $0) }
    }
    return isOpen ? fileKey : nil
  }
}
