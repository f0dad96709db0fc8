import CLibCrypto
import DrydockErrors

/// Ed25519 signatures (RFC 8032).
package enum Ed25519 {
  package static let keyLength = 32
  package static let signatureLength = 64

  /// - Parameter seed: the secret key's 32 bytes.
  package static func publicKey(of seed: SecretBytes) throws -> [UInt8] {
    try LibCrypto.publicKey(of: seed, EVP_PKEY_ED25519)
  }

  package static func sign(_ message: [UInt8], seed: SecretBytes) throws -> [UInt8] {
    let key = try LibCrypto.privateKey(seed, EVP_PKEY_ED25519)
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { throw LibCrypto.error("signing") }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: signatureLength)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == signatureLength
    else { throw LibCrypto.error("signing") }
    return signature
  }
}

/// A public key that verifies signatures.
package enum SignatureKey: Sendable, Hashable {
  case ed25519([UInt8])
  /// A point of a curve that libcrypto names so, such as `P-256`, uncompressed.
  case ecdsa(curve: String, point: [UInt8])
  /// Modulus and exponent, big-endian.
  case rsa(modulus: [UInt8], exponent: [UInt8])

  /// Whether a signature is this key's. Of Ed25519 the 64 bytes, of ECDSA what ``derSignature(r:s:)`` makes, of RSA the number
  /// of PKCS #1 v1.5. A key that libcrypto does not accept has signed nothing.
  ///
  /// - Parameter hash: of the message; Ed25519 has its own.
  package func verifies(_ signature: [UInt8], of message: [UInt8], hash: HashFunction = .sha512) throws
    -> Bool
  {
    guard let key else {
      ERR_clear_error()
      return false
    }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { throw LibCrypto.error("verifying a signature") }
    defer { EVP_MD_CTX_free(context) }
    let isValid =
      EVP_DigestVerifyInit(context, nil, hasOwnHash ? nil : hash.algorithm, nil, key) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    // A wrong signature leaves its reason in the queue.
    ERR_clear_error()
    return isValid
  }

  private var hasOwnHash: Bool { if case .ed25519 = self { true } else { false } }

  private var key: OpaquePointer? {
    switch self {
    case .ed25519(let bytes):
      bytes.count == Ed25519.keyLength
        ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count) : nil
    case .ecdsa(let curve, let point): crypto_ec_public_key(curve, point, point.count)
    case .rsa(let modulus, let exponent):
      crypto_rsa_public_key(modulus, modulus.count, exponent, exponent.count)
    }
  }

  /// The two numbers of an ECDSA signature, big-endian, in the form that libcrypto verifies; nil if they are too large.
  package static func derSignature(r: [UInt8], s: [UInt8]) -> [UInt8]? {
    guard r.count <= 80, s.count <= 80 else { return nil }
    var der = [UInt8](repeating: 0, count: 256)
    let count = crypto_ecdsa_signature(r, r.count, s, s.count, &der, der.count)
    return count > 0 ? Array(der.prefix(Int(count))) : nil
  }
}

extension SecretBytes {
  /// A key from this passphrase, by scrypt with blocks of 8.
  ///
  /// - Parameters:
  ///   - rounds: a power of two; it takes 1 KiB of memory for each.
  ///   - count: the bytes to derive.
  package func scryptKey(
    salt: [UInt8], rounds: UInt64, parallel: UInt64 = 1, count: Int = 32
  ) throws -> SecretBytes {
    // What scrypt needs by definition, and a little more: libcrypto's default limit is 32 MB.
    let memory = 128 * 8 * (rounds + parallel + 32)
    return try withBytes { passphrase in
      try SecretBytes(count: count) { derived in
        let done = EVP_PBE_scrypt(
          passphrase.baseAddress, passphrase.count, salt, salt.count, rounds, 8, parallel, memory,
          derived.baseAddress, derived.count)
        guard done == 1 else { throw LibCrypto.error("deriving a key from a passphrase") }
      }
    }
  }

  /// Decodes base64 with padding, whose line breaks are ignored, without a copy in other memory; nil for any other text.
  package static func decodingBase64(_ text: UnsafeRawBufferPointer) -> SecretBytes? {
    LibCrypto.withScratch(text.count + 1) { scratch -> SecretBytes? in
      var count = 0
      for byte in text where byte != UInt8(ascii: "\n") && byte != UInt8(ascii: "\r") {
        scratch[count] = byte
        count += 1
      }
      let padding = scratch[..<count].reversed().prefix { $0 == UInt8(ascii: "=") }.count
      // libcrypto ignores blanks at both ends, and takes padding for zeros.
      let isText = scratch[..<(count - padding)].allSatisfy { byte in
        byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/") || byte.isDigit || byte.isLetter
      }
      guard count > 0, count % 4 == 0, padding <= 2, isText else { return nil }
      return LibCrypto.withScratch(count) { decoded -> SecretBytes? in
        let length = EVP_DecodeBlock(
          decoded.baseAddress?.assumingMemoryBound(to: UInt8.self),
          scratch.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(count))
        guard length >= padding else {
          ERR_clear_error()
          return nil
        }
        return SecretBytes(
          copying: UnsafeRawBufferPointer(rebasing: decoded[..<(Int(length) - padding)]))
      }
    }
  }

  /// A part of these bytes; nil if they end before it does.
  package func part(_ range: Range<Int>) -> SecretBytes? {
    guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
    return withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
