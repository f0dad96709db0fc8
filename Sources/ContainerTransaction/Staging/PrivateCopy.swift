import AppStores
import DrydockErrors
import FileSystem
import Foundation

/// A full copy of a container as it will be, for a program that is to change it: the program changes only this
/// copy. Databases are captured, each one consistent file; sockets, FIFOs, devices and what is mounted are left out.
package struct PrivateCopy: Sendable {
  package let root: Directory
  /// An empty directory beside it for the program's own use; it goes with the copy.
  package let work: Directory
  /// The copy as it was made.
  fileprivate let before: TreeIndex

  /// The processes that have something of the copy open, or work in it.
  ///
  /// A process that just ends is given a little time.
  package func users() throws -> [OpenFile] {
    let search = OpenFileSearch(
      inodes: [try root.status().identity: .root], tree: try InodePaths(TreeIndex(of: root)),
      own: [root.descriptor.rawValue])
    let deadline = ContinuousClock.now + .seconds(1)
    while true {
      let users = search.run().found
      if users.isEmpty || ContinuousClock.now > deadline { return users }
      Thread.sleep(forTimeInterval: 0.05)
    }
  }
}

extension StagedContainer {
  /// Runs a body on a full private copy, and stages what differs in it then; everything else stays unchanged.
  ///
  /// - Throws: what the body throws, and then nothing is staged; ``DrydockError`` `checkFailed` when a process is
  ///   still at work in the copy, or when its content is not valid in a container.
  package func changeCopy<T>(_ body: (PrivateCopy) throws -> T) throws -> T {
    let folder = stage.newName()
    try stage.directory.createDirectory(folder)
    defer { try? stage.directory.removeTree(folder) }
    let copy = try makeCopy(in: stage.directory.directory(folder))
    let result = try body(copy)
    if let user = try copy.users().first {
      throw DrydockError(
        .checkFailed, "\(user), in the private copy: a script must wait for every process that it starts")
    }
    try adopt(copy)
    return result
  }

  private func makeCopy(in folder: Directory) throws -> PrivateCopy {
    let (container, work): (ContainerPath, ContainerPath) = ("container", "work")
    for name in [container, work] { try folder.createDirectory(name) }
    let root = try folder.directory(container)
    // The first path of each inode that has several names.
    var linked: [FileIdentity: ContainerPath] = [:]
    try copy(.root, into: root, &linked)
    let copy = try PrivateCopy(
      root: root, work: folder.directory(work), before: TreeIndex(of: root))
    // A change is known by its time, and file systems keep times in ticks of up to 10 ms.
    Thread.sleep(forTimeInterval: 0.02)
    return copy
  }

  /// Copies what is in a directory, and then the directory's metadata: its time would change otherwise.
  private func copy(
    _ directory: ContainerPath, into root: Directory, _ linked: inout [FileIdentity: ContainerPath]
  ) throws {
    for path in try children(of: directory) {
      guard try !isMount(path), let status = try status(of: path) else { continue }
      switch status.type {
      case .directory:
        try root.createDirectory(path)
        try copy(path, into: root, &linked)
        continue
      case .symbolicLink: try root.createLink(path, target: linkTarget(path))
      case .file:
        if try isSidecar(path) { continue }
        if status.links > 1 {
          if let first = linked[status.identity] {
            try root.link(first, in: root, to: path)
            continue
          }
          linked[status.identity] = path
        }
        if try isDatabase(path) {
          try copyDatabase(path, into: root)
        } else {
          try copyContents(path, status, into: root)
        }
      case .other: continue
      }
      try copyMetadata(of: path, into: root)
    }
    try copyMetadata(of: directory, into: root)
  }

  private func copyMetadata(of path: ContainerPath, into root: Directory) throws {
    if let metadata = try metadata(of: path) { try root.apply(metadata, to: path) }
  }

