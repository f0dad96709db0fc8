import AppStores
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Reads files that may change while they are read.
///
/// A file was not modified if its status is the same before and after. Two cases are not detected this way: a file's
/// time is set when a write begins, not when it ends, and where the kernel's clock ticks slowly, two writes can
/// have the same time. So ``settled(_:_:)`` waits for a write in progress, and ``isFresh(_:)`` says when the times
/// alone are not enough.
final class StableReader {
  /// How often a file that does not hold still is read: a small one costs next to nothing, a large one is in the
  /// archive each time.
  static let smallAttempts = 10, largeAttempts = 3
  /// A file up to this size is read whole before any of it is stored.
  static let smallSize = HashBuffer.size

  #if os(Linux)
    private static let nextHole = FileDescriptor.SeekOrigin(rawValue: 4)
  #else
    private static let nextHole = FileDescriptor.SeekOrigin(rawValue: 3)
  #endif

  let pipeline: HashPipeline
  private let progress: WorkProgress?

  /// - Parameter progress: what ``stream(_:into:)`` stores is added to it.
  init(_ progress: WorkProgress? = nil) throws {
    pipeline = try HashPipeline()
    self.progress = progress
  }

  /// The status of a file without a write in progress; nil when it just changed.
  ///
  /// - Parameter known: the status that it had just now.
  func settled(_ file: FileDescriptor, _ path: String, _ known: FileStatus? = nil) throws -> FileStatus? {
    let before = try known ?? FileStatus(of: file, path: path)
    // Writing a megabyte does not take seconds.
    if before.size <= Self.smallSize && age(before) > 5_000_000_000 { return before }
    // A search for holes takes the lock that a write holds from its beginning to its end. What it finds does not matter.
    _ = try? file.seek(offset: 0, from: Self.nextHole)
    let after = try FileStatus(of: file, path: path)
    return after.isUnwritten(since: before) ? after : nil
  }

  /// Whether a write could have left the file's times as they are, for a clock that ticks every few milliseconds.
  func isFresh(_ status: FileStatus) -> Bool { age(status) < 30_000_000 }

