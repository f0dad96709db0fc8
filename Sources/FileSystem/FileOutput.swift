import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Writes a file in large blocks, past the page cache where the file system allows it, and with holes where that is wanted.
///
/// To find memory in the page cache for a large file can take longer than everything else that is done with its bytes, and it
/// displaces what other programs have there.
package final class FileOutput {
  private static let blockSize = 4 << 20
  /// Through the page cache: given 4 MiB at once, Linux takes five times as long to find the memory for them.
  private static let pieceSize = 256 << 10
  /// Of places, lengths and memory, as disks want it.
  private static let alignment = 4096
  /// A smaller file is better written together with others.
  private static let smallestDirect = 64 << 10
  private static let patience = Duration.milliseconds(20)
  /// Fewer zeros are written: holes of single blocks would only scatter the file.
  private static let smallestHole = 32 << 10

  /// When files go past the page cache.
  package enum PastCache {
    /// In any case, so that the cache keeps what other programs read.
    case always
    /// A disk that answers late, such as one on a network, takes less time when it gets many files at once.
    case whileFast
    /// The file is read soon, or the cache has room for it: then it takes less time.
    case never
  }

  /// The memory of a block, for one file after another.
  ///
  /// Unchecked because the compiler cannot see that one thread at a time uses it.
  package final class Block: @unchecked Sendable {
    fileprivate let memory = UnsafeMutableRawBufferPointer.allocate(
      byteCount: blockSize, alignment: alignment)
    /// How much longer than through the page cache the disk may still take; nil without a limit.
    fileprivate var patience: Duration?

    package init(_ past: PastCache = .never) {
      patience =
        switch past {
        case .always: nil
        case .whileFast: FileOutput.patience
        case .never: .zero
        }
    }

    deinit { memory.deallocate() }
  }

  /// Takes the number of bytes that are in the file and will not change; called after each block, and at the end.
  package typealias Written = @Sendable (UInt64) throws -> Void

  private let file: FileDescriptor
  private let block: Block
  private let written: Written?
  private let start: Int64
  /// Where the last byte will be, as far as it is known.
  private let expectedEnd: Int64
  /// Where the block goes.
  private var offset: Int64
  private var filled = 0
  /// Zeros behind the block.
  private var zeros = 0
  /// Where the file ends.
  private var fileEnd: Int64
  private var mayBeDirect: Bool
  private var isDirect = false
  /// Bytes that went through the page cache.
  private var cached: UInt64 = 0

  /// - Parameters:
  ///   - file: its position is neither used nor moved.
  ///   - start: where the first byte goes.
  ///   - size: the bytes that are expected: with holes, the file gets its length in time.
  ///   - written: for a reader that follows, for which the file stays in the page cache.
  package init(
    _ file: FileDescriptor, _ block: Block = Block(), at start: Int64 = 0, size: UInt64 = 0,
    written: Written? = nil
  ) {
    (self.file, self.block, self.written) = (file, block, written)
    (self.start, offset, fileEnd) = (start, start, start)
    expectedEnd = start + Int64(clamping: min(size, UInt64(Int64.max - start)))
    mayBeDirect = written == nil && block.patience != .zero
  }

  /// The bytes that were added, written or not.
  package var size: UInt64 { UInt64(offset - start) + UInt64(filled + zeros) }

  /// Throws `Errno`.
  package func append(_ bytes: UnsafeRawBufferPointer) throws {
    if bytes.isEmpty { return }
    try endZeros()
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(block.memory.count - filled))
      UnsafeMutableRawBufferPointer(rebasing: block.memory[filled...]).copyMemory(from: part)
      filled += part.count
      rest = rest.dropFirst(part.count)
      if filled == block.memory.count { try writeBlock() }
    }
  }

  /// The same for a new file in which zeros become holes: a disk image or a preallocated file takes no more room than it did.
  package func appendWithHoles(_ bytes: UnsafeRawBufferPointer) throws {
    var (added, place) = (0, 0)
    while place < bytes.count {
      let rest = Self.alignment - Int(size + UInt64(place - added)) % Self.alignment
      let end = min(place + rest, bytes.count)
      // Also a part of a block, when it continues zeros.
      if end - place == Self.alignment || zeros > 0 && added == place, Self.isZero(bytes[place..<end]) {
        try append(UnsafeRawBufferPointer(rebasing: bytes[added..<place]))
        zeros += end - place
        added = end
      }
      place = end
    }
    try append(UnsafeRawBufferPointer(rebasing: bytes[added...]))
  }

  private static func isZero(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    // Every byte equals the next one, and the first is zero; most blocks differ in their first bytes.
    guard bytes.first == 0, let start = UnsafeRawBufferPointer(rebasing: bytes).baseAddress else {
      return false
    }
    return memcmp(start, start + 1, bytes.count - 1) == 0
  }

  /// Makes a hole of the zeros, or puts them into the block.
  private func endZeros() throws {
    if zeros >= Self.smallestHole {
      // Scattered pages are better written together.
      if filled > 0, filled < Self.smallestDirect { endDirect() }
      try writeBlock()
      try extend()
      offset += Int64(zeros)
      zeros = 0
    }
    while zeros > 0 {
      let count = min(zeros, block.memory.count - filled)
      clear(count)
      filled += count
      zeros -= count
      if filled == block.memory.count { try writeBlock() }
    }
  }

  /// Gives the file its length before its first hole: behind a file that grows, XFS allocates room that is to be written
  /// next, and holes that are left there would take it.
  private func extend() throws {
    guard fileEnd < expectedEnd else { return }
    // Releases what was allocated already. For a small file, and past the page cache, nothing is.
    if !isDirect, offset - start > Self.smallestDirect { try file.resize(to: offset) }
    try file.resize(to: expectedEnd)
    fileEnd = expectedEnd
  }

  /// Puts zeros behind what is in the block.
  private func clear(_ count: Int) {
    UnsafeMutableRawBufferPointer(rebasing: block.memory[filled..<(filled + count)])
      .initializeMemory(as: UInt8.self, repeating: 0)
  }

  /// Writes what is left. Throws `Errno`.
  ///
  /// - Returns: the bytes that went through the page cache: nothing may have begun to write them to the disk.
  @discardableResult
  package func finish() throws -> UInt64 {
    try endZeros()
    if size < Self.smallestDirect { mayBeDirect = false }
    try writeBlock()
    if fileEnd != offset { try file.resize(to: offset) }
    fileEnd = offset
    endDirect()
    try written?(size)
    return cached
  }

  private func writeBlock() throws {
    if filled == 0 { return }
    if mayBeDirect, !isDirect {
      isDirect =
        block.patience != .zero && offset % Int64(Self.alignment) == 0 && file.bypassCache(true)
      mayBeDirect = isDirect
    }
    var rest = block.memory[..<filled]
    while !rest.isEmpty {
      // What is behind the disk's last whole block. Written past the page cache with padding, it would have to be cut off: the
      // kernel reads that block again for it.
      if isDirect, rest.count < Self.alignment { endDirect() }
      let count = isDirect ? rest.count & ~(Self.alignment - 1) : min(rest.count, Self.pieceSize)
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
      do {
        let count = try isDirect ? writeDirect(piece) : file.write(toAbsoluteOffset: offset, piece)
        if !isDirect { cached += UInt64(count) }
        offset += Int64(count)
        rest = rest.dropFirst(count)
      } catch let error as Errno where isDirect && error != .ioError {
        // The file system wants another alignment or none of it at all. What is not due to that fails again.
        endDirect()
      }
    }
    filled = 0
    fileEnd = max(fileEnd, offset)
    try written?(size)
  }

  private func writeDirect(_ piece: UnsafeRawBufferPointer) throws -> Int {
    guard let patience = block.patience else { return try file.write(toAbsoluteOffset: offset, piece) }
    let clock = ContinuousClock()
    let begin = clock.now
    let count = try file.write(toAbsoluteOffset: offset, piece)
    // Through the page cache it takes about that: 500 MB/s.
    let usual = Duration.microseconds(300) + .nanoseconds(2 * count)
    let late = begin.duration(to: clock.now) - usual
    // One late answer may be that of busy cores; of a late disk each one is.
    block.patience = late <= .zero ? Self.patience : max(.zero, patience - late)
    return count
  }

  private func endDirect() {
    if isDirect { _ = file.bypassCache(false) }
    (isDirect, mayBeDirect) = (false, false)
  }
}