  private func copyDatabase(_ path: ContainerPath, into root: Directory) throws {
    do {
      try stage.directory.rename(newDatabaseFile(of: path), in: root, to: path)
    } catch let error as DrydockError where error.code == .malformed {
      // A database that SQLite cannot open, such as an encrypted one, is copied unchanged, with its sidecars.
      for part in [path] + DatabaseFormat.sidecarSuffixes.map(path.withSuffix) {
        guard let status = try status(of: part), status.type == .file else { continue }
        try copyContents(part, status, into: root)
        if part != path { try copyMetadata(of: part, into: root) }
      }
    }
  }

  private func copyContents(_ path: ContainerPath, _ status: FileStatus, into root: Directory) throws {
    try stage.requireSpace(status.space, for: path)
    let location = location(of: path)
    try location.directory.copyContents(of: location.path, to: path, in: root)
  }

  /// Whether another file system is mounted at a live path. A group's root may be anywhere.
  private func isMount(_ path: ContainerPath) throws -> Bool {
    guard stage.overlay[path] == nil, !live.isRoot(path), let status = try live.status(path),
      let above = try live.status(path.parent)
    else { return false }
    return status.mount != above.mount
  }
}

/// Staging what a program has changed in its copy. A file is taken by its inode: it is not copied again.
extension StagedContainer {
  /// - Throws: ``DrydockError`` `checkFailed` when something cannot be taken over.
  private func adopt(_ copy: PrivateCopy) throws {
    let (root, before, after) = try (copy.root, copy.before, TreeIndex(of: copy.root))
    // Whatever moves the change time may have changed anything: contents, mode, owner, attributes, names.
    let timesAreReliable = !root.isInMemory()
    let changed = after.filter { before[$0] != $1 || (!timesAreReliable && $1.type == .file) }
    let removed = before.paths.filter { after[$0] == nil }
    // The main files of the databases that changed, or have a log or journal now.
    let databases = try Set(
      after.filter { path, status in
        guard status.type == .file else { return false }
        let hasSidecar = DatabaseFormat.sidecarSuffixes.map(path.withSuffix).contains {
          after[$0] != nil && before[$0] != after[$0]
        }
        guard changed[path] != nil || hasSidecar else { return false }
        return try root.status(path).flatMap { try root.databaseUnit(path, status: $0) } != nil
      }.paths)
    for path in removed + changed.paths where container.isHistory(path) && before[path] != after[path] {
      throw unusable("the migration history must not change", path)
    }
    for path in removed.sorted().reversed() where try status(of: path) != nil {
      try remove(path, withExternalData: false)
    }
    try adoptDirectory(.root, of: root)
    // All names of an inode that has several, then and now; and the one that was taken over.
    let (namesBefore, namesAfter) = (before.namesOfInodes(), after.namesOfInodes())
    var firstNames: [FileIdentity: ContainerPath] = [:]
    for (path, status) in changed where !container.isHistory(path) {
      switch status.type {
      case .directory: try adoptDirectory(path, of: root)
      case .symbolicLink: try adoptLink(path, of: root)
      case .file:
        if databases.contains(path) || DatabaseUnit.main(ofSidecar: path).map(databases.contains) == true {
          continue
        }
        if let first = firstNames[status.identity] {
          try adoptName(path, ofFile: first)
        } else {
          firstNames[status.identity] = path
          let names = before[path].flatMap { namesBefore[$0.identity] }
          try adoptFile(path, status.size, of: root, namesStay: names == namesAfter[status.identity])
        }
      case .other:
        throw unusable("a socket, FIFO or device, which a migration cannot add to a container", path)
      }
    }
    for path in databases.sorted() { try adoptDatabase(path, of: root) }
  }

  private func unusable(_ message: String, _ path: ContainerPath) -> DrydockError {
    DrydockError(
      .checkFailed, "the result of the script cannot be used: \(message)", path: path.description)
  }

  /// What a path has in the copy.
  private func metadata(of path: ContainerPath, in root: Directory) throws -> FileMetadata {
    guard let metadata = try root.metadata(path) else {
      throw unusable("it vanished while it was read", path)
    }
    return metadata
  }

