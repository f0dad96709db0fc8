import Foundation

/// File calls on paths as raw bytes: the containers under test hold names that are not UTF-8, which
/// Foundation cannot even list.
public enum RawFiles {
  /// The names in a directory, without `.` and `..`, sorted by bytes.
  public static func names(in directory: [UInt8]) throws -> [[UInt8]] {
    guard let stream = withPath(directory, { opendir($0) }) else {
      throw SystemFailure(call: "opendir", path: directory)
    }
    defer { closedir(stream) }
    guard let offset = MemoryLayout<dirent>.offset(of: \dirent.d_name) else {
      throw SystemFailure("the layout of dirent is unknown here")
    }
    var names: [[UInt8]] = []
    while let entry = readdir(stream) {
      // The record may be shorter than the declared type, so the name is read where it lies, never copied whole.
      let name = bytes(ofCString: UnsafeRawPointer(entry).advanced(by: offset))
      if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
    }
    return names.sorted(by: precedes)
  }

  /// Whether bytes come before others, by the C library: without the optimizer, `lexicographicallyPrecedes` takes 100 ns
  /// for each byte, and the trees of tests are sorted often.
  static func precedes(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    let order = memcmp(one, other, min(one.count, other.count))
    return order == 0 ? one.count < other.count : order < 0
  }

  /// The status of a path itself, links not followed.
  public static func status(_ path: [UInt8]) throws -> stat {
    var status = stat()
    guard withPath(path, { lstat($0, &status) }) == 0 else { throw SystemFailure(call: "lstat", path: path) }
    return status
  }

  /// Whether anything, even a dangling link, has this path.
  public static func exists(_ path: [UInt8]) -> Bool {
    (try? status(path)) != nil
  }

  /// A file's whole content.
  public static func read(_ path: [UInt8]) throws -> Data {
    let descriptor = withPath(path) { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    guard descriptor >= 0 else { throw SystemFailure(call: "open", path: path) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SystemFailure(call: "fstat", path: path) }
    // Files that the kernel makes have no size before they are read.
    var (content, done) = (Data(count: Int(status.st_size) + 4096), 0)
    while true {
      if done == content.count { content.count *= 2 }
      let count = content.withUnsafeMutableBytes { buffer in
        Foundation.read(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemFailure(call: "read", path: path)
      }
      if count == 0 {
        content.count = done
        return content
      }
      done += count
    }
  }

  /// Writes a file, replacing its content in place (same inode) when it exists.
  public static func write(_ content: [UInt8], to path: [UInt8], mode: UInt16 = 0o644) throws {
    let descriptor = withPath(path) { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_t(mode)) }
    guard descriptor >= 0 else { throw SystemFailure(call: "open", path: path) }
    defer { close(descriptor) }
    var done = 0
    while done < content.count {
      let count = content.withUnsafeBytes { bytes in
        Foundation.write(descriptor, bytes.baseAddress.map { $0 + done }, content.count - done)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemFailure(call: "write", path: path)
      }
      done += count
    }
  }

  /// Makes a directory, and those above it.
  public static func createDirectories(_ path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// A symbolic link's target.
  public static func linkTarget(_ path: [UInt8]) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = withPath(path) { path in
      buffer.withUnsafeMutableBytes { bytes in
        bytes.baseAddress.map { readlink(path, $0.assumingMemoryBound(to: CChar.self), bytes.count) } ?? -1
      }
    }
    guard count >= 0 else { throw SystemFailure(call: "readlink", path: path) }
    return Array(buffer[..<count])
  }

  /// Removes a path and everything below it, also directories that may not be written to. Links are not followed.
  public static func remove(_ path: [UInt8]) throws {
    // One call for all but directories, which refuse it.
    if withPath(path, { unlink($0) }) == 0 { return }
    let failure = SystemFailure(call: "unlink", path: path)
    guard try status(path).st_mode & S_IFMT == S_IFDIR else { throw failure }
    _ = withPath(path) { chmod($0, 0o700) }
    for name in try names(in: path) { try remove(path + [0x2f] + name) }
    guard withPath(path, { rmdir($0) }) == 0 else { throw SystemFailure(call: "rmdir", path: path) }
  }

  static func withPath<T>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> T) -> T {
    (path + [0]).withUnsafeBytes { buffer in
      // A buffer with a terminator is never empty, so the empty string here is never taken.
      guard let base = buffer.baseAddress else { return "".withCString(body) }
      return body(base.assumingMemoryBound(to: CChar.self))
    }
  }

  private static func bytes(ofCString pointer: UnsafeRawPointer) -> [UInt8] {
    let text = pointer.assumingMemoryBound(to: UInt8.self)
    return Array(UnsafeBufferPointer(start: text, count: strlen(pointer.assumingMemoryBound(to: CChar.self))))
  }
}

extension Data {
  /// Whether bytes occur in it, by the C library: Foundation's search takes twenty times as long, and tests search whole
  /// disks for dozens of texts.
  public func holds(_ bytes: Data) -> Bool {
    withUnsafeBytes { all in
      bytes.withUnsafeBytes { find(all.baseAddress, all.count, $0.baseAddress, $0.count) } != nil
    }
  }
}

/// Where bytes occur first in others, by the C library.
public func firstPlace(of bytes: UnsafeRawBufferPointer, in all: UnsafeRawBufferPointer) -> Int? {
  guard let start = all.baseAddress else { return nil }
  return find(start, all.count, bytes.baseAddress, bytes.count).map { UnsafeRawPointer($0) - start }
}

private typealias Finder =
  @convention(c) (UnsafeRawPointer?, Int, UnsafeRawPointer?, Int)
  -> UnsafeMutableRawPointer?
#if canImport(Darwin)
  private let find: Finder = { memmem($0, $1, $2, $3) }
#else
  private let find: Finder = hiddenFunction("memmem", Finder.self) ?? { _, _, _, _ in abort() }
#endif
