import AppContainer
import DrydockErrors
import FileSystem
import Foundation

/// Makes a private copy of a staged container.
struct CopyBuilder {
  private let staged: StagedContainer
  private let folder: Directory
  private let root: Directory
  /// The first path of each inode that has several names.
  private var linked: [FileIdentity: ContainerPath] = [:]

  init(_ staged: StagedContainer, in folder: Directory) throws {
    self.staged = staged
    self.folder = folder
    let container: ContainerPath = "container"
    try folder.createDirectory(container)
    root = try folder.directory(container)
  }

  consuming func build() throws -> PrivateCopy {
    try fill(.root)
    let work: ContainerPath = "work"
    try folder.createDirectory(work)
    let copy = PrivateCopy(root: root, work: try folder.directory(work), before: try TreeIndex(of: root))
    // A change is known by its time, and file systems keep times in ticks of up to 10 ms.
    Thread.sleep(forTimeInterval: 0.02)
    return copy
  }

  /// Copies what is in a directory, and then what the directory carries: its time would not last otherwise.
  private mutating func fill(_ directory: ContainerPath) throws {
    for path in try staged.children(of: directory) {
      guard try !staged.isMount(path), let status = try staged.status(of: path) else { continue }
      switch status.type {
      case .directory:
        try root.createDirectory(path)
        try fill(path)
      case .symbolicLink:
        try root.createLink(path, target: staged.linkTarget(path))
        try carry(path)
      case .file: try copyFile(path, status)
      case .other: continue
      }
    }
    try carry(directory)
  }

  private func carry(_ path: ContainerPath) throws {
    if let metadata = try staged.metadata(of: path) { try root.apply(metadata, to: path) }
  }

  private mutating func copyFile(_ path: ContainerPath, _ status: FileStatus) throws {
    if try staged.isSidecar(path) { return }
    if status.links > 1 {
      if let first = linked[status.identity] { return try root.link(first, in: root, to: path) }
      linked[status.identity] = path
    }
    if try staged.isDatabase(path) {
      try copyDatabase(path)
    } else {
      try copyContents(path, status)
    }
    try carry(path)
  }

  private func copyDatabase(_ path: ContainerPath) throws {
    do {
      let capture = try staged.capturedCopy(of: path)
      try staged.stage.rename(capture, in: root, to: path)
    } catch let error as DrydockError where error.code == .malformed {
      // One that SQLite cannot open, an encrypted one, is for the program to understand: as it is, with its sidecars.
      for part in [path] + DatabaseFormat.sidecarSuffixes.map(path.withSuffix) {
        guard let status = try staged.status(of: part), status.type == .file else { continue }
        try copyContents(part, status)
        if part != path { try carry(part) }
      }
    }
  }

  private func copyContents(_ path: ContainerPath, _ status: FileStatus) throws {
    try staged.requireSpace(min(status.size, status.blocks * 512), for: path)
    let place = staged.place(of: path)
    try place.directory.copyContents(of: place.path, to: path, in: root)
  }
}

extension StagedContainer {
  /// A copy of a database in the stage that is the caller's own.
  fileprivate func capturedCopy(of path: ContainerPath) throws -> ContainerPath {
    let source: ContainerPath
    if case .inode(let inode) = overlay[path] {
      source = try wholeDatabase(inode, at: path)
    } else if let captured = captures[path] {
      source = captured
    } else {
      return try databaseCopy(of: path)
    }
    let name = newName()
    try requireSpace(stage.status(source)?.size ?? 0, for: path)
    try stage.copyContents(of: source, to: name, in: stage)
    return name
  }

  /// Whether another file system is mounted at a live path. A group's root may be anywhere.
  fileprivate func isMount(_ path: ContainerPath) throws -> Bool {
    guard overlay[path] == nil, !live.isRoot(path), let status = try live.status(path),
      let above = try live.status(path.parent)
    else { return false }
    return status.mount != above.mount
  }
}
