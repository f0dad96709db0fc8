import CPlatform
import Cryptography
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Reads a content in pieces, in order, to the end of a range or until nothing more is read.
///
/// - Parameters:
///   - pieceSize: the bytes of a piece; fewer are read at the end, or whenever `read` gives fewer.
///   - read: reads from an offset into a buffer, and returns the number of bytes, 0 at the end.
/// - Returns: the offset that reading ended at.
@discardableResult
package func readInPieces(
  _ range: Range<UInt64> = 0..<UInt64.max, of pieceSize: Int = 1 << 20,
  read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int,
  _ body: (UnsafeRawBufferPointer) throws -> Void
) throws -> UInt64 {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize, alignment: 4096)
  defer { buffer.deallocate() }
  var offset = range.lowerBound
  while offset < range.upperBound {
    let wanted = Int(min(UInt64(pieceSize), range.upperBound - offset))
    let count = try read(offset, UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
    if count == 0 { break }
    try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    offset += UInt64(count)
  }
  return offset
}

/// Reads, writes and copies whole files below a directory.
extension Directory {
  /// The whole content of a regular file.
  ///
  /// - Parameter limit: the largest size in bytes. A larger file is an error, so that it cannot exhaust the memory.
  ///
  /// - Parameter isNamed: whether the user has named it: then it may be a device such as `/dev/null`.
  package func contents(
    _ path: ContainerPath, limit: Int = 64 << 20, isNamed: Bool = false
  ) throws -> [UInt8] {
    let file = try isNamed ? open(path, .readOnly, options: [.nonBlocking]) : openFile(path)
    defer { try? file.close() }
    return try file.contents(limit: limit, path: full(path))
  }

  /// Reads a regular file of any size in pieces, in order.
  package func read(_ path: ContainerPath, by body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let file = try openFile(path)
    defer { try? file.close() }
    try readInPieces(
      read: { offset, buffer in
        try DrydockError.translating("cannot read", full(path)) {
          try file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
        }
      }, body)
  }

  /// Writes a new file; an existing one is an error.
  package func create(_ path: ContainerPath, _ bytes: [UInt8], mode: UInt16 = 0o600) throws {
    try create(path, mode: mode) { try $0(bytes) }
  }

  /// Writes a new file piece by piece; an existing one is an error.
  ///
  /// - Parameter body: calls its argument with each piece.
  package func create(
    _ path: ContainerPath, mode: UInt16 = 0o600, body: (([UInt8]) throws -> Void) throws -> Void
  ) throws {
    let file = try createFile(path, mode: mode)
    defer { try? file.close() }
    try DrydockError.translating("cannot write", full(path)) { try body { _ = try file.writeAll($0) } }
  }

  /// Opens a new file for writing (and reading back); an existing one is an error.
  package func createFile(_ path: ContainerPath, mode: UInt16 = 0o600) throws -> FileDescriptor {
    try withParent(of: path) { parent, name in
      let flags =
        FileDescriptor.AccessMode.readWrite.rawValue
        | FileDescriptor.OpenOptions([.create, .exclusiveCreate, .noFollow, .closeOnExec]).rawValue
      let opened = openat(parent, name, flags, mode_t(mode))
      guard opened >= 0 else { throw DrydockError.lastCall("cannot create", full(path)) }
      return FileDescriptor(rawValue: opened)
    }
  }

  /// The end of the name that a file has while it is written by ``replace(_:with:mode:)``. What a killed command left under it is
  /// removed by the next one, so it must be no name that a user gives to a file of his own.
  package static let unfinishedSuffix = ".drydock-new"

  /// Replaces a small file atomically: temporary file, sync, rename, sync of the directory.
  package func replace(_ path: ContainerPath, with bytes: [UInt8], mode: UInt16 = 0o600) throws {
    let temporary = path.withSuffix(Self.unfinishedSuffix)
    try removeFile(temporary, missingIsFine: true)
    let file = try createFile(temporary, mode: mode)
    do {
      defer { try? file.close() }
      _ = try file.writeAll(bytes)
      guard platform_sync(file.rawValue) == 0 else { throw currentErrno() }
      try rename(temporary, in: self, to: path)
    } catch {
      try? removeFile(temporary, missingIsFine: true)
      throw (error as? Errno).map { DrydockError.system("cannot write", full(temporary), $0) } ?? error
    }
    try directory(path.parent).sync()
  }

  /// Copies the content of a regular file into a new file of another directory: as a clone where the file system can, else
  /// inside the kernel. Mode, times and attributes are left to the caller.
  package func copyContents(of source: ContainerPath, to target: ContainerPath, in other: Directory) throws {
    let input = try openFile(source)
    defer { try? input.close() }
    #if canImport(Darwin)
      // macOS: untested. A clone comes with the mode of its source.
      let isCloned = try other.withParent(of: target) { platform_clone_new(input.rawValue, $0, $1) == 0 }
      if isCloned { return try other.setMode(0o600, of: target) }
    #endif
    let output = try other.createFile(target)
    defer { try? output.close() }
    try input.copyContents(to: output, path: other.full(target))
  }
}

extension FileDescriptor {
  /// Starts writing the file to disk, without waiting, so that a later sync takes less time.
  package func beginWriting() { platform_begin_writing(rawValue) }

