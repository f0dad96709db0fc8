import AgeEncryption
import AppContainer

/// Stages the way back of one transaction, path by path.
struct Undoing {
  let staged: StagedContainer
  /// The folder with the retained inodes.
  let kept: Directory
  let discardingNewer: Bool
  private(set) var conflicts: [RollbackConflict] = []
  /// Databases whose old main file was put back: their old sidecars follow.
  private var returned: Set<ContainerPath> = []

  init(staged: StagedContainer, kept: Directory, discardingNewer: Bool) {
    self.staged = staged
    self.kept = kept
    self.discardingNewer = discardingNewer
  }

  mutating func run(_ record: UndoRecord) throws {
    for change in record.changes {
      switch change.grain {
      case .settings: try undoSettings(change)
      case .database, .file: try undoWhole(change)
      case .sidecar, .directory: continue
      }
    }
    // Directories after what is in them, the deepest first: one that was made can go only when it is empty.
    for change in record.changes.reversed() where change.grain == .directory { try undoDirectory(change) }
    for change in record.changes where change.grain == .sidecar { try undoSidecar(change) }
  }

  // MARK: Files and databases

  private mutating func undoWhole(_ change: ChangeRecord) throws {
    let now = try digest(change.path)
    let isAsWritten = now == change.after?.digest && (now == nil) == (change.after == nil)
    if !isAsWritten {
      if now == nil && change.before == nil { return }
      conflicts.append(
        RollbackConflict(
          path: change.path, key: nil, before: describe(change.before), written: describe(change.after),
          now: now == nil ? "absent" : "changed by the app"))
      if !discardingNewer { return }
    }
    if try staged.status(of: change.path) != nil, change.before == nil {
      return try staged.remove(change.path, withExternalData: false)
    }
    try putBack(change)
  }

  private mutating func putBack(_ change: ChangeRecord) throws {
    if let before = change.before, before.type == .directory {
      return try staged.putDirectory(at: change.path, metadata: before.metadata)
    }
    guard let name = change.kept, let before = change.before else { return }
    guard let status = try kept.status(name), status.size == before.size,
      status.modified == before.metadata.modified
    else {
      throw TransactionError(
        .nothingToUndo,
        "the version that was kept has been changed through another hard link; restore it from a "
          + "backup", path: change.path.description)
    }
    if let present = try staged.status(of: change.path), present.type == .directory {
      try staged.remove(change.path)
    }
    try staged.adopt(name, in: kept, type: before.type, at: change.path)
    returned.insert(change.path)
  }

  private mutating func undoSidecar(_ change: ChangeRecord) throws {
    guard change.before != nil else { return }
    for suffix in DatabaseFormat.sidecarSuffixes where change.path.nameString.hasSuffix(suffix) {
      let main = try ContainerPath(bytes: change.path.bytes.dropLast(suffix.utf8.count))
      if returned.contains(main) { return try putBack(change) }
    }
  }

  /// The content's digest as it is now; nil when nothing is there.
  private func digest(_ path: ContainerPath) throws -> SHA256.Digest? {
    guard let status = try staged.status(of: path) else { return nil }
    switch status.type {
    case .symbolicLink: return try SHA256.hash(staged.linkTarget(path))
    case .file:
      guard try staged.isDatabase(path) else {
        return try ContentDigest.of(path, in: staged.live, isDatabase: false)
      }
      return try staged.databaseDigest(path)
    // Something of another kind is never what a transaction wrote.
    case .directory, .other: return try SHA256.hash(Array(status.type.rawValue.utf8))
    }
  }

  private func describe(_ node: NodeRecord?) -> String {
    guard let node else { return "absent" }
    return node.type == .file ? "\(node.size) bytes" : node.type.rawValue
  }

  // MARK: Settings

  private mutating func undoSettings(_ change: ChangeRecord) throws {
    // Untouched since: the very file comes back.
    if try digest(change.path) == change.after?.digest, change.before != nil { return try putBack(change) }
    let before = try settings(change.kept)
    let written = try settings(change.settingsAfter)
    var file = try staged.defaults(change.path) ?? PropertyListFile()
    for key in Set(before.keys).union(written.keys).sorted() where before[key] != written[key] {
      let now = file.root[key]
      if now == before[key] { continue }
      if now != written[key] {
        let shown = { (value: PropertyListValue?) in value.map { Redaction.shown($0, key: key) } ?? "absent" }
        conflicts.append(
          RollbackConflict(
            path: change.path, key: key, before: shown(before[key]), written: shown(written[key]),
            now: shown(now)))
        if !discardingNewer { continue }
      }
      file.root[key] = before[key]
    }
    if file.root.isEmpty && change.before == nil {
      if try staged.status(of: change.path) != nil { try staged.remove(change.path) }
    } else {
      try staged.setDefaults(file, at: change.path)
    }
  }

  private func settings(_ name: ContainerPath?) throws -> [String: PropertyListValue] {
    guard let name else { return [:] }
    return try PropertyListFile(bytes: kept.contents(name)).root
  }

  // MARK: Directories

  private mutating func undoDirectory(_ change: ChangeRecord) throws {
    let present = try staged.status(of: change.path)
    guard let before = change.before else {
      if present?.type == .directory, try staged.children(of: change.path).isEmpty {
        try staged.remove(change.path)
      }
      return
    }
    guard before.type == .directory else { return try undoDirectoryInPlaceOfFile(change) }
    // What the app did to it since, such as adding a file, stays: then its time is the app's too.
    let live = try staged.live.metadata(change.path)
    if present == nil || change.after == nil || live == change.after?.metadata {
      try staged.putDirectory(at: change.path, metadata: before.metadata)
    }
  }

  private mutating func undoDirectoryInPlaceOfFile(_ change: ChangeRecord) throws {
    let isLeft =
      try staged.status(of: change.path)?.type == .directory && staged.children(of: change.path).isEmpty
    if !isLeft {
      conflicts.append(
        RollbackConflict(
          path: change.path, key: nil, before: describe(change.before), written: describe(change.after),
          now: "changed by the app"))
      if !discardingNewer { return }
    }
    try putBack(change)
  }
}
