import FileSystem

/// Which inode flags (`chattr`) and project a new inode of a path gets: those of what it replaces, else what the directory
/// that it is in hands down, as if the app had made it there.
struct KeptFlags {
  private let staged: StagedContainer
  /// The flags of directories, by path; nil where the file system has none.
  private var directories: [ContainerPath: InodeFlags?] = [:]

  init(_ staged: StagedContainer) { self.staged = staged }

  /// What a directory gets.
  mutating func directory(_ path: ContainerPath) throws -> InodeFlags? {
    if let known = directories[path] { return known }
    let flags: InodeFlags?
    if try staged.live.status(path)?.type == .directory {
      flags = try staged.live.directory(path).flags()
    } else if let recorded = staged.recordedFlags[path] {
      flags = recorded
    } else {
      flags = try staged.live.isRoot(path) ? nil : directory(path.parent)?.inherited(by: .directory)
    }
    directories[path] = .some(flags)
    return flags
  }

  /// What a file gets.
  mutating func file(_ path: ContainerPath) throws -> InodeFlags? {
    let above = try directory(path.parent)
    guard try staged.live.status(path)?.type == .file else { return above?.inherited(by: .file) }
    return try staged.live.flags(of: path)?.moved(into: above)
  }

  /// Gives the staged files that replace live ones, or are new, their flags. What cannot be set on a file with content
  /// (no copy-on-write, of btrfs), or by this user, is left out: nothing depends on it. An inode that an undo
  /// gives back has its own.
  mutating func apply(to changes: ChangeList) throws {
    for change in changes.changes where change.after?.type == .file {
      guard case .inode(let inode) = staged.overlay[change.path], !inode.isShared,
        let flags = try file(change.path)
      else { continue }
      try staged.stage.setFlags(flags, of: inode.name)
    }
  }
}
