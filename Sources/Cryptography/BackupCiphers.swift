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
    // libcrypto refuses an empty nonce. By NIST SP 800-38D the first counter block J0 is the GHASH of a block of zeros
    // then, which is zero: the text is encrypted with the blocks 1, 2, …, and the tag with block 0. With a nonce of 12 zeros
    // J0 is 1: the tag is encrypted with block 1. The part of a tag that depends on the ciphertext is the same. So libcrypto
    // compares the corrected tag; what it decrypts then, with the blocks 2, 3, …, is nothing.
    let stream = try keyStream(key, count: cipher.count + 2 * block)
    return try stream.withBytes { stream in
      var tag = (0..<block).map { sealed[cipher.count + $0] ^ stream[$0] ^ stream[block + $0] }
      guard try isAuthentic(cipher, &tag, key) else { return nil }
      return SecretBytes(count: cipher.count) { plain in
        for index in cipher.indices { plain[index] = cipher[index] ^ stream[block + index] }
      }
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

  /// Whether libcrypto accepts a tag with a nonce of zeros.
  private static func isAuthentic(_ cipher: [UInt8], _ tag: inout [UInt8], _ key: SecretBytes) throws -> Bool
  {
    let context = try LibCrypto.cipherContext()
    defer { EVP_CIPHER_CTX_free(context) }
    let nonce = [UInt8](repeating: 0, count: 12)
    guard LibCrypto.start(context, EVP_aes_256_gcm(), key, iv: nonce, encrypts: false),
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(block), &tag) == 1
    else { throw LibCrypto.error("checking an item of a keychain") }
    return LibCrypto.withScratch(cipher.count + block) { room in
      let room = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
      var count: Int32 = 0
      let isSame =
        (cipher.isEmpty || EVP_CipherUpdate(context, room, &count, cipher, Int32(cipher.count)) == 1)
        && EVP_CipherFinal_ex(context, room, &count) == 1
      // A wrong tag leaves its reason in the queue.
      ERR_clear_error()
      return isSame
    }
  }
}
