import DrydockErrors
import FileSystem
import SystemPackage

/// The content of a database after the last commit, read from the original files: pages of the log take precedence over those
/// of the main file. The locks are held as long as this object lives.
package final class DatabasePages {
  package let size: UInt64
  /// Nil for an empty database.
  package let pageSize: Int?
  let usesLog: Bool

  private let lock: DatabaseLock
  private let log: OpenLog?
  private let path: String
  private let before: FileStatus
  /// Of the main file: see `fillAroundHoles`.
  private var data: Range<UInt64> = 0..<0

  private typealias OpenLog = (file: LockedFile, content: WriteAheadLog)

  /// - Parameters:
  ///   - lock: held on the main file, at least for reading. Without a pin it allows changes of the main file and restarts
  ///     of the log, which ``isUnchanged()`` detects.
  ///   - logFile: the log, opened under the lock.
  /// - Returns: nil when only SQLite can interpret the two files.
  /// - Throws: ``DrydockError``: `malformed` when SQLite cannot read it, `io`.
  init?(_ lock: DatabaseLock, log logFile: LockedFile?, path: String) throws {
    (self.lock, self.path) = (lock, path)
    let pin = lock.pin
    // Before anything is read, to detect changes.
    before = try FileStatus(of: lock.file, path: path)
    var log: OpenLog?
    guard logFile != nil || (pin?.frameCount ?? 0) == 0 else {
      throw DrydockError.unreadable("its log is missing")
    }
    if let logFile, pin?.frameCount != 0 {
      let content = try WriteAheadLog(
        logFile.descriptor, limit: pin?.frameCount, mainSize: before.size, path: path)
      if let pin, content?.frameCount != pin.frameCount || content?.salts.elementsEqual(pin.salts) != true {
        throw DrydockError.unreadable("its log is corrupt")
      }
      if let content, content.pageCount > 0 { log = (logFile, content) }
    }
    self.log = log
    guard let log else {
      (size, pageSize, usesLog) = try Self.extent(of: lock.file, size: before.size, path)
      return
    }
    let first = log.content.next(from: 1).flatMap { $0.page == 1 ? $0.offset : nil }
    let start = try first.map { try Self.start(of: log.file.descriptor, at: $0, path) }
    let header = try DatabaseFormat(start ?? Self.start(of: lock.file, at: 0, path), fileSize: nil)
    // As SQLite: what the main file has behind the pages of its header is in the log's number, and not in the database.
    let logged = UInt64(log.content.pageCount)
    size = (header.pageCount > 0 ? min(header.pageCount, logged) : logged) * UInt64(header.pageSize)
    pageSize = header.pageSize
    usesLog = header.usesLog
    // SQLite ignores a log beside an empty file.
    guard before.size > 0, usesLog, header.pageSize == log.content.pageSize else { return nil }
  }

  /// The pages of a main file without a log.
  private init(_ lock: DatabaseLock, path: String) throws {
    (self.lock, self.log, self.path) = (lock, nil, path)
    before = try FileStatus(of: lock.file, path: path)
    (size, pageSize, usesLog) = try Self.extent(of: lock.file, size: before.size, path)
  }

  private static func extent(
    of file: FileDescriptor, size: UInt64, _ path: String
  ) throws -> (size: UInt64, pageSize: Int?, usesLog: Bool) {
    if size == 0 { return (0, nil, false) }
    let header = try DatabaseFormat(start(of: file, at: 0, path), fileSize: size)
    return (header.pageCount * UInt64(header.pageSize), header.pageSize, header.usesLog)
  }

  private static func start(of file: FileDescriptor, at offset: UInt64, _ path: String) throws -> [UInt8] {
    var start = [UInt8](repeating: 0, count: DatabaseFormat.startLength)
    let count = try start.withUnsafeMutableBytes { try read(file, at: offset, into: $0, path) }
    return Array(start[..<count])
  }

  /// Reads from an offset until the buffer is full or the content ends.
  ///
  /// - Returns: the number of bytes read; fewer when a file was truncated meanwhile.
  package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = offset < size ? Int(min(UInt64(buffer.count), size - offset)) : 0
    var filled = 0
    while filled < count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<count])
      let read = try readPiece(at: offset + UInt64(filled), into: rest)
      if read == 0 { break }
      filled += read
    }
    return filled
  }

  private func readPiece(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    guard let log else { return try readMain(at: offset, into: buffer) }
    let pageSize = UInt64(log.content.pageSize)
    let page = UInt32(offset / pageSize) + 1
    let next = log.content.next(from: page)
    if let next, next.page == page {
      let within = offset % pageSize
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(pageSize - within)))
      return try Self.read(log.file.descriptor, at: next.offset + within, into: piece, path)
    }
    let end = next.map { UInt64($0.page - 1) * pageSize } ?? .max
    let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: end - offset)))
    let count = try readMain(at: offset, into: piece)
    guard count == 0 else { return count }
    // A page that was never written, such as a free one at the end: a checkpoint fills it with zeros.
    piece.initializeMemory(as: UInt8.self, repeating: 0)
    return piece.count
  }

  private func readMain(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    guard before.isSparse else { return try Self.read(lock.file, at: offset, into: buffer, path) }
    return try DrydockError.translating("cannot read", path) {
      try lock.file.fillAroundHoles(buffer, at: offset, data: &data, path: path)
    }
  }

  /// Where the hole of the main file ends that a place is in; nil when it is in none, or the log has its page.
  package func endOfHole(at offset: UInt64) throws -> UInt64? {
    guard before.isSparse, let pageSize, offset < before.size,
      let end = try lock.file.endOfHole(at: offset, size: min(size, before.size), path)
    else { return nil }
    guard let log, let next = log.content.next(from: UInt32(offset / UInt64(pageSize)) + 1) else {
      return end
    }
    let logged = UInt64(next.page - 1) * UInt64(pageSize)
    return logged > offset ? min(end, logged) : nil
  }

  /// The number of bytes behind the last page of a main file without a log, unless all are zero: SQLite does not use them, and
  /// they are not part of the content.
  package func bytesBehind() throws -> UInt64 {
    guard log == nil, before.size > size else { return 0 }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var offset = size
    while offset < before.size {
      if before.isSparse, let end = try lock.file.endOfHole(at: offset, size: before.size, path) {
        offset = end
        continue
      }
      let count = try buffer.withUnsafeMutableBytes { try Self.read(lock.file, at: offset, into: $0, path) }
      if count == 0 { break }
      if buffer[..<count].contains(where: { $0 != 0 }) { return before.size - size }
      offset += UInt64(count)
    }
    return 0
  }

  // MARK: What a log added

  /// Identifies the committed frames of the log, so that a later capture knows whether its log begins with them.
  package func logPosition() throws -> LogPosition? {
    guard usesLog else { return nil }
    guard let log else { return LogPosition(salts: [], frameCount: 0, checksum: []) }
    return try position(of: log, after: log.content.frameCount)
  }

  /// The pages that the log got since a capture, as numbers from 0; nil when the log does not begin with what it had then.
  /// If the main file is the same as then, no other page has changed.
  package func pages(since position: LogPosition) throws -> [Int]? {
    guard usesLog else { return nil }
    guard let log else { return position.frameCount == 0 ? [] : nil }
    guard position.frameCount <= log.content.frameCount else { return nil }
    if position.frameCount > 0, try self.position(of: log, after: position.frameCount) != position {
      return nil
    }
    return log.content.pages(fromFrame: position.frameCount).map { $0 - 1 }
  }

  /// The checksum of a frame covers all frames before it.
  private func position(of log: OpenLog, after count: Int) throws -> LogPosition {
    var sum = [UInt8](repeating: 0, count: 8)
    let offset = log.content.offset(ofFrame: count - 1) + 16
    _ = try sum.withUnsafeMutableBytes { try Self.read(log.file.descriptor, at: offset, into: $0, path) }
    return LogPosition(salts: Array(log.content.salts), frameCount: count, checksum: sum)
  }

  /// Whether everything read so far belongs to one commit. Call it after the last read; if false, capture again.
  package func isUnchanged() throws -> Bool {
    if let log {
      var header = [UInt8](repeating: 0, count: WriteAheadLog.headerLength)
      let count = try header.withUnsafeMutableBytes {
        try Self.read(log.file.descriptor, at: 0, into: $0, path)
      }
      guard count == header.count, header == log.content.header else { return false }
    }
    if lock.pin != nil { return true }
    let after = try FileStatus(of: lock.file, path: path)
    return (after.size, after.modified, after.changed) == (before.size, before.modified, before.changed)
  }

  /// Writes the content to an empty file.
  ///
  /// - Returns: whether it is consistent.
  package func copy(to target: FileDescriptor, path targetPath: String) throws -> Bool {
    do {
      // A main file alone is cloned, or copied inside the kernel.
      if log == nil {
        try lock.file.copyContents(to: target, path: targetPath)
        try target.resize(to: Int64(size))
        return try isUnchanged()
      }
      let output = FileOutput(target, size: size)
      let end = try readInPieces(0..<size, read: { try read(at: $0, into: $1) }) {
        try output.appendWithHoles($0)
      }
      try output.finish()
      return try end == size && isUnchanged()
    } catch let error as Errno {
      throw DrydockError.system("cannot write", targetPath, error)
    }
  }

  fileprivate static func read(
    _ file: FileDescriptor, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ path: String
  ) throws -> Int {
    try DrydockError.translating("cannot read", path) { try file.fill(buffer, at: offset) }
  }
}

