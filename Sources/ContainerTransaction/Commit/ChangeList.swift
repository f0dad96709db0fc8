import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem

/// The changes that a stage makes, as they are committed and can be undone.
extension ChangeRecords {
  /// Reads every staged file once, for its digest. Directories that stay and whose names change get the time of now.
  init(of staged: StagedContainer) throws {
    let time = try staged.now()
    let overlay = staged.stage.overlay
    self.init(sharing: overlay.made)
    // Both are sorted, and so is what they give together.
    var directories = try Self.touchedDirectories(staged).filter { overlay[$0] == nil }.sorted()[...]
    let live = LastDirectory(staged.live)
    for path in overlay.paths {
      while let directory = directories.first, directory < path {
        try appendTouched(directories.removeFirst(), time, staged)
      }
      try append(path, live, staged)
    }
    for directory in directories { try appendTouched(directory, time, staged) }
  }

  private static func touchedDirectories(_ staged: StagedContainer) throws -> Set<ContainerPath> {
    var (touched, last): (Set<ContainerPath>, ContainerPath?) = ([], nil)
    for path in staged.stage.overlay.paths where path.parent != last {
      switch staged.stage.overlay[path] {
      case .inode: break
      case .directory: if try staged.live.status(path)?.type == .directory { continue }
      case .removed, nil: if try staged.live.status(path) == nil { continue }
      }
      last = path.parent
      touched.insert(path.parent)
    }
    return touched
  }

  private mutating func append(
    _ path: ContainerPath, _ live: LastDirectory, _ staged: StagedContainer
  ) throws {
    guard let node = staged.stage.overlay[path] else { return }
    guard !([path] + path.ancestors).contains(where: staged.live.isState) else {
      throw DrydockError(
        .exists, "reserved for Drydock's state; choose another path", path: path.description)
    }
    let before = try NodeRecord(live.status(of: path), liveAt: path, staged)
    let after = try NodeRecord(node, at: path, staged)
    if before == nil && after == nil { return }
    var change = ChangeRecord(
      path: path, granularity: try staged.granularity(path, before, after), before: before, after: after)
    if before.map({ $0.type != .directory }) ?? false { change.kept = Self.name("before", count) }
    if [.settings, .vault].contains(change.granularity), after != nil {
      change.settingsAfter = Self.name("after", count)
    }
    let made = staged.stage.overlay.recordNumber(of: path)
    // One without a digest has got it only now.
    append(change, sharedAfter: made.flatMap { staged.stage.overlay.made[$0].digest == nil ? nil : $0 })
  }

  private mutating func appendTouched(
    _ directory: ContainerPath, _ time: Int64, _ staged: StagedContainer
  ) throws {
    guard let before = try NodeRecord(staged.live.status(directory), liveAt: directory, staged) else {
      return
    }
    var after = before
    after.metadata.modified = time
    append(ChangeRecord(path: directory, granularity: .directory, before: before, after: after))
  }
}

extension NodeRecord {
  /// What is at a path before the commit; nil for nothing.
  fileprivate init?(_ status: FileStatus?, liveAt path: ContainerPath, _ staged: StagedContainer) throws {
    guard let status, let metadata = try staged.live.metadata(path, status) else { return nil }
    let isDirectory = status.type == .directory
    self.init(
      type: status.type, metadata: metadata, size: isDirectory ? 0 : status.size,
      flags: isDirectory ? try staged.live.flags(of: path) : nil)
  }

  /// What a node of the overlay will be; nil for nothing.
  fileprivate init?(_ node: Overlay.Node, at path: ContainerPath, _ staged: StagedContainer) throws {
    switch node {
    case .removed: return nil
    case .directory(let metadata): self.init(type: .directory, metadata: metadata, size: 0)
    case .inode(let inode):
      if let made = inode.made, let digest = inode.digest {
        self.init(type: inode.type, metadata: made.metadata, size: made.size, digest: digest)
        return
      }
      guard let status = try staged.stage.directory.status(inode.name),
        let metadata = try staged.stage.directory.metadata(inode.name)
      else { return nil }
      self.init(type: inode.type, metadata: metadata, size: status.size, digest: inode.digest)
      if digest == nil {
        // A main file that is not recognized without its staged log.
        let isLogged = inode.type == .file && !staged.stagedSidecars(of: path).isEmpty
        digest = try isLogged ? staged.databaseOrFileDigest(path) : staged.contentDigest(of: path)
      }
    }
  }
}

extension StagedContainer {
  fileprivate func granularity(
    _ path: ContainerPath, _ before: NodeRecord?, _ after: NodeRecord?
  ) throws -> ChangeRecord.Granularity {
    if (after ?? before)?.type == .directory { return .directory }
    let areFiles = (before?.type ?? .file) == .file && (after?.type ?? .file) == .file
    if areFiles && path == container.vaultPath { return .vault }
    if areFiles && container.isSettings(path) { return .settings }
    let isDatabase: Bool
    if case .inode(let inode) = stage.overlay[path], let made = inode.made {
      isDatabase = made.isDatabase
    } else {
      isDatabase = try self.isDatabase(path)
    }
    if try isDatabase || (before != nil && liveContainer.isDatabase(path)) { return .database }
    return try before != nil && liveContainer.isSidecar(path) ? .sidecar : .file
  }
}
