import CLibCrypto
import DrydockErrors

/// libcrypto's primitives, and the translation of its errors.
package enum LibCrypto {
  /// The error for a failed call, with the reasons that libcrypto queued for this thread. The queue is emptied: what
  /// stayed in it would be attributed to the next failure.
  static func error(_ doing: String) -> DrydockError {
    let reasons = drainQueue()
    let why = reasons.isEmpty ? "unknown reason" : reasons.joined(separator: "; ")
    return DrydockError(
      .cryptography, "libcrypto failed while \(doing): \(why); check the installation of OpenSSL 3")
  }

  private static func drainQueue() -> [String] {
    var reasons: [String] = []
    while true {
      let code = ERR_get_error()
      if code == 0 { return reasons }
      var text = [CChar](repeating: 0, count: 256)
      ERR_error_string_n(code, &text, text.count)
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      reasons.append(String(decoding: bytes, as: UTF8.self))
    }
  }
}

extension LibCrypto {
  /// Overwrites memory in a way that the optimizer cannot remove.
  package static func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    OPENSSL_cleanse(base, bytes.count)
  }

  /// Provides zeroed scratch memory for secrets, and wipes it afterwards.
  package static func withScratch<Result>(
    _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { scratch in
      _ = scratch.initializeMemory(as: UInt8.self, repeating: 0)
      defer { wipe(scratch) }
      return try body(scratch)
    }
  }
}

/// Random bytes for keys and identifiers.
package enum RandomBytes {
  /// Bytes from libcrypto's generator.
  package static func make(_ count: Int) throws -> [UInt8] {
    guard let length = Int32(exactly: count), length >= 0 else {
      throw DrydockError(.badKey, "cannot make \(count) random bytes; the count is from 0 to \(Int32.max)")
    }
    var bytes = [UInt8](repeating: 0, count: count)
    guard RAND_bytes(&bytes, length) == 1 else { throw LibCrypto.error("making random bytes") }
    return bytes
  }

  /// Bytes for a key, from libcrypto's private generator.
  package static func secret(_ count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { memory in
      let base = memory.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard RAND_priv_bytes(base, Int32(memory.count)) == 1 else { throw LibCrypto.error("making a key") }
    }
  }
}

extension LibCrypto {
  /// HKDF-SHA256 with a result of 32 bytes.
  package static func hkdf(_ secret: SecretBytes, salt: [UInt8], info: String) throws -> SecretBytes {
    let info = Array(info.utf8)
    return try secret.withBytes { key in
      try SecretBytes(count: 32) { derived in
        let done = crypto_hkdf_sha256(
          key.baseAddress, key.count, salt, salt.count, info, info.count, derived.baseAddress, derived.count)
        guard done == 1 else { throw error("deriving a key") }
      }
    }
  }

  /// HMAC-SHA256: 32 bytes.
  package static func hmac(_ bytes: UnsafeRawBufferPointer, key: SecretBytes) throws -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    // An empty message may have no address.
    var nothing: UInt8 = 0
    let done = key.withBytes { key in
      bytes.withMemoryRebound(to: UInt8.self) { message in
        withUnsafePointer(to: &nothing) {
          HMAC(
            EVP_sha256(), key.baseAddress, Int32(key.count), message.baseAddress ?? $0, message.count, &code,
            nil)
        }
      }
    }
    guard done != nil else { throw error("authenticating") }
    return code
  }

  /// Compares two authentication codes in constant time.
  package static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }
}

extension SecretBytes {
  /// HMAC-SHA256 with this key.
  package func code(of bytes: [UInt8]) throws -> [UInt8] {
    try bytes.withUnsafeBytes { try LibCrypto.hmac($0, key: self) }
  }
}

/// Keys of Curve25519: 32 bytes each, for the key agreement (`EVP_PKEY_X25519`) and for signatures (`EVP_PKEY_ED25519`).
extension LibCrypto {
  /// The caller frees the key.
  static func privateKey(_ secret: SecretBytes, _ type: Int32) throws -> OpaquePointer {
    try secret.withBytes { bytes in
      let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      // libcrypto checks the length.
      guard let key = EVP_PKEY_new_raw_private_key(type, nil, base, bytes.count) else {
        throw error("reading a secret key")
      }
      return key
    }
  }

  static func publicKey(of secret: SecretBytes, _ type: Int32) throws -> [UInt8] {
    let key = try privateKey(secret, type)
    defer { EVP_PKEY_free(key) }
    var bytes = [UInt8](repeating: 0, count: 32)
    var count = bytes.count
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else {
      throw error("making a public key")
    }
    return bytes
  }
}