extension DatabasePages {
  /// The pages of a private copy that no process has open. Throws ``DrydockError`` (`malformed`) when it is not a database.
  package convenience init(ofCopy name: ContainerPath, in scratch: Directory) throws {
    let file = LockedFile(try scratch.open(name, .readOnly))
    let path = scratch.full(name)
    do { try self.init(DatabaseLock(file), path: path) } catch let error as DrydockError {
      throw error.at(path)
    }
  }
}

/// The committed frames of a database's log at a moment.
package struct LogPosition: Sendable, Equatable {
  let salts: [UInt8], frameCount: Int, checksum: [UInt8]

  /// The number of frames (8 bytes, big-endian), then the log's salts and the last frame's checksum (8 bytes each) if there
  /// is one.
  package var bytes: [UInt8] {
    withUnsafeBytes(of: UInt64(frameCount).bigEndian) { Array($0) } + salts + checksum
  }
}

extension LogPosition {
  /// Nil for other bytes.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 8 || bytes.count == 24 else { return nil }
    let count = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard count < 1 << 32, (count == 0) == (bytes.count == 8) else { return nil }
    self.init(
      salts: Array(bytes[8...].prefix(8)), frameCount: Int(count), checksum: Array(bytes[8...].dropFirst(8)))
  }
}

