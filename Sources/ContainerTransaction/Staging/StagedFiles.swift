import AppStores
import DrydockErrors
import FileSystem
import Foundation

extension StagedContainer {
  /// Writes a file. Missing parents are made; what it replaces keeps its mode, owner and attributes, and a new
  /// file gets its directory's owner.
  ///
  /// - Parameter mode: permission bits that the file has to have, whatever it had before.
  package func write(_ bytes: [UInt8], to path: ContainerPath, mode: UInt16? = nil) throws {
    try write(to: path, size: UInt64(bytes.count), mode: mode) { try $0.write(bytes) }
  }

  /// The same for a content that a closure writes in pieces.
  package func write(
    to path: ContainerPath, size: UInt64, mode: UInt16? = nil, fill: (StageFile) throws -> Void
  ) throws {
    let existing = try status(of: path)
    if let existing, existing.type != .file {
      throw DrydockError(
        .exists,
        "cannot write the file: a \(existing.type == .directory ? "directory" : "link") exists at this path",
        path: path.description)
    }
    var metadata = try existing == nil ? newMetadata(in: path.parent, mode: 0o644) : self.metadata(of: path)
    if let mode { metadata?.mode = mode }
    if existing == nil { metadata?.protection = container.configuration.protection.rule(for: path)?.required }
    metadata?.modified = try now()
    try putFile(at: path, metadata: metadata, size: size, fill: fill)
    for previous in try present(at: path) where previous != path { try remove(previous) }
  }

  /// Puts a file with metadata that is known already, such as an archive's.
  ///
  /// - Parameter fill: writes the content into the open file of the stage.
  package func putFile(
    at path: ContainerPath, metadata: FileMetadata?, size: UInt64,
    fill: (StageFile) throws -> Void
  ) throws {
    try stage.requireSpace(size, for: path)
    try createDirectory(path.parent)
    let name = stage.newName()
    try StageFile.make(name, in: stage.directory, metadata, size: size, fill: fill)
    try put(StagedInode(name: name, type: .file), at: path)
  }

  package func putLink(at path: ContainerPath, target: [UInt8], metadata: FileMetadata?) throws {
    let name = stage.newName()
    try stage.directory.createLink(name, target: target)
    if let metadata { try stage.directory.apply(metadata, to: name) }
    try put(StagedInode(name: name, type: .symbolicLink), at: path)
  }

  /// Stages an inode of an undo entry by a link to it, or by a copy where it cannot be linked: when the
  /// container was mounted since, the undo is on another file system or behind another mount.
  ///
  /// A main file comes without the mark of a replaced one. A dry run takes a copy of such a file, and leaves the mark.
  func adopt(_ source: ContainerPath, in directory: Directory, type: FileType, at path: ContainerPath) throws
  {
    let name = stage.newName()
    let isMarked = try type == .file && directory.isReplaced(source)
    var isShared = !(isMarked && transaction.isEmpty)
    do {
      if isShared { try directory.link(source, in: stage.directory, to: name) }
    } catch let error as DrydockError where error.meansNoLink {
      isShared = false
    }
    if !isShared { try copy(source, in: directory, directory.metadata(source), to: name, for: path) }
    try put(StagedInode(name: name, type: type, isShared: isShared), at: path)
    if isMarked {
      // An unseen process that still waits for its lock would continue with it.
      _ = try DatabaseLock.acquire(returning: name, in: stage.directory, to: path)
      if isShared { adopted.append((directory, source)) }
      try stage.directory.unmarkReplaced(name)
    } else if isShared && !transaction.isEmpty {
      try stage.directory.settleMark(name)
    }
  }

  /// Copies a file or link into the stage.
  private func copy(
    _ source: ContainerPath, in directory: Directory, _ metadata: FileMetadata?, to name: ContainerPath,
    for path: ContainerPath
  ) throws {
    let status = try directory.status(source)
    switch status?.type {
    case .symbolicLink: try stage.directory.createLink(name, target: directory.linkTarget(source))
    case .directory, .other:
      throw DrydockError(.unsupported, "a socket, FIFO or device cannot be copied", path: path.description)
    case .file, nil:
      try stage.requireSpace(status?.space ?? 0, for: path)
      try directory.copyContents(of: source, to: name, in: stage.directory)
    }
    if let metadata { try stage.directory.apply(metadata, to: name) }
  }

  /// Marks the files of undo entries again, after a failure.
  func markAdopted() throws {
    for main in adopted { try main.undo.markReplaced(main.name, links: 2) }
  }

  /// Gives a staged path the inode of another one: a hard link.
  package func putHardLink(at path: ContainerPath, to other: ContainerPath) throws {
    let inode = try own(other)
    let name = stage.newName()
    try stage.directory.link(inode.name, in: stage.directory, to: name)
    try put(StagedInode(name: name, type: inode.type), at: path)
  }

