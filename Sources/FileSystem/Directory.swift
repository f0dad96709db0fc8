import CPlatform
import DrydockErrors
import SystemPackage

/// An open directory: everything below it is reached through its descriptor, following no link and crossing no
/// mount, so that nobody can redirect a read or a write while it runs.
package final class Directory: Sendable {
  /// The open descriptor; it is closed with this object.
  package let descriptor: FileDescriptor
  /// The path it was opened by, for messages.
  package let path: String
  /// Whether what is in it is thrown away, so that nothing waits for the disk, here and below.
  package let isScratch: Bool
  /// What of it lies elsewhere.
  let namespace: DirectoryNamespace
  /// Paths below that are databases whatever they are called, of a container's root: those that its configuration names.
  package let databases: Set<ContainerPath>
  /// The object that closes the descriptor, when it is not this one.
  private let owner: Directory?

  private init(_ descriptor: FileDescriptor, path: String, isScratch: Bool) {
    (self.descriptor, self.path, self.isScratch) = (descriptor, path, isScratch)
    (namespace, databases, owner) = (.plain, [], nil)
  }

  /// The same open directory with another view of what is below it.
  init(_ owner: Directory, _ namespace: DirectoryNamespace, databases: Set<ContainerPath>? = nil) {
    (descriptor, path, isScratch) = (owner.descriptor, owner.path, owner.isScratch)
    (self.namespace, self.databases, self.owner) = (namespace, databases ?? owner.databases, owner)
  }

  deinit { if owner == nil { try? descriptor.close() } }

  /// Opens a directory by an absolute or working-directory path; links in that path are followed.
  ///
  /// - Parameter isScratch: whether what is in it is thrown away.
  package convenience init(_ path: String, isScratch: Bool = false) throws {
    do {
      self.init(
        try FileDescriptor.open(FilePath(path), .readOnly, options: [.directory, .closeOnExec]), path: path,
        isScratch: isScratch)
    } catch let error as Errno {
      throw DrydockError.system("cannot open the directory", path, error)
    }
  }

  /// Opens a directory below this one.
  package func directory(_ below: ContainerPath) throws -> Directory {
    switch namespace.place(of: below) {
    case .elsewhere(let group, let path): return try group.directory(path)
    case .list(let groups): return Directory(self, .list(groups), databases: [])
    case .here, .nowhere: break
    }
    let opened = Directory(
      try open(below.isRoot ? ContainerPath(name: [0x2E]) : below, .readOnly, options: [.directory]),
      path: full(below), isScratch: isScratch)
    return below.isRoot ? Directory(opened, namespace, databases: databases) : opened
  }

  /// Opens a file below this one; `.noFollow` and close-on-exec always apply.
  package func open(
    _ below: ContainerPath, _ mode: FileDescriptor.AccessMode, options: FileDescriptor.OpenOptions = []
  ) throws -> FileDescriptor {
    try withParent(of: below) { parent, name in
      let flags = mode.rawValue | options.rawValue | FileDescriptor.OpenOptions.noFollow.rawValue
      let opened = platform_open_beneath(parent, name, flags)
      guard opened >= 0 else { throw DrydockError.lastCall("cannot open", full(below)) }
      return FileDescriptor(rawValue: opened)
    }
  }

  /// The status of a path below, nil when nothing is there.
  package func status(_ below: ContainerPath) throws -> FileStatus? {
    if case .list = namespace.place(of: below) { return try listStatus() }
    var status = platform_status()
    let result = try withParentIfAny(of: below) {
      platform_status($0, $1, &status) == 0 ? nil : currentErrno()
    }
    switch result {
    case .success(nil): return FileStatus(status)
    // Behind a link is nowhere below this directory; a name that is too long (of a sidecar that a file could have)
    // is nobody's.
    case .success(.noSuchFileOrDirectory?), .success(.notDirectory?), .success(.fileNameTooLong?),
      .failure(.noSuchFileOrDirectory), .failure(.notDirectory), .failure(.fileNameTooLong),
      .failure(.tooManySymbolicLinkLevels):
      return nil
    case .success(let error?): throw DrydockError.system("cannot look at", full(below), error)
    case .failure(let error):
      throw DrydockError.system("cannot open the directory", full(below.parent), error)
    }
  }

  /// This directory's own status.
  package func status() throws -> FileStatus {
    guard let status = try status(.root) else {
      throw DrydockError(.notFound, "the directory is gone", path: path)
    }
    return status
  }

  /// The names in this directory, sorted by their bytes.
  ///
  /// - Parameter prefix: only those that start with it; others, however many, are neither kept nor sorted.
  package func names(startingWith prefix: String = "") throws -> [[UInt8]] {
    if case .list(let groups) = namespace { return groups.names.filter { $0.starts(with: prefix.utf8) } }
    guard let stream = platform_directory_open(descriptor.rawValue) else {
      throw DrydockError.lastCall("cannot list", path)
    }
    defer { platform_directory_close(stream) }
    var names: [[UInt8]] = []
    while let name = platform_directory_next(stream) {
      let bytes = name.withMemoryRebound(to: UInt8.self, capacity: 1) { Array(cBytes($0)) }
      if bytes.starts(with: prefix.utf8) { names.append(bytes) }
    }
    guard currentErrno().rawValue == 0 else { throw DrydockError.lastCall("cannot list", path) }
    if case .container = namespace, ContainerPath.groups.bytes.starts(with: prefix.utf8) {
      names.append(ContainerPath.groups.bytes)
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The full path of something below, for messages.
  package func full(_ below: ContainerPath) -> String {
    if case .elsewhere(let group, let path) = namespace.place(of: below) { return group.full(path) }
    return below.isRoot ? path : path + "/" + below.description
  }

  /// Runs a call with an open parent directory and the last name as a C string; ("", this) for the root.
  func withParent<T>(of path: ContainerPath, _ body: (Int32, UnsafePointer<CChar>) throws -> T) throws -> T {
    switch try withParentIfAny(of: path, body) {
    case .success(let result): return result
    case .failure(let error):
      throw DrydockError.system("cannot open the directory", full(path.parent), error)
    }
  }

  /// As ``withParent(of:_:)``; a parent that cannot be opened is a result, for one who asks for many paths that are
  /// not there.
  private func withParentIfAny<T>(
    of path: ContainerPath, _ body: (Int32, UnsafePointer<CChar>) throws -> T
  ) throws -> Result<T, Errno> {
    switch namespace.place(of: path) {
    case .here: break
    case .elsewhere(let group, let path): return try group.withParentIfAny(of: path, body)
    case .list, .nowhere: return .failure(.noSuchFileOrDirectory)
    }
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else {
      return .success(try withCString(path.bytes[...]) { try body(descriptor.rawValue, $0) })
    }
    // The kernel takes paths below 4,096 bytes: a longer one is walked down in pieces.
    var current = descriptor
    var isOwn = false
    defer { if isOwn { try? current.close() } }
    var rest = path.bytes[..<slash]
    while !rest.isEmpty {
      var piece = rest
      if piece.count > 4000, let cut = rest.prefix(4000).lastIndex(of: UInt8(ascii: "/")) {
        piece = rest[..<cut]
      }
      let next = withCString(piece) {
        platform_open_beneath(
          current.rawValue, $0,
          FileDescriptor.AccessMode.readOnly.rawValue | FileDescriptor.OpenOptions.directory.rawValue)
      }
      guard next >= 0 else { return .failure(currentErrno()) }
      if isOwn { try? current.close() }
      current = FileDescriptor(rawValue: next)
      isOwn = true
      rest = rest[piece.endIndex...].drop { $0 == UInt8(ascii: "/") }
    }
    return .success(try withCString(path.bytes[(slash + 1)...]) { try body(current.rawValue, $0) })
  }
}

private func cBytes(_ pointer: UnsafePointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
  var length = 0
  while pointer[length] != 0 { length += 1 }
  return UnsafeBufferPointer(start: pointer, count: length)
}

private func withCString<T>(_ bytes: ArraySlice<UInt8>, _ body: (UnsafePointer<CChar>) throws -> T) rethrows
  -> T
{
  try withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
    for (offset, byte) in bytes.enumerated() { buffer[offset] = CChar(bitPattern: byte) }
    buffer[bytes.count] = 0
    guard let start = UnsafePointer(buffer.baseAddress) else { return try body("") }
    return try body(start)
  }
}
