import CLibCrypto
import DrydockErrors

// What other programs' encrypted backups use: keys from passwords, wrapped keys, AES in two modes. Nothing is encrypted
// with it.

extension SecretBytes {
  /// A key of 32 bytes from this password, by PBKDF2 with HMAC.
  ///
  /// - Throws: `DrydockError`: `limit` for more rounds than any program uses, `damaged` for none.
  package func passwordKey(salt: [UInt8], rounds: UInt64, _ hash: HashFunction) throws -> SecretBytes {
    guard rounds > 0 else { throw DrydockError(.damaged, "its password has 0 rounds of key derivation") }
    guard rounds <= Self.maximumRounds else {
      throw DrydockError(
        .limit,
        "its password has \(rounds) rounds of key derivation, more than the limit of \(Self.maximumRounds); it is damaged, or "
          + "made to keep a reader busy")
    }
    return try withBytes { password in
      try SecretBytes(count: 32) { key in
        let done = PKCS5_PBKDF2_HMAC(
          password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count), salt,
          Int32(salt.count), Int32(rounds), hash.algorithm, Int32(key.count),
          key.baseAddress?.assumingMemoryBound(to: UInt8.self))
        guard done == 1 else { throw LibCrypto.error("deriving a key from a password") }
      }
    }
  }

  /// Half a minute on a slow machine; iOS uses 10 million.
  private static let maximumRounds: UInt64 = 50_000_000

  /// A key that was wrapped with this one, as RFC 3394 describes it; nil when it was wrapped with another one, or is damaged.
  package func unwrapKey(_ wrapped: [UInt8]) throws -> SecretBytes? {
    guard count == 32, wrapped.count >= 24, wrapped.count <= 256, wrapped.count % 8 == 0 else {
      return nil
    }
    let context = try LibCrypto.cipherContext()
    defer { EVP_CIPHER_CTX_free(context) }
    EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW)
    guard LibCrypto.start(context, EVP_aes_256_wrap(), self, iv: nil, encrypts: false) else {
      throw LibCrypto.error("setting up the unwrapping of a key")
    }
    return LibCrypto.withScratch(wrapped.count + 16) { room -> SecretBytes? in
      var count: Int32 = 0
      let done = EVP_CipherUpdate(
        context, room.baseAddress?.assumingMemoryBound(to: UInt8.self), &count, wrapped, Int32(wrapped.count))
      guard done == 1, Int(count) == wrapped.count - 8 else {
        ERR_clear_error()
        return nil
      }
      return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: room[..<Int(count)]))
    }
  }
}