/// The key agreement behind age's recipients.
package enum X25519 {
  package static let keyLength = 32

  package static func publicKey(of secret: SecretBytes) throws -> [UInt8] {
    try LibCrypto.publicKey(of: secret, EVP_PKEY_X25519)
  }

  /// The shared secret of two keys; nil when the public key is weak: one of the few points that give the same "secret"
  /// with every key.
  package static func sharedSecret(_ secret: SecretBytes, with publicKey: [UInt8]) throws -> SecretBytes? {
    let own = try LibCrypto.privateKey(secret, EVP_PKEY_X25519)
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
      // libcrypto rejects an all-zero result, and has no other reason to fail here.
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
}

extension LibCrypto {
  /// The caller frees it.
  static func cipherContext() throws -> OpaquePointer {
    guard let context = EVP_CIPHER_CTX_new() else { throw error("setting up a cipher") }
    return context
  }

  static func start(
    _ context: OpaquePointer, _ cipher: OpaquePointer?, _ key: SecretBytes, iv: [UInt8]?, encrypts: Bool
  ) -> Bool {
    key.withBytes { key in
      EVP_CipherInit_ex(
        context, cipher, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), iv, encrypts ? 1 : 0) == 1
    }
  }
}

/// ChaCha20-Poly1305 with one key, for one thread at a time.
///
/// Unchecked: `PayloadCipher` takes one from its pool and puts it back under a lock, which the compiler cannot see.
package final class ChaChaPoly: @unchecked Sendable {
  package static let tagLength = 16

  private let context: OpaquePointer

  /// Expects a key of 32 bytes.
  package init(key: SecretBytes) throws {
    context = try LibCrypto.cipherContext()
    // From here on `deinit` frees the context.
    guard LibCrypto.start(context, EVP_chacha20_poly1305(), key, iv: nil, encrypts: true) else {
      throw LibCrypto.error("setting up a cipher")
    }
  }

  /// This also wipes the key in it.
  deinit { EVP_CIPHER_CTX_free(context) }

  /// Encrypts `plain` into `sealed`, which is a tag (16 bytes) longer. The two may not overlap.
  ///
  /// - Parameters:
  ///   - number: of the chunk, which with the mark of the last one is the nonce: no two messages of a key have the same.
  package func seal(
    _ plain: UnsafeRawBufferPointer, number: UInt64, isLast: Bool,
    into sealed: UnsafeMutableRawBufferPointer
  ) throws {
    precondition(sealed.count == plain.count + Self.tagLength)
    let tag = sealed.baseAddress.map { $0 + plain.count }
    guard start(number, isLast, encrypts: true), update(plain, sealed), finish(),
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), tag) == 1
    else { throw LibCrypto.error("encrypting") }
  }

  /// Decrypts `sealed` into `plain`, which is a tag (16 bytes) shorter. Returns false, with `plain` wiped, when the tag
  /// does not match.
  package func open(
    _ sealed: UnsafeRawBufferPointer, number: UInt64, isLast: Bool,
    into plain: UnsafeMutableRawBufferPointer
  ) -> Bool {
    precondition(sealed.count == plain.count + Self.tagLength)
    let body = UnsafeRawBufferPointer(rebasing: sealed.prefix(plain.count))
    let tag = UnsafeMutableRawPointer(mutating: sealed.baseAddress.map { $0 + plain.count })
    if start(number, isLast, encrypts: false),
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), tag) == 1,
      update(body, plain), finish()
    {
      return true
    }
    // What was decrypted before the tag was compared is not authentic.
    LibCrypto.wipe(plain)
    ERR_clear_error()
    return false
  }

  /// Sets the nonce of 12 bytes: the number in 11, big-endian, and the mark.
  private func start(_ number: UInt64, _ isLast: Bool, encrypts: Bool) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { nonce in
      nonce.storeBytes(of: 0, as: UInt32.self)
      nonce.storeBytes(of: number.bigEndian, toByteOffset: 3, as: UInt64.self)
      nonce.storeBytes(of: isLast ? 1 : 0, toByteOffset: 11, as: UInt8.self)
      let bytes = nonce.assumingMemoryBound(to: UInt8.self).baseAddress
      // A null cipher and key leave these unchanged.
      return EVP_CipherInit_ex(context, nil, nil, nil, bytes, encrypts ? 1 : 0) == 1
    }
  }

  private func update(_ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer) -> Bool {
    guard let input = source.baseAddress, let output = target.baseAddress, source.count > 0 else {
      return true
    }
    var count: Int32 = 0
    let done = EVP_CipherUpdate(
      context, output.assumingMemoryBound(to: UInt8.self), &count, input.assumingMemoryBound(to: UInt8.self),
      Int32(source.count))
    return done == 1 && Int(count) == source.count
  }

  private func finish() -> Bool {
    var rest: UInt64 = 0
    var count: Int32 = 0
    return withUnsafeMutableBytes(of: &rest) {
      EVP_CipherFinal_ex(context, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), &count) == 1
    }
  }
}
