import DrydockErrors

/// Decrypts an age file, binary or armored, as it comes: from a pipe, or from a file that is read once.
///
/// What was given out is authentic, but damage further on shows only later, and a cut only at the end: nothing is to
/// be believed complete before `read` has returned 0.
package final class AgeStream {
  /// Fills the start of a buffer with what comes next and says how much; 0 is the end.
  package typealias Source = (UnsafeMutableRawBufferPointer) throws -> Int

  /// How the file is encrypted.
  package let header: AgeHeader
  private let source: BufferedSource
  private let cipher: PayloadCipher
  private let plain: UnsafeMutableRawBufferPointer
  /// What of the opened chunk was not given out yet.
  private var rest: Range<Int> = 0..<0
  private var number: UInt64 = 0
  private var isAtEnd = false
  private var failure: (any Error)?

  /// Reads the header and unwraps the file key.
  ///
  /// - Throws: `DrydockError`, or what `source` throws.
  package init(keys: AgeKeys, source: @escaping Source) throws {
    var input = BufferedSource(source)
    if try ArmorReader.isPresent(input) { input = BufferedSource(ArmorReader(input).read) }
    header = try Self.header(input)
    let fileKey = try header.fileKey(with: keys)
    let nonce = try input.next(PayloadCipher.nonceLength).prefix(PayloadCipher.nonceLength)
    guard nonce.count == PayloadCipher.nonceLength else {
      throw DrydockError.header("the file ends before the payload's nonce")
    }
    cipher = try PayloadCipher(fileKey: fileKey, nonce: Array(nonce))
    input.skip(nonce.count)
    self.source = input
    plain = .allocate(byteCount: PayloadCipher.chunkLength, alignment: 16)
  }

  deinit {
    LibCrypto.wipe(plain)
    plain.deallocate()
  }

  /// Fills the start of the buffer with content that comes next and says how much; 0 is the end, and then the file
  /// was complete. After an error every further call throws the same one.
  ///
  /// - Throws: `DrydockError` (`.payload`, `.armor`), or what the source throws.
  package func read(into target: UnsafeMutableRawBufferPointer) throws -> Int {
    if let failure { throw failure }
    guard target.count > 0 else { return 0 }
    do {
      if rest.isEmpty {
        guard !isAtEnd else { return 0 }
        // A whole chunk goes straight to where it is wanted.
        if target.count >= plain.count { return try openNext(into: target) }
        rest = 0..<(try openNext(into: plain))
      }
    } catch {
      failure = error
      throw error
    }
    let part = rest.prefix(target.count)
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: plain[part]))
    rest = part.upperBound..<rest.upperBound
    return part.count
  }

  /// Opens a chunk into the start of a buffer of 64 KiB or more. It is the last one if nothing comes behind it.
  private func openNext(into target: UnsafeMutableRawBufferPointer) throws -> Int {
    let sealed = try source.next(PayloadCipher.sealedChunkLength + 1)
    isAtEnd = sealed.count <= PayloadCipher.sealedChunkLength
    let chunk = UnsafeRawBufferPointer(rebasing: sealed.prefix(PayloadCipher.sealedChunkLength))
    let count = chunk.count - PayloadCipher.overhead
    guard !chunk.isEmpty else { throw DrydockError.payload("it has no chunk, so it was cut short") }
    guard count >= 0 else { throw DrydockError.payload("its last chunk is shorter than a tag") }
    guard count > 0 || number == 0 else { throw DrydockError.payload("its last chunk is empty") }
    try cipher.open(
      chunk, number: number, isLast: isAtEnd, into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]))
    source.skip(chunk.count)
    number += 1
    return count
  }

  private static func header(_ source: BufferedSource) throws -> AgeHeader {
    var count = 4096
    while true {
      let bytes = try source.next(count)
      if let header = try HeaderParser.parse(bytes, isWhole: bytes.count < count) {
        source.skip(header.byteCount)
        return header
      }
      count = min(2 * count, AgeHeader.maximumLength)
    }
  }
}
