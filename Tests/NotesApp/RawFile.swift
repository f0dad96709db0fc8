import Foundation

/// File calls that Foundation hides: names that are not UTF-8, extended attributes, times to the nanosecond.
enum RawFile {
  static func makeDirectories(_ path: String) throws {
    var made = path.hasPrefix("/") ? "" : "."
    for component in path.split(separator: "/") {
      made += "/" + component
      if mkdir(made, 0o755) != 0, errno != EEXIST { throw AppError(call: "mkdir", path: made) }
    }
  }

  static func write(_ content: [UInt8], to path: String, mode: mode_t = 0o644) throws {
    try write(content, to: Array(path.utf8), mode: mode)
  }

  static func write(_ content: [UInt8], to path: [UInt8], mode: mode_t = 0o644) throws {
    let text = String(decoding: path, as: UTF8.self)
    let descriptor = withPath(path) { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) }
    guard descriptor >= 0 else { throw AppError(call: "create", path: text) }
    defer { close(descriptor) }
    var rest = content[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { throw AppError(call: "write", path: text) }
      rest = rest.dropFirst(count)
    }
    // The mode of open() is subject to the umask.
    guard fchmod(descriptor, mode) == 0 else { throw AppError(call: "chmod", path: text) }
  }

  /// The names in a directory.
  static func names(in directory: [UInt8]) throws -> [[UInt8]] {
    guard let stream = withPath(directory, { opendir($0) }),
      let offset = MemoryLayout<dirent>.offset(of: \dirent.d_name)
    else { throw AppError(call: "opendir", path: String(decoding: directory, as: UTF8.self)) }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while let entry = readdir(stream) {
      let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: UInt8.self)
      var length = 0
      while name[length] != 0 { length += 1 }
      names.append(Array(UnsafeBufferPointer(start: name, count: length)))
    }
    return names.filter { $0 != [0x2e] && $0 != [0x2e, 0x2e] }.sorted { $0.lexicographicallyPrecedes($1) }
  }

  static func isDirectory(_ path: [UInt8]) -> Bool {
    var status = stat()
    return withPath(path) { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Sets a path's own modification time, of a link's too.
  static func setTime(_ path: [UInt8], seconds: Int, nanoseconds: Int) throws {
    let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: nanoseconds), count: 2)
    guard withPath(path, { utimensat(AT_FDCWD, $0, times, AT_SYMLINK_NOFOLLOW) }) == 0 else {
      throw AppError(call: "utimensat", path: String(decoding: path, as: UTF8.self))
    }
  }

  static func setAttribute(_ name: String, _ value: [UInt8], of path: String) throws {
    #if canImport(Darwin)
      let status = setxattr(path, name, value, value.count, 0, 0)
    #else
      // The C library's module does not show <sys/xattr.h> to Swift, so the call is looked up by name.
      typealias Setter =
        @convention(c) (
          UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32
        ) -> Int32
      guard let call = dlsym(nil, "setxattr") else { throw AppError("there is no setxattr here") }
      let status = unsafeBitCast(call, to: Setter.self)(path, name, value, value.count, 0)
    #endif
    guard status == 0 else { throw AppError(call: "setxattr \(name)", path: path) }
  }

  private static func withPath<T>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> T) -> T {
    (path.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { buffer in
      // A buffer with a terminator is never empty, so the empty string here is never taken.
      buffer.baseAddress.map(body) ?? body("")
    }
  }
}
