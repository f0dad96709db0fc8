import DrydockErrors
import FileSystem

/// Looking for whoever has open what a commit replaces: right before it, and right after it while SQLite's locks on the
/// old and the new main files are still held. A holder found after it is a reason to take it back.
extension Commit {
  /// - Throws: ``DrydockError`` with code `inUse`, naming each process and path.
  func requireUnused(_ holders: HolderSearch, isTakenBack: Bool) throws {
    let search = holders.run()
    guard search.found.isEmpty else {
      throw DrydockError(
        .inUse,
        "in use: \(search.shown); "
          + (isTakenBack ? "the change was taken back" : "nothing was changed")
          + ", close it and run it again", path: staged.container.root)
    }
  }

  /// The error of a commit that was taken back, which names what was written meanwhile and is kept.
  func saying(_ kept: [ContainerPath], _ error: any Error) throws -> any Error {
    guard !kept.isEmpty, var error = error as? DrydockError else { return error }
    let folder = try state.directory.full(StateDirectory.folder(StateDirectory.conflict, transaction))
    let shown = kept.prefix(5).map(\.description).joined(separator: ", ")
    let more = kept.count > 5 ? " and \(kept.count - 5) more" : ""
    error.message += "; what was written meanwhile is kept in \(folder): \(shown)\(more)"
    return error
  }
}

extension HolderSearch {
  /// The inodes that a commit replaces: of files and links that change, and of directories.
  ///
  /// - Parameter isReplaced: whether a directory is exchanged with all that is in it.
  init(
    _ commit: Commit, _ changes: ChangeList, _ locks: CommitLocks,
    directories isReplaced: (ContainerPath) -> Bool
  ) throws {
    let live = commit.staged.live
    var inodes: [FileIdentity: ContainerPath] = [:]
    if commit.looksForHolders, let index = commit.index {
      for (path, status) in index.paths where status.type == .directory && isReplaced(path) {
        inodes[status.identity] = path
      }
      for change in changes.changes where change.before != nil {
        guard let status = index.paths[change.path] else { continue }
        if status.type != .directory || change.after?.type != .directory {
          inodes[status.identity] = change.path
        }
      }
      for root in [.root] + commit.staged.container.groups.map(\.path) where isReplaced(root) {
        if let identity = try live.status(root)?.identity { inodes[identity] = root }
      }
    }
    let known = [live, commit.state.parent, commit.state.directory] + live.groups.map(\.root) + commit.own
    let mains = commit.staged.locks.values.map(\.file) + locks.new.map(\.lock.file)
    self.init(inodes: inodes, own: Set((known.map(\.descriptor) + mains).map(\.rawValue)))
  }

  /// The search for further inodes, too.
  func adding(_ more: [FileIdentity: ContainerPath]) -> HolderSearch {
    inodes.isEmpty ? self : HolderSearch(inodes: inodes.merging(more) { path, _ in path }, own: own)
  }
}
