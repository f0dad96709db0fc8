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
  let before: TreeIndex

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
    try CopyAdoption(of: copy, by: self).run()
    return result
  }

  private func makeCopy(in folder: Directory) throws -> PrivateCopy {
    let (container, work): (ContainerPath, ContainerPath) = ("container", "work")
    for name in [container, work] { try folder.createDirectory(name) }
    let root = try folder.directory(container)
    // The first path of each inode that has several names.
    var linked: [FileIdentity: ContainerPath] = [:]
    try copy(.root, into: root, &linked)
    let copy = PrivateCopy(root: root, work: try folder.directory(work), before: try TreeIndex(of: root))
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
      // One that SQLite cannot open, an encrypted one, is for the program to understand: as it is, with its sidecars.
      for part in [path] + DatabaseFormat.sidecarSuffixes.map(path.withSuffix) {
        guard let status = try status(of: part), status.type == .file else { continue }
        try copyContents(part, status, into: root)
        if part != path { try copyMetadata(of: part, into: root) }
      }
    }
  }

  private func copyContents(_ path: ContainerPath, _ status: FileStatus, into root: Directory) throws {
    try stage.requireSpace(min(status.size, status.blocks * 512), for: path)
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

/// Stages what a program has changed in a private copy. A file is taken by its inode: it is not copied again.
struct CopyAdoption {
  private let staged: StagedContainer
  private let root: Directory
  private let before: TreeIndex
  private let after: TreeIndex
  /// Whether an unchanged change time proves that a file is unchanged; otherwise each is compared.
  private let timesAreReliable: Bool
  /// All names of an inode that has several, then and now.
  private let namesBefore: [FileIdentity: Set<ContainerPath>]
  private let namesAfter: [FileIdentity: Set<ContainerPath>]

  init(of copy: PrivateCopy, by staged: StagedContainer) throws {
    self.staged = staged
    root = copy.root
    before = copy.before
    after = try TreeIndex(of: copy.root)
    timesAreReliable = !root.isInMemory()
    namesBefore = before.namesOfInodes()
    namesAfter = after.namesOfInodes()
  }

  /// - Throws: ``DrydockError`` `checkFailed` when something cannot be taken over.
  func run() throws {
    let removed = before.paths.filter { after[$0] == nil }
    let databases = try changedDatabases()
    let changed = after.filter { mayDiffer($0, $1) }.paths.sorted()
    for path in removed + changed where isHistory(path) && before[path] != after[path] {
      throw failure("the migration history must not change", path)
    }
    for path in removed.sorted().reversed() where try staged.status(of: path) != nil {
      try staged.remove(path, withExternalData: false)
    }
    try adoptDirectory(.root)
    var firstNames: [FileIdentity: ContainerPath] = [:]
    for path in changed where !isHistory(path) {
      guard let status = after[path] else { continue }
      switch status.type {
      case .directory: try adoptDirectory(path)
      case .symbolicLink: try adoptLink(path)
      case .file:
        if databases.contains(path) || DatabaseUnit.main(ofSidecar: path).map(databases.contains) == true {
          continue
        }
        let first = firstNames[status.identity]
        firstNames[status.identity] = first ?? path
        try adoptFile(path, first: first)
      case .other:
        throw failure("a socket, FIFO or device, which a migration cannot add to a container", path)
      }
    }
    for path in databases.sorted() { try adoptDatabase(path) }
  }

  /// Whatever moves the change time may have changed anything: contents, mode, owner, attributes, names.
  private func mayDiffer(_ path: ContainerPath, _ now: IndexedStatus) -> Bool {
    before[path] != now || (!timesAreReliable && now.type == .file)
  }

  /// The main files of the databases that changed, or have a log or journal now.
  private func changedDatabases() throws -> Set<ContainerPath> {
    var databases: Set<ContainerPath> = []
    for (path, status) in after where status.type == .file {
      let isNew = mayDiffer(path, status)
      let hasSidecar = DatabaseFormat.sidecarSuffixes.contains {
        let sidecar = path.withSuffix($0)
        return after[sidecar] != nil && before[sidecar] != after[sidecar]
      }
      guard isNew || hasSidecar, let full = try root.status(path) else { continue }
      if try root.databaseUnit(path, status: full) != nil { databases.insert(path) }
    }
    return databases
  }

  private func isHistory(_ path: ContainerPath) -> Bool { staged.container.isHistory(path) }

  private func failure(_ message: String, _ path: ContainerPath) -> DrydockError {
    DrydockError(
      .checkFailed, "the result of the script cannot be used: \(message)", path: path.description)
  }

  /// What a path has in the copy.
  private func metadata(_ path: ContainerPath) throws -> FileMetadata {
    guard let metadata = try root.metadata(path) else { throw failure("it vanished while it was read", path) }
    return metadata
  }

  /// Whether a path has in the copy what it was given there, which may be less than it has in the stage.
  ///
  /// - Parameter withTime: false where a time alone means nothing.
  private func isSame(
    _ metadata: FileMetadata, _ path: ContainerPath, _ type: FileType, withTime: Bool = true
  ) throws -> Bool {
    guard let wanted = try staged.metadata(of: path) else { return false }
    var given = try staged.attainable(wanted, for: type)
    if !withTime { given.modified = metadata.modified }
    return given == metadata
  }

  private func adoptDirectory(_ path: ContainerPath) throws {
    let metadata = try metadata(path)
    let isThere = try staged.status(of: path)?.type == .directory
    if try isThere && isSame(metadata, path, .directory, withTime: false) { return }
    try staged.putDirectory(at: path, metadata: metadata)
  }

  private func adoptLink(_ path: ContainerPath) throws {
    let target = try root.linkTarget(path)
    let metadata = try metadata(path)
    if try staged.status(of: path)?.type == .symbolicLink, try staged.linkTarget(path) == target,
      try isSame(metadata, path, .symbolicLink)
    {
      return
    }
    try makeRoom(path)
    try staged.putLink(at: path, target: target, metadata: metadata)
  }

  /// - Parameter first: another name of the same inode, which was taken over.
  private func adoptFile(_ path: ContainerPath, first: ContainerPath?) throws {
    if let first {
      if try isOneInode(path, first) { return }
      try makeRoom(path)
      return try staged.putHardLink(at: path, to: first)
    }
    let metadata = try metadata(path)
    if try namesStay(path) && hasSameContent(path) {
      if try !isSame(metadata, path, .file) { try staged.setMetadata(metadata, of: path) }
      return
    }
    try makeRoom(path)
    try take(path)
  }

  private func adoptDatabase(_ path: ContainerPath) throws {
    guard let status = try root.status(path), let unit = try root.databaseUnit(path, status: status) else {
      return
    }
    let metadata = try metadata(path)
    let name = staged.stage.newName()
    guard try staged.captureUnit(unit, in: root, as: name, requiresStable: true) == nil else {
      // One that SQLite cannot open is taken as it is.
      try makeRoom(path)
      for part in [path] + unit.sidecars { try take(part) }
      return
    }
    let isSame = try isSame(metadata, path, .file, withTime: false)
    if try isSame && staged.isDatabase(path)
      && ContentHash.of(name, in: staged.stage.directory, isDatabase: true) == staged.databaseDigest(path)
    {
      return try staged.stage.directory.removeFile(name)
    }
    try staged.stage.directory.apply(metadata, to: name)
    try makeRoom(path)
    try staged.createDirectory(path.parent)
    try staged.replace(path, with: .inode(StagedInode(name: name, type: .file)))
  }

  private func take(_ path: ContainerPath) throws {
    let name = staged.stage.newName()
    try root.rename(path, in: staged.stage.directory, to: name)
    try staged.createDirectory(path.parent)
    try staged.replace(path, with: .inode(StagedInode(name: name, type: .file)))
  }

  /// What is of another kind goes first: nothing of a directory must be left below a file.
  private func makeRoom(_ path: ContainerPath) throws {
    guard let status = try staged.status(of: path), status.type == .directory else { return }
    try staged.remove(path, withExternalData: false)
  }

  private func hasSameContent(_ path: ContainerPath) throws -> Bool {
    guard let now = try staged.status(of: path), now.type == .file, now.size == after[path]?.size,
      try !staged.isDatabase(path)
    else { return false }
    return try ContentHash.of(path, in: root, isDatabase: false) == staged.digest(of: path)
  }

  private func isOneInode(_ path: ContainerPath, _ other: ContainerPath) throws -> Bool {
    guard let one = try staged.status(of: path), let two = try staged.status(of: other) else { return false }
    return one.identity == two.identity
  }

  /// Whether the inode of a path has the names that it had.
  private func namesStay(_ path: ContainerPath) throws -> Bool {
    let old = before[path].flatMap { namesBefore[$0.identity] }
    let new = after[path].flatMap { namesAfter[$0.identity] }
    return old == new
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