  /// Whether a path has in the copy what it was given there, which may be less than it has in the stage.
  ///
  /// - Parameter withTime: false where a time alone means nothing.
  private func has(
    _ metadata: FileMetadata, at path: ContainerPath, _ type: FileType, withTime: Bool = true
  ) throws -> Bool {
    guard let wanted = try self.metadata(of: path) else { return false }
    var given = try attainable(wanted, for: type)
    if !withTime { given.modified = metadata.modified }
    return given == metadata
  }

  private func adoptDirectory(_ path: ContainerPath, of root: Directory) throws {
    let metadata = try metadata(of: path, in: root)
    let isThere = try status(of: path)?.type == .directory
    if try isThere && has(metadata, at: path, .directory, withTime: false) { return }
    try putDirectory(at: path, metadata: metadata)
  }

  private func adoptLink(_ path: ContainerPath, of root: Directory) throws {
    let target = try root.linkTarget(path)
    let metadata = try metadata(of: path, in: root)
    if try status(of: path)?.type == .symbolicLink, try linkTarget(path) == target,
      try has(metadata, at: path, .symbolicLink)
    {
      return
    }
    try makeRoom(at: path)
    try putLink(at: path, target: target, metadata: metadata)
  }

  /// - Parameter first: another name of the same inode, which was taken over.
  private func adoptName(_ path: ContainerPath, ofFile first: ContainerPath) throws {
    if let there = try status(of: path), try there.identity == status(of: first)?.identity { return }
    try makeRoom(at: path)
    try putHardLink(at: path, to: first)
  }

  private func adoptFile(
    _ path: ContainerPath, _ size: UInt64, of root: Directory, namesStay: Bool
  ) throws {
    let metadata = try metadata(of: path, in: root)
    if let now = try status(of: path), namesStay, now.type == .file, now.size == size,
      try !isDatabase(path), try ContentHash.of(path, in: root, isDatabase: false) == digest(of: path)
    {
      if try !has(metadata, at: path, .file) { try setMetadata(metadata, of: path) }
      return
    }
    try take(path, from: root)
  }

  private func adoptDatabase(_ path: ContainerPath, of root: Directory) throws {
    guard let status = try root.status(path), let unit = try root.databaseUnit(path, status: status) else {
      return
    }
    let metadata = try metadata(of: path, in: root)
    let name = stage.newName()
    guard try captureUnit(unit, in: root, as: name, requiresStable: true) == nil else {
      // A database that SQLite cannot open is copied unchanged.
      for part in [path] + unit.sidecars { try take(part, from: root) }
      return
    }
    if try has(metadata, at: path, .file, withTime: false), try isDatabase(path),
      try ContentHash.of(name, in: stage.directory, isDatabase: true) == databaseDigest(path)
    {
      return try stage.directory.removeFile(name)
    }
    try stage.directory.apply(metadata, to: name)
    try makeRoom(at: path)
    try put(StagedInode(name: name, type: .file), at: path)
  }

  private func take(_ path: ContainerPath, from root: Directory) throws {
    let name = stage.newName()
    try root.rename(path, in: stage.directory, to: name)
    try makeRoom(at: path)
    try put(StagedInode(name: name, type: .file), at: path)
  }

  /// What is of another kind goes first: nothing of a directory must be left below a file.
  private func makeRoom(at path: ContainerPath) throws {
    if try status(of: path)?.type == .directory { try remove(path, withExternalData: false) }
  }
}

extension TreeIndex {
  /// The names of each file that has several.
  fileprivate func namesOfInodes() -> [FileIdentity: Set<ContainerPath>] {
    Dictionary(grouping: filter { $1.type == .file }.paths) { self[$0]?.identity }
      .reduce(into: [:]) { result, group in
        if let identity = group.key, group.value.count > 1 { result[identity] = Set(group.value) }
      }
  }
}
