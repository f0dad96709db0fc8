import CLibCrypto
import DrydockErrors

/// SHA-256 of bytes that come piece by piece.
///
/// One instance can digest one message after another: `finalize()` starts the next one.
package final class SHA256 {
  private let context: OpaquePointer
  /// A failure inside `update`, kept until `finalize` so that feeding stays a plain call.
  private var failure: DrydockError?

  /// Starts a digest. Throws `DrydockError` when libcrypto cannot.
  package init() throws {
    guard let context = EVP_MD_CTX_new() else { throw LibCrypto.error("starting SHA-256") }
    self.context = context
    guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      EVP_MD_CTX_free(context)
      throw LibCrypto.error("starting SHA-256")
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes to the message. A failure shows at `finalize()`.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress, failure == nil else { return }
    if EVP_DigestUpdate(context, base, bytes.count) != 1 { failure = LibCrypto.error("computing SHA-256") }
  }

  /// Ends the message and gives its digest; the next `update` starts a new message.
  package func finalize() throws -> Digest {
    var bytes = [UInt8](repeating: 0, count: Digest.byteCount)
    if failure == nil, EVP_DigestFinal_ex(context, &bytes, nil) != 1 {
      failure = LibCrypto.error("computing SHA-256")
    }
    let failed = failure
    failure = nil
    // A null digest means: the same algorithm again.
    guard EVP_DigestInit_ex(context, nil, nil) == 1 else { throw LibCrypto.error("starting SHA-256") }
    if let failed { throw failed }
    return Digest(first32: bytes)
  }

  /// The digest of bytes at hand.
  package static func hash(_ bytes: UnsafeRawBufferPointer) throws -> Digest {
    var result = [UInt8](repeating: 0, count: Digest.byteCount)
    // An empty buffer may have no address; libcrypto wants one all the same.
    let done = bytes.withMemoryRebound(to: UInt8.self) { source in
      EVP_Digest(source.baseAddress, source.count, &result, nil, EVP_sha256(), nil)
    }
    guard done == 1 else { throw LibCrypto.error("computing SHA-256") }
    return Digest(first32: result)
  }

  /// The digest of bytes at hand.
  package static func hash(_ bytes: [UInt8]) throws -> Digest {
    try bytes.withUnsafeBytes { try hash($0) }
  }
}
