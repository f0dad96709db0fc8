import Cryptography
import DrydockErrors

/// Writes an age file as a stream.
package final class AgeWriter {
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  /// The start of the file and the cipher of its payload, with which it can be read back.
  package let start: AgeFileStart
  /// The current chunk. It is sealed when another byte arrives: until then it may be the last one, which is marked.
  private let plain: UnsafeMutableRawBufferPointer
  /// Several sealed chunks for one call of the sink, which may be a system call.
  private let sealed: UnsafeMutableRawBufferPointer
  private var sealedCount = 0
  private var count = 0
  private var number: UInt64 = 0
  /// The last chunk was written, or a chunk was lost to an error: more would make a file with a hole.
  private var isEnded = false

  private static let batch = 4

  /// Starts a file: the header goes to the sink at once.
  ///
  /// - Throws: `DrydockError`, or what `sink` throws.
  package init(to target: AgeTarget, sink: @escaping (UnsafeRawBufferPointer) throws -> Void) throws {
    start = try AgeFileStart(to: target)
    self.sink = sink
    plain = .allocate(byteCount: PayloadCipher.chunkLength, alignment: 16)
    sealed = .allocate(byteCount: Self.batch * PayloadCipher.sealedChunkLength, alignment: 16)
    try start.bytes.withUnsafeBytes { try sink($0) }
  }

  deinit {
    LibCrypto.wipe(plain)
    plain.deallocate()
    sealed.deallocate()
  }

  /// Adds content. After an error the file is useless.
  ///
  /// - Throws: `DrydockError`, or what the sink throws.
  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    guard !isEnded else {
      throw DrydockError(
        .badKey, "write to an age file after its end or after an error; start a new one")
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      if count == plain.count { try flush(UnsafeRawBufferPointer(plain), isLast: false) }
      if count == 0, rest.count > plain.count {
        try flush(UnsafeRawBufferPointer(rebasing: rest.prefix(plain.count)), isLast: false)
        rest = rest.dropFirst(plain.count)
      } else {
        let part = UnsafeRawBufferPointer(rebasing: rest.prefix(plain.count - count))
        UnsafeMutableRawBufferPointer(rebasing: plain[count...]).copyMemory(from: part)
        count += part.count
        rest = rest.dropFirst(part.count)
      }
    }
  }

  /// Ends the file: the last chunk goes to the sink.
  ///
  /// - Throws: `DrydockError`, or what the sink throws.
  package func finish() throws {
    guard !isEnded else {
      throw DrydockError(.badKey, "an age file was ended twice or after an error; start a new one")
    }
    try flush(UnsafeRawBufferPointer(rebasing: plain[..<count]), isLast: true)
  }

  private func flush(_ chunk: UnsafeRawBufferPointer, isLast: Bool) throws {
    isEnded = true
    let end = sealedCount + chunk.count + PayloadCipher.overhead
    let result = UnsafeMutableRawBufferPointer(rebasing: sealed[sealedCount..<end])
    try start.cipher.seal(chunk, number: number, isLast: isLast, into: result)
    number += 1
    count = 0
    sealedCount = end
    if isLast || end == sealed.count {
      sealedCount = 0
      try sink(UnsafeRawBufferPointer(rebasing: sealed[..<end]))
    }
    isEnded = isLast
  }
}
