import Cryptography
import DrydockErrors
import Synchronization

/// Seals and opens the chunks of one payload, each by its number, in any order and on any thread.
package final class PayloadCipher: Sendable {
  /// The plain bytes of a chunk: 64 KiB, except for the last one, which may have fewer.
  package static let chunkLength = 64 * 1024
  /// The bytes that sealing adds to a chunk: 16.
  package static let overhead = ChaChaPoly.tagLength
  package static let sealedChunkLength = chunkLength + overhead
  static let nonceLength = 16

  private let key: SecretBytes
  /// Used again, since setting one up takes longer than copying a chunk.
  private let idle = Mutex<[ChaChaPoly]>([])
  /// A key for codes over the content that say nothing to those who cannot open the file.
  package let codeKey: SecretBytes

  init(fileKey: SecretBytes, nonce: [UInt8]) throws {
    codeKey = try LibCrypto.hkdf(fileKey, salt: nonce, info: "drydock statement")
    key = try LibCrypto.hkdf(fileKey, salt: nonce, info: "payload")
  }

  /// Encrypts chunk `number` (from 0) into `sealed`, which must be 16 bytes longer and not overlap. All chunks but the
  /// last one have 64 KiB; the last one has fewer only where the payload ends, and none only in an empty payload.
  ///
  /// - Throws: `DrydockError` (`.cryptography`).
  package func seal(
    _ plain: UnsafeRawBufferPointer, number: UInt64, isLast: Bool, into sealed: UnsafeMutableRawBufferPointer
  ) throws {
    try withCipher { try $0.seal(plain, number: number, isLast: isLast, into: sealed) }
  }

  /// Decrypts chunk `number` (from 0) into `plain`, which must be 16 bytes shorter and not overlap.
  ///
  /// - Throws: `DrydockError` (`.payload`) when the chunk is not the one that was sealed; `plain` is wiped then.
  package func open(
    _ sealed: UnsafeRawBufferPointer, number: UInt64, isLast: Bool, into plain: UnsafeMutableRawBufferPointer
  ) throws {
    let isOpen = try withCipher { $0.open(sealed, number: number, isLast: isLast, into: plain) }
    guard isOpen else {
      throw DrydockError.payload(
        "chunk \(number) does not match its tag\(isLast ? ", or is not the last one" : "")")
    }
  }

  private func withCipher<Result>(_ body: (ChaChaPoly) throws -> Result) throws -> Result {
    let cipher = try idle.withLock { $0.popLast() } ?? ChaChaPoly(key: key)
    defer { idle.withLock { $0.append(cipher) } }
    return try body(cipher)
  }
}

/// Where the chunks of a payload are, computed from its length.
struct PayloadLayout: Sendable {
  /// Where the first chunk starts in the file.
  let start: UInt64
  /// The number of chunks, one at least.
  let chunkCount: UInt64
  /// The length of the content. Not authentic before the last chunk was opened as the last one.
  let plainSize: UInt64

  /// - Parameter start: where the payload starts, after the nonce.
  ///
  /// - Throws: `DrydockError` (`.payload`) for lengths that no payload has.
  init(fileSize: UInt64, start: UInt64) throws {
    let sealed = UInt64(PayloadCipher.sealedChunkLength)
    let overhead = UInt64(PayloadCipher.overhead)
    guard fileSize > start else { throw DrydockError.payload("it has no chunk, so it was cut short") }
    let size = fileSize - start
    chunkCount = (size - 1) / sealed + 1
    let last = size - (chunkCount - 1) * sealed
    guard last >= overhead else { throw DrydockError.payload("its last chunk is shorter than a tag") }
    guard last > overhead || chunkCount == 1 else { throw DrydockError.payload("its last chunk is empty") }
    self.start = start
    plainSize = size - chunkCount * overhead
  }

  var last: UInt64 { chunkCount - 1 }

  func chunk(at offset: UInt64) -> UInt64 { offset / UInt64(PayloadCipher.chunkLength) }

  func plainStart(of chunk: UInt64) -> UInt64 { chunk * UInt64(PayloadCipher.chunkLength) }

  func plainLength(of chunk: UInt64) -> Int {
    chunk == last ? Int(plainSize - plainStart(of: chunk)) : PayloadCipher.chunkLength
  }

  func sealedStart(of chunk: UInt64) -> UInt64 { start + chunk * UInt64(PayloadCipher.sealedChunkLength) }
}
