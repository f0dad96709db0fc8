import CPlatform
import DrydockErrors
import Synchronization
import SystemPackage

/// An open directory. Everything below it is reached through its descriptor, without following links or crossing mounts,
/// so that no other process can redirect a read or a write.
package final class Directory: Sendable {
  /// Closed with this object.
  package let descriptor: FileDescriptor
  /// The path that it was opened by, for messages.
  package let path: String
  /// Whether its contents are temporary, so that nothing below is synced to disk.
  package let isScratch: Bool
  /// The paths below that are in other directories.
  let namespace: DirectoryNamespace
  /// In a container's root: the databases that its configuration names, whose names may end in anything.
  package let databases: Set<ContainerPath>
  /// The object that closes the descriptor, unless it is this one.
  private let owner: Directory?
  /// Whether this object has locked the directory's inode.
  private let hasLock = Atomic(false)

  private init(_ descriptor: FileDescriptor, path: String, isScratch: Bool, owner: Directory? = nil) {
    (self.descriptor, self.path, self.isScratch, self.owner) = (descriptor, path, isScratch, owner)
    (namespace, databases) = (.plain, [])
  }

  /// An open file below, whose metadata is read and set as that of the root of what is returned: it is not opened again.
  package func view(of file: FileDescriptor, _ below: ContainerPath) -> Directory {
    Directory(file, path: full(below), isScratch: isScratch, owner: self)
  }

  /// The same open directory with another view of what is below it.
  init(_ owner: Directory, _ namespace: DirectoryNamespace, databases: Set<ContainerPath>? = nil) {
    (descriptor, path, isScratch) = (owner.descriptor, owner.path, owner.isScratch)
    (self.namespace, self.databases, self.owner) = (namespace, databases ?? owner.databases, owner)
  }

  deinit {
    guard owner == nil else { return }
    // A program that another thread is starting has a copy of the descriptor until it runs: closing this one does not
    // release the lock.
    if hasLock.load(ordering: .relaxed) { releaseLock() }
    try? descriptor.close()
  }

  /// Notes that the lock is to be released with this object.
  func noteLock() { (owner ?? self).hasLock.store(true, ordering: .relaxed) }

  /// Opens a directory by an absolute path or one relative to the working directory, following links in it.
  package convenience init(_ path: String, isScratch: Bool = false) throws {
    let descriptor = try DrydockError.translating("cannot open the directory", path) {
      try FileDescriptor.open(FilePath(path), .readOnly, options: [.directory, .closeOnExec])
    }
    self.init(descriptor, path: path, isScratch: isScratch)
  }

  package func directory(_ below: ContainerPath) throws -> Directory {
    switch namespace.location(of: below) {
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
    let flags = mode.rawValue | options.rawValue | FileDescriptor.OpenOptions.noFollow.rawValue
    let isShort = namespace.isPlain && below.bytes.count <= Self.longestPath
    let opened =
      isShort
      ? withCString(below.bytes[...]) { platform_open_beneath(descriptor.rawValue, $0, flags) }
      : try withParent(of: below) { platform_open_beneath($0, $1, flags) }
    guard opened >= 0 else { throw DrydockError.lastCall("cannot open", full(below)) }
    return FileDescriptor(rawValue: opened)
  }

  /// Opens a file for reading that something else may have been put in the place of: to open a FIFO or a device can have an effect.
  ///
  /// - Parameter known: its status, if that is known.
  package func openFile(_ below: ContainerPath, _ known: FileStatus? = nil) throws -> FileDescriptor {
    if let type = try (known ?? status(below))?.type, ![.file, .directory, .symbolicLink].contains(type) {
      throw DrydockError(.io, "not a regular file", path: full(below), cause: Errno.invalidArgument)
    }
    return try open(below, .readOnly, options: [.nonBlocking])
  }

  /// The status of a path below; nil when it does not exist.
  package func status(_ below: ContainerPath) throws -> FileStatus? {
    if case .list = namespace.location(of: below) { return try listStatus() }
    var status = platform_status()
    let result = try withParentIfAny(of: below) {
      platform_status($0, $1, &status) == 0 ? nil : currentErrno()
    }
    switch result {
    case .success(nil): return FileStatus(status)
    // Paths through a link do not exist here, nor do names that are too long (of a sidecar that a file could have).
    case .success(.noSuchFileOrDirectory?), .success(.notDirectory?), .success(.fileNameTooLong?),
      .failure(.noSuchFileOrDirectory), .failure(.notDirectory), .failure(.fileNameTooLong),
      .failure(.tooManySymbolicLinkLevels):
      return nil
    case .success(let error?): throw DrydockError.system("cannot read the status of", full(below), error)
    case .failure(let error):
      throw DrydockError.system("cannot open the directory", full(below.parent), error)
    }
  }

  /// The statuses of paths below, in their order; of many on all cores.
  package func statuses(_ below: [ContainerPath]) throws -> [FileStatus?] {
    let inPiece = 512
    guard below.count > 2 * inPiece else { return try below.map(status) }
    let pieces = Mutex<[Int: [FileStatus?]]>([:])
    try onAllCores(Array(0...(below.count - 1) / inPiece)) { number in
      let piece = try below[(number * inPiece)...].prefix(inPiece).map(status)
      pieces.withLock { $0[number] = piece }
    }
    return pieces.withLock { pieces in pieces.keys.sorted().flatMap { pieces[$0] ?? [] } }
  }

  package func status() throws -> FileStatus {
    guard let status = try status(.root) else {
      throw DrydockError(.notFound, "the directory was removed", path: path)
    }
    return status
  }

  /// The names in this directory, sorted by their bytes.
  ///
  /// - Parameter prefix: limits them to those that start with it.
  package func names(startingWith prefix: String = "") throws -> [[UInt8]] {
    try items().map(\.name).filter { $0.starts(with: prefix.utf8) }
  }

  /// The same with their inodes; that of what is not on disk under this name is 0: of a group, and of the list of groups.
  package func items() throws -> [NameList.Item] {
    var items: [NameList.Item]
    if case .list(let groups) = namespace {
      items = groups.keys.map { NameList.Item(name: $0, inode: 0, isDirectory: true) }
    } else {
      items = try listing().items()
    }
    if case .container = namespace { items.append(.groupList) }
    return items.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The full path of a path below, for messages.
  package func full(_ below: ContainerPath) -> String {
    if case .elsewhere(let group, let path) = namespace.location(of: below) { return group.full(path) }
    return below.isRoot ? path : path + "/" + below.description
  }

  /// Runs a call with the open parent directory and the last name as a C string: this directory and "" for the root.
  func withParent<T>(of path: ContainerPath, _ body: (Int32, UnsafePointer<CChar>) throws -> T) throws -> T {
    switch try withParentIfAny(of: path, body) {
    case .success(let result): return result
    case .failure(let error):
      throw DrydockError.system("cannot open the directory", full(path.parent), error)
    }
  }

  /// Makes a system call with the open parent directory and the last name of a path; another result than 0 is an error,
  /// but for those that are fine.
  ///
  /// - Parameter action: the start of the message.
  func call(
    _ action: @autoclosure () -> String, _ path: ContainerPath, accepting fine: Errno...,
    body: (Int32, UnsafePointer<CChar>) throws -> Int32
  ) throws {
    // Before the directory is closed.
    let error = try withParent(of: path) { try body($0, $1) == 0 ? nil : currentErrno() }
    if let error, !fine.contains(error) { throw DrydockError.system(action(), full(path), error) }
  }

  /// The kernel accepts paths below 4,096 bytes.
  private static let longestPath = 4000

  /// As ``withParent(of:_:)``, but a parent that cannot be opened is a result: cheaper where many paths do not exist.
  private func withParentIfAny<T>(
    of path: ContainerPath, _ body: (Int32, UnsafePointer<CChar>) throws -> T
  ) throws -> Result<T, Errno> {
    switch namespace.location(of: path) {
    case .here: break
    case .elsewhere(let group, let path): return try group.withParentIfAny(of: path, body)
    case .list, .nowhere: return .failure(.noSuchFileOrDirectory)
    }
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else {
      return .success(try withCString(path.bytes[...]) { try body(descriptor.rawValue, $0) })
    }
    // A longer path is opened in pieces.
    var current = descriptor
    var isOwn = false
    defer { if isOwn { try? current.close() } }
    var rest = path.bytes[..<slash]
    while !rest.isEmpty {
      var piece = rest
      if piece.count > Self.longestPath,
        let cut = rest.prefix(Self.longestPath).lastIndex(of: UInt8(ascii: "/"))
      {
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

private func withCString<T>(_ bytes: ArraySlice<UInt8>, _ body: (UnsafePointer<CChar>) throws -> T) rethrows
  -> T
{
  try withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
    UnsafeMutableRawBufferPointer(buffer).copyBytes(from: bytes)
    buffer[bytes.count] = 0
    guard let start = UnsafePointer(buffer.baseAddress) else { return try body("") }
    return try body(start)
  }
}
