import CLibCrypto

/// The key agreement behind age's recipients.
enum X25519 {
  static let keyLength = 32

  /// The public key of a secret key of 32 bytes.
  static func publicKey(of secret: SecretBytes) throws -> [UInt8] {
    let key = try privateKey(secret)
    defer { EVP_PKEY_free(key) }
    var bytes = [UInt8](repeating: 0, count: keyLength)
    var count = bytes.count
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == keyLength else {
      throw LibCrypto.error("making a public key")
    }
    return bytes
  }

  /// What the owners of two keys have in common, or nil when the public key is weak: one of the few points with
  /// which everybody shares the same "secret".
  static func sharedSecret(_ secret: SecretBytes, with publicKey: [UInt8]) throws -> SecretBytes? {
    let own = try privateKey(secret)
    defer { EVP_PKEY_free(own) }
    guard let other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, publicKey, publicKey.count) else {
      throw LibCrypto.error("reading a public key")
    }
    defer { EVP_PKEY_free(other) }
    guard let context = EVP_PKEY_CTX_new(own, nil) else { throw LibCrypto.error("agreeing on a key") }
    defer { EVP_PKEY_CTX_free(context) }
    guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1 else {
      throw LibCrypto.error("agreeing on a key")
    }
    var isWeak = false
    let shared = SecretBytes(count: keyLength) { shared in
      var count = shared.count
      // libcrypto itself refuses an all-zero result, and has no other reason to fail here.
      let base = shared.baseAddress?.assumingMemoryBound(to: UInt8.self)
      isWeak = EVP_PKEY_derive(context, base, &count) != 1 || count != keyLength
    }
    let zeros = SecretBytes(count: keyLength) { _ in }
    guard !isWeak, shared != zeros else {
      ERR_clear_error()
      return nil
    }
    return shared
  }

  private static func privateKey(_ secret: SecretBytes) throws -> OpaquePointer {
    try secret.withBytes { bytes in
      let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, base, bytes.count) else {
        throw LibCrypto.error("reading a secret key")
      }
      return key
    }
  }
}
