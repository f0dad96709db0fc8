import Cryptography
import FileSystem
import Synchronization

/// The hashes of a content's blocks, in order: the first 16 bytes of each block's SHA-256. A database's blocks are its pages.
///
/// From them follows the hash of the whole content (``digest(size:)``): when a few blocks changed, only these need be read.
package struct BlockHashes: Sendable, Equatable {
  /// The blocks of files that are not databases.
  package static let fileBlock = 32 << 10
  /// Bytes of one hash.
  package static let length = 16

  package let blockSize: Int
  private var hashes: [SHA256.Half] = []

  package init(blockSize: Int) { self.blockSize = blockSize }

  package var count: Int { hashes.count }

  package subscript(block: Int) -> SHA256.Half {
    get { hashes[block] }
    set { hashes[block] = newValue }
  }

  package mutating func append(_ hash: SHA256.Half) { hashes.append(hash) }

  /// Cuts it, or fills it up with hashes that no block has, to that many blocks.
  package mutating func resize(to count: Int) throws {
    hashes.removeSubrange(min(count, hashes.count)...)
    let none = try SHA256.hash([]).firstHalf
    while hashes.count < count { hashes.append(none) }
  }

  /// The hash of a content of that size: SHA-256 of the text `drydock blocks`, the block size and the size (8 bytes each,
  /// big-endian), and the hashes.
  package func digest(size: UInt64) throws -> SHA256.Digest {
    let hash = try SHA256()
    Array("drydock blocks".utf8).withUnsafeBytes { hash.update($0) }
    withUnsafeBytes(of: (UInt64(blockSize).bigEndian, size.bigEndian)) { hash.update($0) }
    for start in stride(from: 0, to: count, by: 4096) {
      encoded(start..<min(start + 4096, count)).withUnsafeBytes { hash.update($0) }
    }
    return try hash.finalize()
  }

  /// The blocks that another content does not have at the same place, as ranges of block numbers.
  package func changed(since other: BlockHashes) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    for block in 0..<count where block >= other.count || hashes[block] != other.hashes[block] {
      if let last = runs.last, last.upperBound == block {
        runs[runs.count - 1] = last.lowerBound..<block + 1
      } else {
        runs.append(block..<block + 1)
      }
    }
    return runs
  }

  // MARK: Bytes

  package func encoded(_ blocks: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(blocks.count * Self.length)
    for hash in hashes[blocks] {
      withUnsafeBytes(of: (hash.high.bigEndian, hash.low.bigEndian)) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }

  /// Adds hashes as ``encoded(_:)`` gives them.
  package mutating func append(encoded bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBytes { bytes in
      for offset in stride(from: 0, to: bytes.count - Self.length + 1, by: Self.length) {
        let word = { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset + $0, as: UInt64.self)) }
        hashes.append(SHA256.Half(high: word(0), low: word(8)))
      }
    }
  }
}

/// Hashes the blocks of bytes that arrive in pieces.
package struct BlockHasher {
  package private(set) var blocks: BlockHashes
  private let hash: SHA256
  /// Bytes of the current block that were hashed.
  private var filled = 0
  /// Whether the next piece is a database's header.
  private var isDatabaseStart: Bool

  /// - Parameter isDatabaseStart: whether the first piece begins with a database's header, whose changing fields count as zero
  ///   (``DatabaseFormat/normalize(header:)``).
  package init(blockSize: Int, isDatabaseStart: Bool = false) throws {
    blocks = BlockHashes(blockSize: blockSize)
    hash = try SHA256()
    self.isDatabaseStart = isDatabaseStart
  }

  /// Bytes so far.
  var count: UInt64 { UInt64(blocks.count) * UInt64(blocks.blockSize) + UInt64(filled) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    if isDatabaseStart, !bytes.isEmpty {
      isDatabaseStart = false
      // Normalizes a copy of the header.
      var header = Array(bytes.prefix(DatabaseFormat.headerLength))
      header.withUnsafeMutableBytes { DatabaseFormat.normalize(header: $0) }
      try header.withUnsafeBytes { try update($0) }
      rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(header.count))
    }
    while !rest.isEmpty {
      let whole = filled == 0 ? rest.count / blocks.blockSize * blocks.blockSize : 0
      let count = whole > 0 ? whole : min(blocks.blockSize - filled, rest.count)
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
      if whole > 0 {
        try appendBlocks(of: piece)
        continue
      }
      hash.update(piece)
      filled += piece.count
      if filled == blocks.blockSize { try endBlock() }
    }
  }

  /// Adds the hashes of whole blocks: those of a large piece are computed on all cores.
  private mutating func appendBlocks(of bytes: UnsafeRawBufferPointer) throws {
    let size = blocks.blockSize
    let share = max(Self.share / size, 1) * size
    // Read by the threads that this call waits for.
    nonisolated(unsafe) let bytes = bytes
    let found = Mutex<[Int: [SHA256.Half]]>([:])
    try onAllCores(Array(stride(from: 0, to: bytes.count, by: share))) { start in
      let hash = try SHA256()
      let hashes = try stride(from: start, to: min(start + share, bytes.count), by: size).map { offset in
        hash.update(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + size]))
        return try hash.finalize().firstHalf
      }
      found.withLock { $0[start] = hashes }
    }
    let hashes = found.withLock(\.self)
    for start in hashes.keys.sorted() { hashes[start]?.forEach { blocks.append($0) } }
  }

  /// Bytes that one thread hashes at a time.
  private static let share = 256 << 10

  /// Adds zeros. Whole blocks of them are hashed once.
  package mutating func updateZeros(_ count: UInt64) throws {
    let block = [UInt8](repeating: 0, count: blocks.blockSize)
    var rest = count
    if filled > 0 {
      let piece = min(rest, UInt64(blocks.blockSize - filled))
      try block.withUnsafeBytes { try update(UnsafeRawBufferPointer(rebasing: $0[..<Int(piece)])) }
      rest -= piece
    }
    if rest >= UInt64(blocks.blockSize) {
      let hash = try SHA256.hash(block).firstHalf
      while rest >= UInt64(blocks.blockSize) {
        blocks.append(hash)
        rest -= UInt64(blocks.blockSize)
      }
    }
    try block.withUnsafeBytes { try update(UnsafeRawBufferPointer(rebasing: $0[..<Int(rest)])) }
  }

  /// Ends the last block, which may be shorter.
  package mutating func finish() throws -> BlockHashes {
    if filled > 0 { try endBlock() }
    return blocks
  }

  private mutating func endBlock() throws {
    blocks.append(try hash.finalize().firstHalf)
    filled = 0
  }
}
