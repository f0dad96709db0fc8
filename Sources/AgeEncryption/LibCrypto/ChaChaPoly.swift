import CLibCrypto

/// The nonce of one message: age counts the chunks of a payload, and marks the last one.
struct ChaChaNonce {
  /// The number of the chunk, from 0.
  let number: UInt64
  /// Whether it is the payload's last chunk.
  let isLast: Bool

  /// Twelve zeros, for keys that are used once.
  static let zero = ChaChaNonce(number: 0, isLast: false)

  /// Lends the 12 bytes: the number in 11, big-endian, and the mark.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>?) -> Result) -> Result {
    let number = number.bigEndian
    return withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { bytes in
      bytes.storeBytes(of: 0, as: UInt32.self)
      bytes.storeBytes(of: number, toByteOffset: 3, as: UInt64.self)
      bytes.storeBytes(of: isLast ? 1 : 0, toByteOffset: 11, as: UInt8.self)
      return body(bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
    }
  }
}

/// ChaCha20-Poly1305 with one key and one direction, for one thread at a time.
///
/// Unchecked because the compiler cannot see that: `PayloadCipher` takes one from its pool under a lock and puts it
/// back under it.
final class ChaChaPoly: @unchecked Sendable {
  enum Direction: Int32 {
    case open = 0
    case seal = 1
  }

  static let tagLength = 16

  private let context: OpaquePointer

  /// Expects a key of 32 bytes.
  init(key: SecretBytes, _ direction: Direction) throws {
    guard let context = EVP_CIPHER_CTX_new() else { throw LibCrypto.error("setting up encryption") }
    self.context = context
    let done = key.withBytes { key in
      EVP_CipherInit_ex(
        context, EVP_chacha20_poly1305(), nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil,
        direction.rawValue)
    }
    // From here on `deinit` frees the context, as every stored property is set.
    guard done == 1 else { throw LibCrypto.error("setting up encryption") }
  }

  /// It wipes the key in it, too.
  deinit { EVP_CIPHER_CTX_free(context) }

  /// Encrypts `plain` into `sealed`, which is a tag (16 bytes) longer. The two may not overlap.
  func seal(_ plain: UnsafeRawBufferPointer, _ nonce: ChaChaNonce, into sealed: UnsafeMutableRawBufferPointer)
    throws
  {
    precondition(sealed.count == plain.count + Self.tagLength)
    let tag = sealed.baseAddress.map { $0 + plain.count }
    guard start(nonce), update(plain, sealed), finish(),
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), tag) == 1
    else { throw LibCrypto.error("encrypting") }
  }

  /// Decrypts `sealed` into `plain`, which is a tag (16 bytes) shorter. False, with `plain` wiped, when the key, the
  /// nonce or the bytes are not those that were sealed.
  func open(
    _ sealed: UnsafeRawBufferPointer, _ nonce: ChaChaNonce, into plain: UnsafeMutableRawBufferPointer
  ) -> Bool {
    precondition(sealed.count == plain.count + Self.tagLength)
    let body = UnsafeRawBufferPointer(rebasing: sealed.prefix(plain.count))
    let tag = UnsafeMutableRawPointer(mutating: sealed.baseAddress.map { $0 + plain.count })
    if start(nonce), EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), tag) == 1,
      update(body, plain), finish()
    {
      return true
    }
    // What came out before the tag was compared is nobody's plaintext.
    LibCrypto.wipe(plain)
    ERR_clear_error()
    return false
  }

  /// The key stays; a null cipher and direction mean: the same again.
  private func start(_ nonce: ChaChaNonce) -> Bool {
    nonce.withBytes { EVP_CipherInit_ex(context, nil, nil, nil, $0, -1) == 1 }
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