  /// Nanoseconds since anything about the file changed; less than 0 when the clock was set back.
  private func age(_ status: FileStatus) -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) - status.changed
  }

  /// Whether a second reading, after all writes that went on during the first have ended, has the same content.
  func reads(_ digest: SHA256.Digest, _ file: FileDescriptor, size: UInt64, _ path: String) throws -> Bool {
    guard try settled(file, path)?.size == size else { return false }
    return try stream(.file(file, size: size, path: path), into: nil)?.digest == digest
  }

  /// Reads a small file whole, and its digest if that is wanted at once, or costs nothing.
  ///
  /// - Parameters:
  ///   - before: its status.
  ///   - isWhole: whether what it has at first is whole: nobody changes it, or its app can only append to it.
  ///   - wantsDigest: asked once it was read.
  /// - Returns: nil when it changed meanwhile.
  func readSmall(
    _ file: FileDescriptor, _ path: String, _ before: FileStatus, isWhole: Bool, into buffer: HashBuffer,
    wantsDigest: () throws -> Bool
  ) throws -> (bytes: UnsafeRawBufferPointer, digest: SHA256.Digest?)? {
    let room = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<Int(before.size)])
    let isFresh = !isWhole && isFresh(before)
    func fill() throws -> Bool {
      try DrydockError.translating("cannot read", path) { try file.fill(room, at: 0) } == room.count
    }
    guard try fill() && (isWhole || FileStatus(of: file, path: path).isUnwritten(since: before)) else {
      return nil
    }
    let bytes = UnsafeRawBufferPointer(room)
    guard try wantsDigest() || isFresh || bytes.count < HashPipeline.smallest else { return (bytes, nil) }
    let digest = try SHA256.hash(bytes)
    if isFresh {
      guard let now = try settled(file, path), now.isUnwritten(since: before), try fill(),
        try SHA256.hash(bytes) == digest
      else { return nil }
    }
    return (bytes, digest)
  }

  /// A content that is read in pieces.
  enum Content {
    /// That many bytes from the start of a file.
    case file(FileDescriptor, size: UInt64, path: String)
    /// The digest takes the header's changing fields as zero.
    case database(DatabasePages)

    var size: UInt64 {
      switch self {
      case .file(_, let size, _): size
      case .database(let pages): pages.size
      }
    }

    /// Bytes of the blocks by which changes are found; nil for a content that is always stored whole.
    var blockSize: Int? {
      switch self {
      case .file: size > ContentHash.wholeLimit ? BlockHashes.fileBlock : nil
      case .database(let pages): pages.pageSize
      }
    }

    fileprivate var isDatabase: Bool { if case .database = self { true } else { false } }

    /// Whether what was read of a database belongs to one commit.
    fileprivate func isConsistent() throws -> Bool {
      if case .database(let pages) = self { try pages.isUnchanged() } else { true }
    }

    /// Where the hole ends that a place is in: its bytes are zero, and need not be read.
    fileprivate func endOfHole(at offset: UInt64) throws -> UInt64? {
      switch self {
      case .file(let file, let size, let path): try file.endOfHole(at: offset, size: size, path)
      case .database(let pages): try pages.endOfHole(at: offset)
      }
    }

    /// - Parameter data: of a file: see `fillAroundHoles`.
    fileprivate func read(
      at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ data: inout Range<UInt64>
    ) throws -> Int {
      switch self {
      case .file(let file, _, let path):
        do {
          return try file.fillAroundHoles(buffer, at: offset, data: &data, path: path)
        } catch let error as Errno {
          throw DrydockError.system("cannot read", path, error)
        }
      case .database(let pages): return try pages.read(at: offset, into: buffer)
      }
    }
  }

  /// Reads a content and writes it into the current member of an archive, if there is one.
  ///
  /// - Returns: its digest, and the hashes of its blocks if it follows from them; nil when not all bytes were there, or
  ///   those of a database do not belong to one commit.
  func stream(
    _ content: Content, into archive: ArchiveWriter?
  ) throws -> (digest: SHA256.Digest, blocks: BlockHashes?)? {
    pipeline.start(isDatabase: content.isDatabase, size: content.size)
    var (offset, data): (UInt64, Range<UInt64>) = (0, 0..<0)
    while offset < content.size {
      if let end = try content.endOfHole(at: offset), end - offset >= UInt64(HashBuffer.size) {
        try archive?.write(zeros: end - offset)
        pipeline.addZeros(end - offset)
        offset = end
        continue
      }
      let buffer = pipeline.buffer()
      let wanted = Int(min(UInt64(HashBuffer.size), content.size - offset))
      let count: Int
      do {
        count = try content.read(
          at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<wanted]), &data)
        try archive?.write(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
      } catch {
        pipeline.recycle(buffer)
        throw error
      }
      if count == 0 {
        pipeline.recycle(buffer)
        _ = try pipeline.finish()
        return nil
      }
      pipeline.add(buffer, count: count)
      offset += UInt64(count)
      if archive != nil { progress?.add(bytes: UInt64(count)) }
    }
    let read = try pipeline.finish()
    return try content.isConsistent() ? read : nil
  }

  /// Hashes a database of which some pages have changed.
  ///
  /// - Parameters:
  ///   - blocks: the hashes of the pages before.
  ///   - changed: the numbers of the pages that may have changed; all behind the last one of `blocks` have, too.
  /// - Returns: see ``stream(_:into:)``.
  func hash(
    _ content: Content, _ blocks: BlockHashes, changed: [Int]
  ) throws -> (digest: SHA256.Digest, blocks: BlockHashes?)? {
    var blocks = blocks
    let former = blocks.count
    let count = Int((content.size + UInt64(blocks.blockSize) - 1) / UInt64(blocks.blockSize))
    try blocks.resize(to: count)
    var data: Range<UInt64> = 0..<0
    for block in changed.filter({ $0 < min(former, count) }) + Array(min(former, count)..<count) {
      let start = UInt64(block) * UInt64(blocks.blockSize)
      let range = start..<min(start + UInt64(blocks.blockSize), content.size)
      guard let hashes = try hashes(of: content, range, blocks.blockSize, into: nil, &data), hashes.count == 1
      else { return nil }
      blocks[block] = hashes[0]
    }
    return try content.isConsistent() ? (blocks.digest(size: content.size), blocks) : nil
  }

  /// Writes ranges of a content, which consist of whole blocks, into the current member of an archive.
  ///
  /// - Returns: whether their blocks have the hashes that they had before, and belong to one commit.
  func copy(
    _ content: Content, _ ranges: [Range<UInt64>], _ blocks: BlockHashes, into archive: ArchiveWriter
  ) throws -> Bool {
    var data: Range<UInt64> = 0..<0
    for range in ranges {
      guard let found = try hashes(of: content, range, blocks.blockSize, into: archive, &data) else {
        return false
      }
      let first = Int(range.lowerBound / UInt64(blocks.blockSize))
      for block in 0..<found.count where found[block] != blocks[first + block] { return false }
    }
    return try content.isConsistent()
  }

  /// Nil when not all bytes were there.
  private func hashes(
    of content: Content, _ range: Range<UInt64>, _ blockSize: Int, into archive: ArchiveWriter?,
    _ data: inout Range<UInt64>
  ) throws -> BlockHashes? {
    let buffer = pipeline.buffer()
    defer { pipeline.recycle(buffer) }
    var hasher = try BlockHasher(
      blockSize: blockSize, isDatabaseStart: range.lowerBound == 0 && content.isDatabase)
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = Int(min(UInt64(HashBuffer.size), range.upperBound - offset))
      let count = try content.read(
        at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<wanted]), &data)
      if count == 0 { return nil }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])
      try archive?.write(bytes)
      try hasher.update(bytes)
      offset += UInt64(count)
    }
    return try hasher.finish()
  }
}

extension FileStatus {
  /// Whether nothing has been written to a file since it had another status.
  func isUnwritten(since other: FileStatus) -> Bool {
    identity == other.identity && hasTimesAndSize(of: other)
  }

  /// The same of a file that is looked at by its name alone: some file systems number inodes anew.
  func hasTimesAndSize(of other: FileStatus) -> Bool {
    size == other.size && modified == other.modified && changed == other.changed
  }
}
