import Cryptography
import DrydockErrors

/// Reads any range of a binary age file, from any thread, by decrypting only the chunks that hold it.
///
/// The last chunk is authenticated first, which proves that the file was not truncated. Damage in another chunk is
/// found when that one is read.
package final class AgeReader: Sendable {
  /// Fills a buffer with the file's bytes at an offset.
  package typealias Source =
    @Sendable (_ into: UnsafeMutableRawBufferPointer, _ offset: UInt64) throws -> Void

  /// How the file is encrypted.
  package let header: AgeHeader
  private let layout: PayloadLayout
  private let cipher: PayloadCipher
  private let source: Source

  /// The most chunks that one call of the source fetches.
  private let batch: UInt64

  /// Opens a file of `size` bytes: reads the header, unwraps the file key and authenticates the last chunk.
  ///
  /// - Parameter batch: the most chunks of 64 KiB that one call of the source fetches. One stays in the cache of its core, and
  ///   the next one gets its memory; where a call takes long, several are better.
  package convenience init(
    size: UInt64, keys: AgeKeys, batch: UInt64 = 1, source: @escaping Source
  ) throws {
    let header = try AgeHeader.read(size: size, source)
    let fileKey = try header.fileKey(with: keys)
    var nonce = [UInt8](repeating: 0, count: PayloadCipher.nonceLength)
    let nonceEnd = UInt64(header.byteCount + nonce.count)
    guard size >= nonceEnd else { throw DrydockError.header("the file ends before the payload's nonce") }
    try nonce.withUnsafeMutableBytes { try source($0, UInt64(header.byteCount)) }
    try self.init(
      header, PayloadCipher(fileKey: fileKey, nonce: nonce),
      PayloadLayout(fileSize: size, start: nonceEnd), batch, source)
  }

  /// Opens a file that this process has written, to verify it without a key. Its start must be, byte for byte, the one it
  /// was written with.
  package convenience init(size: UInt64, writtenWith start: AgeFileStart, source: @escaping Source) throws {
    var bytes = [UInt8](repeating: 0, count: Int(min(size, UInt64(start.bytes.count))))
    try bytes.withUnsafeMutableBytes { try source($0, 0) }
    guard bytes == start.bytes else { throw DrydockError.header("it is not the one that was written") }
    try self.init(
      AgeHeader.read(size: size, source), start.cipher,
      PayloadLayout(fileSize: size, start: UInt64(bytes.count)), 1, source)
  }

  private init(
    _ header: AgeHeader, _ cipher: PayloadCipher, _ layout: PayloadLayout, _ batch: UInt64,
    _ source: @escaping Source
  ) throws {
    (self.header, self.cipher, self.layout) = (header, cipher, layout)
    (self.batch, self.source) = (batch, source)
    try LibCrypto.withScratch(PayloadCipher.chunkLength) { [layout] plain in
      let length = layout.plainLength(of: layout.last)
      try openChunks(layout.last...layout.last) { _, open in
        try open(UnsafeMutableRawBufferPointer(rebasing: plain[..<length]))
      }
    }
  }

  /// See ``PayloadCipher/codeKey``.
  package var codeKey: SecretBytes { cipher.codeKey }

  /// The length of the content in bytes.
  package var plainSize: UInt64 { layout.plainSize }

  /// Fills the buffer with the content at an offset.
  ///
  /// - Throws: `DrydockError` (`.payload` for damage, `.badKey` for a range outside the content), or what the
  ///   source throws. The buffer's content is then undefined.
  package func read(into target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    let length = UInt64(target.count)
    guard offset <= plainSize, length <= plainSize - offset else {
      throw DrydockError(
        .badKey,
        "\(length) bytes at \(offset) are outside the \(plainSize) bytes of the encrypted content")
    }
    guard length > 0 else { return }
    var first = layout.chunk(at: offset)
    let end = layout.chunk(at: offset + length - 1)
    while first <= end {
      let last = min(end, first + batch - 1)
      try openChunks(first...last) { chunk, open in
        try place(chunk, of: offset..<(offset + length), into: target, open)
      }
      first = last + 1
    }
  }

  /// Opens a chunk directly into the target where all of it is wanted, else through scratch memory.
  private func place(
    _ chunk: UInt64, of range: Range<UInt64>, into target: UnsafeMutableRawBufferPointer,
    _ open: (UnsafeMutableRawBufferPointer) throws -> Void
  ) throws {
    let start = layout.plainStart(of: chunk)
    let end = start + UInt64(layout.plainLength(of: chunk))
    let wanted = max(start, range.lowerBound)..<min(end, range.upperBound)
    let part = UnsafeMutableRawBufferPointer(
      rebasing: target[Int(wanted.lowerBound - range.lowerBound)..<Int(wanted.upperBound - range.lowerBound)])
    if wanted == start..<end { return try open(part) }
    try LibCrypto.withScratch(Int(end - start)) { plain in
      try open(plain)
      let source = plain[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)]
      part.copyMemory(from: UnsafeRawBufferPointer(rebasing: source))
    }
  }

  /// Fetches chunks in one read and passes each to `body` with a function that opens it.
  private func openChunks(
    _ chunks: ClosedRange<UInt64>,
    _ body: (UInt64, _ open: (UnsafeMutableRawBufferPointer) throws -> Void) throws -> Void
  ) throws {
    let start = layout.sealedStart(of: chunks.lowerBound)
    let lastLength = layout.plainLength(of: chunks.upperBound) + PayloadCipher.overhead
    let length = Int(layout.sealedStart(of: chunks.upperBound) - start) + lastLength
    let sealed = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
    defer { sealed.deallocate() }
    try source(sealed, start)
    for chunk in chunks {
      let from = Int(layout.sealedStart(of: chunk) - start)
      let count = layout.plainLength(of: chunk) + PayloadCipher.overhead
      let bytes = UnsafeRawBufferPointer(rebasing: sealed[from..<(from + count)])
      try body(chunk) { try cipher.open(bytes, number: chunk, isLast: chunk == layout.last, into: $0) }
    }
  }
}
