/// Shows whether secrets are equal without showing them: equal bytes have equal fingerprints as long as the
/// same value of this type makes them. Its key is random, so a fingerprint says nothing to who has only that.
package struct Fingerprint: Sendable {
  private let key: SecretBytes

  /// Fingerprints with a key of their own. Throws `DrydockError` when libcrypto has no entropy.
  package init() throws { key = try RandomBytes.secret(32) }

  /// The first 8 hexadecimal digits of HMAC-SHA256; `????????` should libcrypto fail.
  package func text(of bytes: UnsafeRawBufferPointer) -> String {
    guard let code = try? LibCrypto.hmac(bytes, key: key), let digest = SHA256.Digest(bytes: code) else {
      return "????????"
    }
    return String(digest.hex.prefix(8))
  }

  /// All 32 bytes of HMAC-SHA256, for who makes something else of them. Throws `DrydockError` should libcrypto fail.
  package func code(of bytes: [UInt8]) throws -> [UInt8] {
    try bytes.withUnsafeBytes { try LibCrypto.hmac($0, key: key) }
  }

  /// The digits for bytes that are kept secret.
  package func text(of secret: SecretBytes) -> String { secret.withBytes { text(of: $0) } }
}
