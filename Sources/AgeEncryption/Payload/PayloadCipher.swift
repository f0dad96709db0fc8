import DrydockErrors
import Synchronization

/// Seals and opens the chunks of one payload, each by its number, in any order and on any thread.
package struct PayloadCipher: Sendable {
  /// The plain bytes of a chunk: 64 KiB, except for the last one, which may have fewer.
  package static let chunkLength = 64 * 1024
  /// What a chunk grows by when it is sealed: 16 bytes.
  package static let overhead = ChaChaPoly.tagLength
  /// The bytes of a full chunk when it is sealed.
  package static let sealedChunkLength = chunkLength + overhead
  static let nonceLength = 16

  private let sealers: CipherPool
  private let openers: CipherPool

  /// The cipher of a payload with that nonce (16 bytes).
  init(fileKey: SecretBytes, nonce: [UInt8]) throws {
    let key = try LibCrypto.hkdf(fileKey, salt: nonce, info: "payload")
    sealers = CipherPool(key, .seal)
    openers = CipherPool(key, .open)
  }

  /// Encrypts chunk `number` (from 0) into `sealed`, which must be 16 bytes longer and not overlap. All chunks but the
  /// last one have 64 KiB; the last one has fewer only where the payload ends, and none only in an empty payload.
  ///
  /// - Throws: `DrydockError` (`.cryptography`).
  package func seal(
    _ plain: UnsafeRawBufferPointer, number: UInt64, isLast: Bool, into sealed: UnsafeMutableRawBufferPointer
  ) throws {
    try sealers.borrow { try $0.seal(plain, ChaChaNonce(number: number, isLast: isLast), into: sealed) }
  }

  /// Decrypts chunk `number` (from 0) into `plain`, which must be 16 bytes shorter and not overlap.
  ///
  /// - Throws: `DrydockError` (`.payload`) when the chunk is not the one that was sealed; `plain` is wiped then.
  package func open(
    _ sealed: UnsafeRawBufferPointer, number: UInt64, isLast: Bool, into plain: UnsafeMutableRawBufferPointer
  ) throws {
    let isOpen = try openers.borrow {
      $0.open(sealed, ChaChaNonce(number: number, isLast: isLast), into: plain)
    }
    guard isOpen else {
      throw DrydockError.payload(
        "chunk \(number) does not match its tag\(isLast ? ", or is not the last one" : "")")
    }
  }
}

/// Ciphers with the same key, made as threads ask for them: setting one up takes longer than copying a chunk.
private final class CipherPool: Sendable {
  private let key: SecretBytes
  private let direction: ChaChaPoly.Direction
  private let idle = Mutex<[ChaChaPoly]>([])

  init(_ key: SecretBytes, _ direction: ChaChaPoly.Direction) {
    self.key = key
    self.direction = direction
  }

  func borrow<Result>(_ body: (ChaChaPoly) throws -> Result) throws -> Result {
    let cipher = try idle.withLock { $0.popLast() } ?? ChaChaPoly(key: key, direction)
    defer { idle.withLock { $0.append(cipher) } }
    return try body(cipher)
  }
}
