import CLibCrypto

extension LibCrypto {
  /// HKDF-SHA256 with 32 bytes of result.
  static func hkdf(_ secret: SecretBytes, salt: [UInt8], info: String) throws -> SecretBytes {
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
  static func hmac(_ bytes: UnsafeRawBufferPointer, key: SecretBytes) throws -> [UInt8] {
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

  /// Whether two authentication codes are the same, in constant time.
  static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }

  /// scrypt with r = 8 and p = 1, as age uses it: 32 bytes. It takes 2^(workFactor + 10) bytes of memory.
  static func scrypt(_ passphrase: SecretBytes, salt: [UInt8], workFactor: Int) throws -> SecretBytes {
    let rounds = UInt64(1) << UInt64(workFactor)
    // What it needs by its definition, and a little: libcrypto's own limit is 32 MB.
    let memory = 128 * 8 * (rounds + 16)
    return try passphrase.withBytes { passphrase in
      try SecretBytes(count: 32) { derived in
        let done = EVP_PBE_scrypt(
          passphrase.baseAddress, passphrase.count, salt, salt.count, rounds, 8, 1, memory,
          derived.baseAddress,
          derived.count)
        guard done == 1 else { throw error("deriving a key from a passphrase") }
      }
    }
  }
}