/// The committed frames of a write-ahead log: the places of the database's pages in it.
///
/// Header of 32 bytes, then frames of 24 bytes and a page (<https://www.sqlite.org/fileformat2.html#walformat>), all
/// numbers big-endian. A frame is valid when it has the header's salts, its checksum continues that of the previous
/// frame, and a commit follows (<https://www.sqlite.org/fileformat2.html#wal_file_checksum_algorithm>). The salts are not
/// enough: a restarted log overwrites the frames of its previous use.
struct WriteAheadLog {
  static let headerLength = 32, frameHeaderLength = 24

  /// The header's bytes, which change when the log is restarted.
  let header: [UInt8]
  /// Repeated in every frame.
  var salts: ArraySlice<UInt8> { header[16..<24] }
  let pageSize: Int
  /// The number of pages after the last commit; 0 without a commit.
  private(set) var pageCount: UInt32 = 0
  /// The number of frames up to the last commit.
  private(set) var frameCount = 0
  /// Page number and frame index packed into one number, sorted, with the last frame of each page only.
  private var places: [UInt64] = []
  /// Of the header and the frames so far, and the byte order in which they are summed.
  private var sums: (UInt32, UInt32) = (0, 0)
  private let isBigEndian: Bool

  /// Reads a log, up to its present end: what follows belongs to later transactions.
  ///
  /// - Parameters:
  ///   - limit: the frames to read.
  ///   - mainSize: the bytes of the main file.
  ///   - path: for messages.
  /// - Returns: nil for an invalid header; SQLite then ignores the log.
  /// - Throws: ``DrydockError``: `malformed` for a version that is not known, and for more pages than the two files can
  ///   have, `io`.
  init?(_ file: FileDescriptor, limit: Int? = nil, mainSize: UInt64, path: String) throws {
    let size = try FileStatus(of: file, path: path).size
    let read = { try DatabasePages.read(file, at: $0, into: $1, path) }
    var header = [UInt8](repeating: 0, count: Self.headerLength)
    guard try size >= 32 && header.withUnsafeMutableBytes({ try read(0, $0) }) == Self.headerLength else {
      return nil
    }
    let fields = header.withUnsafeBytes { bytes in (0..<8).map { bytes.bigEndian(at: $0 * 4) } }
    guard fields[0] & ~1 == 0x377f_0682, let pageSize = DatabaseFormat.pageSize(Int(fields[2])) else {
      return nil
    }
    self.header = header
    self.pageSize = pageSize
    isBigEndian = fields[0] & 1 == 1
    header.withUnsafeBytes { sum($0[..<24]) }
    guard sums == (fields[6], fields[7]) else { return nil }
    guard fields[1] == 3_007_000 else {
      throw DrydockError.unreadable("its log has the unknown version \(fields[1])")
    }
    try readFrames(size: size, limit, salts: (fields[4], fields[5]), read)
    // SQLite writes each new page into the log, but for the one that its locks are in: a log that claims more, whatever the
    // numbers of its pages are, would make a file of terabytes.
    let most = mainSize / UInt64(pageSize) + UInt64(places.count) + 1
    guard pageCount <= most else {
      throw DrydockError.unreadable(
        "its log says that it has \(pageCount) pages, and the files have at most \(most)")
    }
  }

