import CLibCrypto

/// SHA-512, which formats of other programs use.
package enum SHA512 {
  /// The 64 bytes of the digest of bytes at hand. Throws `DrydockError` when libcrypto cannot.
  package static func hash(_ bytes: [UInt8]) throws -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 64)
    guard EVP_Digest(bytes, bytes.count, &result, nil, EVP_sha512(), nil) == 1 else {
      throw LibCrypto.error("computing SHA-512")
    }
    return result
  }
}
