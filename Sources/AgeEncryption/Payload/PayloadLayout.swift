import DrydockErrors

/// Where the chunks of a payload lie, calculated from its length.
struct PayloadLayout: Sendable {
  /// Where the first chunk starts in the file.
  let start: UInt64
  /// The number of chunks, one at least.
  let chunkCount: UInt64
  /// The length of all that was encrypted. To be believed only after the last chunk was opened as the last one.
  let plainSize: UInt64

  /// Expects the file's size and where its payload starts, behind the nonce.
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

  /// The number of the last chunk.
  var last: UInt64 { chunkCount - 1 }

  /// The number of the chunk with that plain byte.
  func chunk(at offset: UInt64) -> UInt64 { offset / UInt64(PayloadCipher.chunkLength) }

  /// Where a chunk's plain bytes start.
  func plainStart(of chunk: UInt64) -> UInt64 { chunk * UInt64(PayloadCipher.chunkLength) }

  /// How many plain bytes a chunk has.
  func plainLength(of chunk: UInt64) -> Int {
    chunk == last ? Int(plainSize - plainStart(of: chunk)) : PayloadCipher.chunkLength
  }

  /// Where a chunk starts in the file.
  func sealedStart(of chunk: UInt64) -> UInt64 { start + chunk * UInt64(PayloadCipher.sealedChunkLength) }
}