  /// Reads from an offset until the buffer is full or the file ends. Returns the number of bytes read.
  package func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int {
    var filled = 0
    while filled < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      let count = try read(fromAbsoluteOffset: Int64(clamping: offset) + Int64(filled), into: rest)
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// So many bytes at an offset; fewer where the file ends.
  package func bytes(_ count: Int, at offset: Int64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let filled = try bytes.withUnsafeMutableBytes { try read(fromAbsoluteOffset: offset, into: $0) }
    bytes.removeLast(count - filled)
    return bytes
  }

  /// The whole content; more than `limit` bytes is an error.
  package func contents(limit: Int, path: String) throws -> [UInt8] {
    try DrydockError.translating("cannot read", path) {
      let size = Int(try seek(offset: 0, from: .end))
      guard size <= limit else {
        throw DrydockError(
          .unsupported, "\(size) bytes, more than the limit of \(limit)", path: path)
      }
      var bytes = [UInt8](repeating: 0, count: size)
      let filled = try bytes.withUnsafeMutableBytes { try fill($0, at: 0) }
      return filled == size ? bytes : Array(bytes.prefix(filled))
    }
  }

  /// Makes writes of whole blocks go past the page cache, or through it again.
  ///
  /// - Returns: false where the file system cannot.
  package func bypassCache(_ bypass: Bool) -> Bool { platform_bypass_cache(rawValue, bypass) == 0 }
}

// MARK: Syncing

extension Directory {
  package func sync() throws {
    if isScratch { return }
    guard platform_sync(descriptor.rawValue) == 0 else { throw DrydockError.lastCall("cannot sync", path) }
  }

  /// Syncs this directory's whole file system to disk in one call.
  package func syncFileSystem() throws {
    if isScratch { return }
    guard platform_sync_filesystem(descriptor.rawValue) == 0 else {
      throw DrydockError.lastCall("cannot sync the file system", path)
    }
  }

  /// The bytes that this user can still write on this file system; nil when it does not report that.
  package func freeSpace() -> UInt64? {
    let free = platform_free_space(descriptor.rawValue)
    return free < 0 ? nil : UInt64(free)
  }

  /// Whether this is on an overlay file system, whose directories may be in a read-only layer.
  package func isOverlay() -> Bool { platform_is_overlay(descriptor.rawValue) }

  /// Whether this is on a file system in memory (tmpfs), where writing through a mapping need not change any time.
  package func isInMemory() -> Bool { platform_is_memory(descriptor.rawValue) }

  package func syncFile(_ path: ContainerPath) throws {
    if isScratch { return }
    let file = try open(path, .readOnly)
    defer { try? file.close() }
    try syncFile(file, path)
  }

  package func syncFile(_ file: FileDescriptor, _ path: ContainerPath) throws {
    if isScratch { return }
    guard platform_sync(file.rawValue) == 0 else { throw DrydockError.lastCall("cannot sync", full(path)) }
  }

  /// Reserves blocks after a file's end, so that a later write does not fail for lack of space; does nothing where the file
  /// system cannot. Throws ``DrydockError`` (`noSpace`).
  package func reserve(_ length: Int64, behind file: FileDescriptor, _ path: ContainerPath) throws {
    let end = Int64(try FileStatus(of: file, path: full(path)).size)
    guard platform_reserve(file.rawValue, end, length) != 0 else { return }
    let error = currentErrno()
    if error == .noSpace || error == .diskQuotaExceeded {
      throw DrydockError.system("cannot write", full(path), error)
    }
  }
}

/// Reads and writes files with secrets, in memory that is wiped.
package enum SecretFile {
  /// The content of a file or named pipe; more than `limit` bytes is an error (`unsupported`).
  package static func read(_ path: String, limit: Int) throws -> SecretBytes {
    let file = try DrydockError.translating("cannot read", path) {
      try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
    }
    defer { try? file.close() }
    return try read(file, limit: limit, path: path)
  }

  package static func readStandardInput(limit: Int) throws -> SecretBytes {
    try read(.standardInput, limit: limit, path: "standard input")
  }

  /// Writes a new file that only its owner can read, and syncs it: it may hold the only copy of a key. An incomplete file is
  /// removed; an existing one is an error.
  package static func create(_ path: String, _ secret: SecretBytes) throws {
    do {
      let file = try FileDescriptor.open(
        FilePath(path), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: [.ownerReadWrite])
      do {
        try file.closeAfter {
          _ = try secret.withBytes { try file.writeAll($0) }
          try sync(file)
        }
      } catch {
        _ = FilePath(path).withPlatformString { unlink($0) }
        throw error
      }
      let parent = FilePath(path).removingLastComponent()
      let directory = try FileDescriptor.open(
        parent.isEmpty ? "." : parent, .readOnly, options: [.directory, .closeOnExec])
      try directory.closeAfter { try sync(directory) }
    } catch Errno.fileExists {
      throw DrydockError(
        .io, "already exists and is not replaced; choose another name or move the file away", path: path)
    } catch let error as Errno {
      throw DrydockError.system("cannot write", path, error)
    }
  }

  private static func sync(_ file: FileDescriptor) throws(Errno) {
    guard platform_sync(file.rawValue) == 0 else { throw currentErrno() }
  }

  private static func read(_ file: FileDescriptor, limit: Int, path: String) throws -> SecretBytes {
    var (room, count) = (SecretBytes(count: 0) { _ in }, 0)
    while count == room.count, count <= limit {
      // A pipe does not say how long it is. One extra byte detects more than the limit.
      room = try SecretBytes(count: min(max(count * 4, 64 << 10), limit + 1)) { larger in
        room.withBytes { larger.copyMemory(from: $0) }
        try DrydockError.translating("cannot read", path) {
          while count < larger.count {
            let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: larger[count...]))
            if read == 0 { break }
            count += read
          }
        }
      }
    }
    guard count <= limit else {
      throw DrydockError(.unsupported, "more than the limit of \(limit) bytes", path: path)
    }
    return room.withBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }
}