/// Decrypts AES-256-CBC with PKCS #7 padding, piece by piece. It authenticates nothing.
package final class CBCDecryption {
  package static let blockSize = 16
  private let context: OpaquePointer

  /// Expects a key of 32 bytes and an IV of 16.
  package init(key: SecretBytes, iv: [UInt8]) throws {
    guard key.count == 32, iv.count == Self.blockSize else {
      throw DrydockError(.damaged, "a key or an initialization vector has the wrong length")
    }
    context = try LibCrypto.cipherContext()
    guard LibCrypto.start(context, EVP_aes_256_cbc(), key, iv: iv, encrypts: false) else {
      throw LibCrypto.error("setting up decryption")
    }
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// The plain bytes that are complete; the last block is held back for ``finish()``.
  package func update(_ piece: [UInt8]) throws -> [UInt8] {
    var count: Int32 = 0
    guard let size = Int32(exactly: piece.count) else {
      throw DrydockError(.invalidUse, "a piece to decrypt has \(piece.count) bytes")
    }
    var plain = [UInt8](repeating: 0, count: piece.count + Self.blockSize)
    guard EVP_CipherUpdate(context, &plain, &count, piece, size) == 1 else {
      throw LibCrypto.error("decrypting")
    }
    plain.removeLast(plain.count - Int(count))
    return plain
  }

  /// The last plain bytes; nil when the padding is wrong: of another key, or a cut file.
  package func finish() -> [UInt8]? {
    var count: Int32 = 0
    var plain = [UInt8](repeating: 0, count: Self.blockSize)
    guard EVP_CipherFinal_ex(context, &plain, &count) == 1 else {
      ERR_clear_error()
      return nil
    }
    return Array(plain.prefix(Int(count)))
  }
}

/// AES-256-GCM with an empty nonce, as iOS seals the items of a keychain in a backup; each has its own key.
package enum EmptyNonceGCM {
  private static let block = 16
  private static let longest = 64 << 20

  /// What was sealed; nil when the tag does not match.
  ///
  /// - Parameter sealed: the ciphertext and a tag of 16 bytes.
  package static func open(_ sealed: [UInt8], key: SecretBytes) throws -> SecretBytes? {
    guard key.count == 32, sealed.count >= block, sealed.count <= longest else { return nil }
    let cipher = Array(sealed.dropLast(block))
    let tag = sealed.suffix(block)
    // libcrypto refuses an empty nonce. By NIST SP 800-38D the first counter block J0 is the GHASH of a block of zeros
    // then, which is zero: the text is encrypted with the blocks 1, 2, …, and the tag with block 0. With a nonce of 12 zeros
    // J0 is 1: the text is encrypted with the blocks 2, 3, …, and the tag with block 1. The part of a tag that depends on
    // the ciphertext is the same. So the ciphertext is made once more with the second nonce, and the tag corrected.
    let stream = try keyStream(key, count: cipher.count + 2 * block)
    return try stream.withBytes { stream -> SecretBytes? in
      let again = try sealedWithZeros(xor(cipher, stream[(2 * block)...]), key)
      guard again.cipher == cipher else { throw LibCrypto.error("opening an item of a keychain") }
      let expected = (0..<block).map { again.tag[$0] ^ stream[block + $0] ^ stream[$0] }
      return LibCrypto.isSame(expected, Array(tag)) ? xor(cipher, stream[block...]) : nil
    }
  }

  private static func xor(_ bytes: [UInt8], _ stream: Slice<UnsafeRawBufferPointer>) -> SecretBytes {
    SecretBytes(count: bytes.count) { result in
      for index in bytes.indices { result[index] = bytes[index] ^ stream[stream.startIndex + index] }
    }
  }

  /// The encrypted counter blocks 0, 1, ….
  private static func keyStream(_ key: SecretBytes, count: Int) throws -> SecretBytes {
    let context = try LibCrypto.cipherContext()
    defer { EVP_CIPHER_CTX_free(context) }
    let zeros = [UInt8](repeating: 0, count: count)
    return try SecretBytes(count: count) { stream in
      var done: Int32 = 0
      guard
        LibCrypto.start(
          context, EVP_aes_256_ctr(), key, iv: [UInt8](repeating: 0, count: block), encrypts: true),
        EVP_CipherUpdate(
          context, stream.baseAddress?.assumingMemoryBound(to: UInt8.self), &done, zeros, Int32(count)) == 1
      else { throw LibCrypto.error("decrypting an item of a keychain") }
    }
  }

  private static func sealedWithZeros(
    _ plain: SecretBytes, _ key: SecretBytes
  ) throws -> (cipher: [UInt8], tag: [UInt8]) {
    let context = try LibCrypto.cipherContext()
    defer { EVP_CIPHER_CTX_free(context) }
    var cipher = [UInt8](repeating: 0, count: plain.count)
    var (tag, rest) = ([UInt8](repeating: 0, count: block), [UInt8](repeating: 0, count: block))
    var count: Int32 = 0
    let done = plain.withBytes { plain in
      LibCrypto.start(
        context, EVP_aes_256_gcm(), key, iv: [UInt8](repeating: 0, count: 12), encrypts: true)
        && (plain.isEmpty
          || EVP_CipherUpdate(
            context, &cipher, &count, plain.baseAddress?.assumingMemoryBound(to: UInt8.self),
            Int32(plain.count)) == 1)
        && EVP_CipherFinal_ex(context, &rest, &count) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(block), &tag) == 1
    }
    guard done else { throw LibCrypto.error("checking an item of a keychain") }
    return (cipher, tag)
  }
}