  private mutating func readFrames(
    size: UInt64, _ limit: Int?, salts: (UInt32, UInt32),
    _ read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int
  ) throws {
    let frameSize = Self.frameHeaderLength + pageSize
    let atOnce = max(1, (1 << 20) / frameSize)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: atOnce * frameSize, alignment: 4096)
    defer { buffer.deallocate() }
    var index = 0
    let count = (size - 32) / UInt64(frameSize)
    guard count < 1 << 32 else { throw DrydockError.unreadable("its log is too large") }
    let last = min(Int(count), limit ?? .max)
    reading: while index < last {
      let wanted = min(atOnce, last - index)
      let filled = try read(
        offset(ofFrame: index), UnsafeMutableRawBufferPointer(rebasing: buffer[..<(wanted * frameSize)]))
      guard filled >= frameSize else { break }
      for position in 0..<(filled / frameSize) {
        let frame = UnsafeRawBufferPointer(
          rebasing: buffer[(position * frameSize)..<((position + 1) * frameSize)])
        let page = frame.bigEndian(at: 0)
        guard page != 0, frame.bigEndian(at: 8) == salts.0, frame.bigEndian(at: 12) == salts.1 else {
          break reading
        }
        sum(frame[..<8])
        sum(frame[24...])
        guard sums == (frame.bigEndian(at: 16), frame.bigEndian(at: 20)) else { break reading }
        places.append(UInt64(page) << 32 | UInt64(index))
        index += 1
        let pages = frame.bigEndian(at: 4)
        if pages != 0 { (pageCount, frameCount) = (pages, index) }
      }
    }
    keepLast()
  }

  /// Sorts, and removes frames that are not committed or superseded.
  private mutating func keepLast() {
    places.removeSubrange(frameCount...)
    places.sort()
    var kept = 0
    for index in places.indices {
      if index + 1 < places.count, places[index] >> 32 == places[index + 1] >> 32 { continue }
      places[kept] = places[index]
      kept += 1
    }
    places.removeSubrange(kept...)
  }

  func offset(ofFrame index: Int) -> UInt64 {
    UInt64(Self.headerLength) + UInt64(index) * UInt64(Self.frameHeaderLength + pageSize)
  }

  /// The numbers of the pages whose last frame is that one or a later one.
  func pages(fromFrame index: Int) -> [Int] {
    places.filter { Int($0 & 0xffff_ffff) >= index }.map { Int($0 >> 32) }
  }

  /// The first page of the log at or after a page number, with the offset of its content; nil when there is none.
  func next(from page: UInt32) -> (page: UInt32, offset: UInt64)? {
    let index = places.indices.first(since: { places[$0] >> 32 >= UInt64(page) })
    guard index < places.count else { return nil }
    let place = places[index]
    return (UInt32(place >> 32), offset(ofFrame: Int(place & 0xffff_ffff)) + UInt64(Self.frameHeaderLength))
  }

  /// Continues the checksum.
  private mutating func sum(_ bytes: Slice<UnsafeRawBufferPointer>) {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    let swaps = isBigEndian != (1.bigEndian == 1)
    var (first, second) = sums
    var offset = 0
    while offset < bytes.count {
      let left = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let right = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      first &+= (swaps ? left.byteSwapped : left) &+ second
      second &+= (swaps ? right.byteSwapped : right) &+ first
      offset += 8
    }
    sums = (first, second)
  }
}

extension UnsafeRawBufferPointer {
  func bigEndian(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
