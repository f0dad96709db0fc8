import AppContainer
import Cryptography
import DrydockErrors
import FileSystem

/// The changes that a stage makes, as they are committed and can be undone.
struct ChangeList {
  private(set) var changes: ChangeRecords
  /// Directories that stay and whose names change: they get the commit's time.
  private(set) var touchedDirectories: Set<ContainerPath> = []
  /// The commit's time, nanoseconds since 1970.
  let time: Int64

  /// Reads every staged file once, for its digest.
  init(_ staged: StagedContainer) throws {
    time = try staged.now()
    let overlay = staged.stage.overlay
    changes = ChangeRecords(sharing: overlay.made)
    touchedDirectories = try Self.touchedDirectories(staged)
    // Both are sorted, and so is what they give together.
    var directories = touchedDirectories.filter { overlay[$0] == nil }.sorted()[...]
    for path in overlay.paths {
      while let directory = directories.first, directory < path {
        try addTouched(directories.removeFirst(), staged)
      }
      try add(path, staged)
    }
    for directory in directories { try addTouched(directory, staged) }
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

  private mutating func add(_ path: ContainerPath, _ staged: StagedContainer) throws {
    guard let node = staged.stage.overlay[path] else { return }
    guard !([path] + path.ancestors).contains(where: staged.live.isState) else {
      throw DrydockError(
        .exists, "reserved for Drydock's state; choose another path", path: path.description)
    }
    let before = try Self.before(path, staged)
    let after = try Self.after(node, path, staged)
    if before == nil && after == nil { return }
    var change = ChangeRecord(
      path: path, granularity: try Self.granularity(path, before, after, staged), before: before,
      after: after)
    if before.map({ $0.type != .directory }) ?? false { change.kept = Self.name("before", changes.count) }
    if [.settings, .vault].contains(change.granularity), after != nil {
      change.settingsAfter = Self.name("after", changes.count)
    }
    let made = staged.stage.overlay.recordNumber(of: path)
    // One without a digest has got it only now.
    changes.append(
      change, sharedAfter: made.flatMap { staged.stage.overlay.made[$0].digest == nil ? nil : $0 })
  }

  private mutating func addTouched(_ directory: ContainerPath, _ staged: StagedContainer) throws {
    guard let before = try Self.before(directory, staged) else { return }
    var after = before
    after.metadata.modified = time
    changes.append(ChangeRecord(path: directory, granularity: .directory, before: before, after: after))
  }

  private static func name(_ prefix: String, _ number: Int) -> ContainerPath {
    ContainerPath(name: Array("\(prefix)-\(number)".utf8))
  }

  private static func before(_ path: ContainerPath, _ staged: StagedContainer) throws -> NodeRecord? {
    guard let status = try staged.live.status(path), let metadata = try staged.live.metadata(path) else {
      return nil
    }
    let isDirectory = status.type == .directory
    return NodeRecord(
      type: status.type, metadata: metadata, size: isDirectory ? 0 : status.size,
      flags: isDirectory ? try staged.live.flags(of: path) : nil)
  }

  private static func after(
    _ node: Overlay.Node, _ path: ContainerPath, _ staged: StagedContainer
  ) throws -> NodeRecord? {
    switch node {
    case .removed: return nil
    case .directory(let metadata): return NodeRecord(type: .directory, metadata: metadata, size: 0)
    case .inode(let inode):
      if let made = inode.made, let digest = inode.digest {
        return NodeRecord(type: inode.type, metadata: made.metadata, size: made.size, digest: digest)
      }
      guard let status = try staged.stage.directory.status(inode.name),
        let metadata = try staged.stage.directory.metadata(inode.name)
      else { return nil }
      var record = NodeRecord(type: inode.type, metadata: metadata, size: status.size, digest: inode.digest)
      if record.digest == nil {
        // A main file that is not recognized without its staged log.
        let isLogged = inode.type == .file && !staged.stagedSidecars(of: path).isEmpty
        record.digest = try isLogged ? staged.databaseOrFileDigest(path) : staged.contentDigest(of: path)
      }
      return record
    }
  }

  private static func granularity(
    _ path: ContainerPath, _ before: NodeRecord?, _ after: NodeRecord?, _ staged: StagedContainer
  ) throws -> ChangeRecord.Granularity {
    if (after ?? before)?.type == .directory { return .directory }
    let areFiles = (before?.type ?? .file) == .file && (after?.type ?? .file) == .file
    if areFiles && path == staged.container.vaultPath { return .vault }
    if areFiles && staged.container.isSettings(path) { return .settings }
    let isDatabase: Bool
    if case .inode(let inode) = staged.stage.overlay[path], let made = inode.made {
      isDatabase = made.isDatabase
    } else {
      isDatabase = try staged.isDatabase(path)
    }
    if isDatabase { return .database }
    if try staged.liveContainer.isDatabase(path) { return .database }
    return try before != nil && staged.liveContainer.isSidecar(path) ? .sidecar : .file
  }
}
