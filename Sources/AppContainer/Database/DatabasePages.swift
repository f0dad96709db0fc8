import DrydockErrors
import FileSystem
import SystemPackage

/// The content of a database as the last commit left it, read where it lies: pages of the log before those of the main
/// file. Nothing is copied.
///
/// Its locks are held as long as this object lives.
package final class DatabasePages {
  /// Bytes of the content: its pages.
  package let size: UInt64
  /// Whether the database is written through a log.
  let usesLog: Bool

  private let lock: DatabaseLock
  private let log: OpenLog?
  private let pin: LogPin?
  private let path: String
  private let before: FileStatus

  /// A log with its open file.
  private struct OpenLog {
    let file: LockedFile
    let content: WriteAheadLog
  }

  /// - Parameters:
  ///   - lock: held on the main file, at least for reading.
  ///   - logFile: the log, opened under the lock.
  ///   - pin: what keeps the main file and the start of the log as they are; without one ``isStill()`` tells.
  /// - Returns: nil when SQLite must decide what the two files mean.
  /// - Throws: ``UnreadableDatabase``; ``DrydockError`` when it cannot be read.
  init?(_ lock: DatabaseLock, log logFile: LockedFile?, pin: LogPin?, path: String) throws {
    (self.lock, self.pin, self.path) = (lock, pin, path)
    // Before anything is read.
    before = try FileStatus(of: lock.file, path: path)
    var log: OpenLog?
    guard logFile != nil || (pin?.frameCount ?? 0) == 0 else {
      throw UnreadableDatabase(reason: "its log is gone")
    }
    if let logFile, pin?.frameCount != 0 {
      let size = try FileStatus(of: logFile.descriptor, path: path).size
      let content = try WriteAheadLog(size: size, limit: pin?.frameCount) {
        try Self.read(logFile.descriptor, at: $0, into: $1, path)
      }
      if let pin, content?.frameCount != pin.frameCount || content?.salts.elementsEqual(pin.salts) != true {
        throw UnreadableDatabase(reason: "its log is damaged")
      }
      if let content, content.pageCount > 0 { log = OpenLog(file: logFile, content: content) }
    }
    self.log = log
    guard let log else {
      (size, usesLog) = try Self.extent(of: lock.file, size: before.size, path)
      return
    }
    let first = log.content.next(from: 1).flatMap { $0.page == 1 ? $0.offset : nil }
    let start = try first.map { try Self.start(of: log.file.descriptor, at: $0, path) }
    let header = try DatabaseHeader(start ?? Self.start(of: lock.file, at: 0, path), fileSize: nil)
    size = UInt64(log.content.pageCount) * UInt64(header.pageSize)
    usesLog = header.usesLog
    // A log beside an empty file is no log to SQLite.
    guard before.size > 0, usesLog, header.pageSize == log.content.pageSize else { return nil }
  }

  /// The pages of a main file alone.
  private init(_ lock: DatabaseLock, path: String) throws {
    (self.lock, self.log, self.pin, self.path) = (lock, nil, nil, path)
    before = try FileStatus(of: lock.file, path: path)
    (size, usesLog) = try Self.extent(of: lock.file, size: before.size, path)
  }

  private static func extent(
    of file: FileDescriptor, size: UInt64, _ path: String
  ) throws -> (size: UInt64, usesLog: Bool) {
    if size == 0 { return (0, false) }
    let header = try DatabaseHeader(start(of: file, at: 0, path), fileSize: size)
    return (header.pageCount * UInt64(header.pageSize), header.usesLog)
  }

  private static func start(of file: FileDescriptor, at offset: UInt64, _ path: String) throws -> [UInt8] {
    var start = [UInt8](repeating: 0, count: DatabaseHeader.length)
    let count = try start.withUnsafeMutableBytes { try read(file, at: offset, into: $0, path) }
    return Array(start[..<count])
  }

  /// Reads from an offset until the buffer is full or the content ends.
  ///
  /// - Returns: the bytes read; fewer when a file became shorter meanwhile.
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
    guard let log else {
      let count = try Self.read(lock.file, at: offset, into: buffer, path)
      guard count == 0, offset >= before.size else { return count }
      // The last page may be cut: to SQLite the rest of it is zeros.
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      return buffer.count
    }
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
    let count = try Self.read(lock.file, at: offset, into: piece, path)
    guard count == 0 else { return count }
    // A page that nobody ever wrote, such as a free one at the end: a checkpoint makes it zeros.
    piece.initializeMemory(as: UInt8.self, repeating: 0)
    return piece.count
  }

  /// Whether all that was read until now belongs to one commit. To be asked after the last read; when it is not so, the
  /// database is captured anew.
  package func isStill() throws -> Bool {
    if let log {
      var header = [UInt8](repeating: 0, count: WriteAheadLog.headerLength)
      let count = try header.withUnsafeMutableBytes {
        try Self.read(log.file.descriptor, at: 0, into: $0, path)
      }
      guard count == header.count, header == log.content.header else { return false }
    }
    if pin != nil { return true }
    let after = try FileStatus(of: lock.file, path: path)
    return (after.size, after.modified, after.changed) == (before.size, before.modified, before.changed)
  }

  /// Writes the content to an empty file.
  ///
  /// - Returns: whether it is whole.
  package func copy(to target: FileDescriptor, path targetPath: String) throws -> Bool {
    do {
      // Cloned, or copied inside the kernel, where the main file is all there is.
      if log == nil {
        try lock.file.copyContents(to: target, path: targetPath)
        try target.resize(to: Int64(size))
        return try isStill()
      }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
      defer { buffer.deallocate() }
      var offset: UInt64 = 0
      while offset < size {
        let count = try read(at: offset, into: buffer)
        if count == 0 { return false }
        try target.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        offset += UInt64(count)
      }
      return try isStill()
    } catch let error as Errno {
      throw DrydockError.system("cannot write", targetPath, error)
    }
  }

  private static func read(
    _ file: FileDescriptor, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ path: String
  ) throws -> Int {
    var filled = 0
    do {
      while filled < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        let count = try file.read(fromAbsoluteOffset: Int64(offset) + Int64(filled), into: rest)
        if count == 0 { break }
        filled += count
      }
      return filled
    } catch let error as Errno {
      throw DrydockError.system("cannot read", path, error)
    }
  }
}

extension DatabasePages {
  /// The pages of a private copy that nobody has open.
  ///
  /// - Throws: ``DrydockError`` `malformed` when it is none.
  package convenience init(ofCopy name: ContainerPath, in scratch: Directory) throws {
    let file = LockedFile(try scratch.open(name, .readOnly))
    do {
      try self.init(DatabaseLock(file), path: scratch.full(name))
    } catch let error as UnreadableDatabase {
      throw DrydockError(.malformed, error.reason, path: scratch.full(name), cause: error)
    }
  }
}