  /// Refuses paths of which the file system takes two for one, such as `a` and `A`: only one of them could be there.
  ///
  /// - Parameter paths: sorted; read only where the file system takes any two names for one.
  package func requireDistinctNames<Paths: Sequence<ContainerPath>>(
    _ paths: @autoclosure () throws -> Paths
  ) throws {
    let samples = [("a", "A"), ("\u{E9}", "e\u{301}")].map { (Array($0.utf8), Array($1.utf8)) }
    guard try samples.contains(where: { try stage.takes($0, for: $1) }) else { return }
    // On the way to the last path: the name in each directory, and all names of it so far, by their folded form.
    var way: [(name: [UInt8], seen: [String: [UInt8]])] = []
    for path in try paths() {
      for (depth, name) in path.components.enumerated() {
        if depth == way.count { way.append(([], [:])) }
        if way[depth].name == name { continue }
        way.removeSubrange((depth + 1)...)
        way[depth].name = name
        // As keys, strings in two Unicode forms are equal.
        let folded = String(decoding: name, as: UTF8.self).lowercased().uppercased()
        guard let other = way[depth].seen.updateValue(name, forKey: folded), other != name,
          try stage.takes(name, for: other)
        else { continue }
        let parent = ContainerPath(unchecked: Array(way[..<depth].map { $0.name }.joined(separator: [0x2F])))
        throw DrydockError(
          .unsupported,
          "cannot hold both \(parent.appending(name: other)) and \(parent.appending(name: name)): its file system "
            + "takes names that differ only in case or Unicode form for one; choose a place on another one",
          path: container.root)
      }
    }
  }

  /// Makes a directory and those above it that are missing; an existing one is fine.
  package func createDirectory(_ path: ContainerPath) throws {
    if path.isRoot { return }
    if let existing = try status(of: path) {
      if existing.type == .directory { return }
      throw DrydockError(
        .exists, "cannot create the directory: a file exists at this path", path: path.description)
    }
    if path == .groups && container.configuration.groups.isEmpty {
      throw DrydockError(
        .missing,
        "groups are shown here, and drydock.yaml names none; add `groups: {ID: DIRECTORY}`",
        path: path.description)
    }
    try requireGroup(of: path)
    try createDirectory(path.parent)
    stage.overlay.set(.directory(try newMetadata(in: path.parent, mode: 0o755)), at: path)
  }

  /// Puts a directory with its metadata, or changes those of an existing one; the root's too.
  ///
  /// - Parameter flags: what `chattr` had set on one that comes back.
  package func putDirectory(
    at path: ContainerPath, metadata: FileMetadata, flags: InodeFlags? = nil
  ) throws {
    if let existing = try status(of: path), existing.type != .directory {
      try remove(path, withExternalData: false)
    }
    if !path.isRoot { try createDirectory(path.parent) }
    try requireGroup(of: path)
    stage.overlay.directoryFlags[path] = flags ?? stage.overlay.directoryFlags[path]
    stage.overlay.set(.directory(metadata), at: path)
  }

  /// Groups are made by their configuration: a path in one that does not exist, and the list itself, is an error.
  private func requireGroup(of path: ContainerPath) throws {
    guard let reason = container.reason(againstGroupOf: path) else { return }
    throw DrydockError(.missing, reason, path: path.description)
  }

  package func setMetadata(_ metadata: FileMetadata, of path: ContainerPath) throws {
    guard let status = try status(of: path) else { throw missing(path) }
    if status.type == .directory { return stage.overlay.set(.directory(metadata), at: path) }
    try stage.directory.apply(metadata, to: own(path).name)
  }

  /// Removes a path, with everything below it; a database with its sidecars and external data.
  ///
  /// - Parameter withExternalData: false when the caller decides about the external data.
  package func remove(_ path: ContainerPath, withExternalData: Bool = true) throws {
    guard !live.isRoot(path), !live.isGroupList(path) else {
      let what = path.isRoot ? "the container itself" : "the root of a group"
      throw DrydockError(
        .badPath, "\(what) cannot be removed; name what is in it", path: live.full(path))
    }
    guard try status(of: path) != nil else { throw missing(path) }
    if let unit = try databaseUnit(at: path) {
      let external = withExternalData ? [unit.externalData].compactMap { $0 } : []
      for part in try (unit.sidecars + external).filter({ try status(of: $0) != nil }) { try removeOne(part) }
    }
    try removeOne(path)
  }

  private func removeOne(_ path: ContainerPath) throws {
    for below in try descendants(of: path) + [path] {
      stage.overlay.set(try live.status(below) == nil ? nil : .removed, at: below)
      stage.overlay.origins[below] = nil
    }
  }

  /// Moves a path with everything below it. A database goes with its external data and arrives as one
  /// consistent file, without sidecars; SharedPreferences arrive as the app reads them, without a previous version.
  ///
  /// - Throws: ``DrydockError``: `missing`, or `exists` when something is at the target.
  package func move(_ source: ContainerPath, to target: ContainerPath) throws {
    let read = try settingsSource(of: source)
    let moved = try descendants(of: read) + [read]
    try copy(read, to: target)
    for path in moved {
      let new = path == read ? target : path.rebased(from: read, to: target)
      stage.overlay.origins[new] = stage.overlay.origins[path] ?? (path == read ? source : path)
      if let before = databasesBefore.removeValue(forKey: path) { databasesBefore[new] = before }
    }
    if try status(of: source) != nil { try remove(source) }
    if read != source { try remove(read) }
  }

  /// Copies a path with everything below it; see ``move(_:to:)``.
  package func copy(_ source: ContainerPath, to target: ContainerPath) throws {
    let source = try settingsSource(of: source)
    guard let status = try status(of: source) else { throw missing(source) }
    guard try present(at: target).isEmpty else {
      throw DrydockError(.exists, "already exists", path: target.description)
    }
    guard !target.isInside(source) else {
      throw DrydockError(.exists, "cannot go into itself, to \(target)", path: source.description)
    }
    // A wrong parent is reported before anything is copied.
    try createDirectory(target.parent)
    if let external = try databaseUnit(at: source)?.externalData {
      try copy(external, to: DatabaseUnit.externalDataPath(of: target))
    }
    guard status.type == .directory else { return try put(stagedCopy(of: source), at: target) }
    guard let metadata = try metadata(of: source) else { throw missing(source) }
    try putDirectory(at: target, metadata: metadata)
    for child in try children(of: source) {
      let childTarget = child.rebased(from: source, to: target)
      if try self.status(of: child)?.type == .directory {
        try copy(child, to: childTarget)
      } else if try !isSidecar(child) {
        // A database's external data is another child.
        try put(stagedCopy(of: child), at: childTarget)
      }
    }
  }

  /// A staged inode for a path, made by copying the live one when there is none yet.
  func own(_ path: ContainerPath) throws -> StagedInode {
    if case .inode(var inode) = stage.overlay[path], !inode.isShared {
      // The caller may change it.
      (inode.made, inode.digest) = (nil, nil)
      stage.overlay.set(.inode(inode), at: path)
      return inode
    }
    let inode = try stagedCopy(of: path)
    try put(inode, at: path)
    return inode
  }

  /// A copy of a file, link or database in the stage, with its metadata.
  private func stagedCopy(of path: ContainerPath) throws -> StagedInode {
    guard let type = try status(of: path)?.type, let metadata = try metadata(of: path) else {
      throw missing(path)
    }
    let source = location(of: path)
    if try source.directory === live && isDatabase(path) {
      let name = try newDatabaseFile(of: path)
      try stage.directory.apply(metadata, to: name)
      return StagedInode(name: name, type: type)
    }
    let name = stage.newName()
    try copy(source.path, in: source.directory, metadata, to: name, for: path)
    return StagedInode(name: name, type: type)
  }

  /// Puts an inode at a path. Missing parents are made; sidecars of a database that is replaced go with the old content.
  func put(_ inode: StagedInode, at path: ContainerPath) throws {
    try createDirectory(path.parent)
    try prepareReplacement(of: path)
    stage.overlay.set(.inode(inode), at: path)
  }

  /// SQLite would play the log of another database into one that arrives, where none was before: what is there is removed.
  func removeStraySidecars() throws {
    for path in stage.overlay.paths {
      guard case .inode(let inode) = stage.overlay[path], inode.type == .file, inode.made?.isDatabase ?? true
      else { continue }
      for sidecar in DatabaseFormat.sidecarSuffixes.map(path.withSuffix)
      where try stage.overlay[sidecar] == nil && live.status(sidecar) != nil && isDatabase(path) {
        stage.overlay.set(.removed, at: sidecar)
      }
    }
  }

  /// - Parameter isLive: false if the live container has nothing at the path.
  func prepareReplacement(of path: ContainerPath, isLive: Bool = true) throws {
    try requireGroup(of: path)
    let sidecars = isLive ? try liveContainer.databaseUnit(path)?.sidecars ?? [] : []
    for sidecar in sidecars where stage.overlay[sidecar] == nil {
      stage.overlay.set(.removed, at: sidecar)
    }
  }

  private func newMetadata(in parent: ContainerPath, mode: UInt16) throws -> FileMetadata {
    let above = try status(of: parent) ?? live.status()
    return try FileMetadata(
      mode: mode, user: above.user, group: above.group, modified: now(), attributes: [])
  }

  /// The present time as files here can have it: some file systems keep whole seconds.
  func now() throws -> Int64 {
    let metadata = FileMetadata(
      mode: 0o700, user: geteuid(), group: getegid(), modified: Self.now(), attributes: [])
    return try attainable(metadata, for: .directory).modified
  }

  /// Nanoseconds since 1970.
  static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000_000) * 1000 }
}
