import AppStores
import DrydockErrors
import FileSystem

/// Conflict copies: what an app wrote during a commit where the transaction had changed the same path, under
/// `conflict/<transaction>/`.
struct ConflictCopies {
  let state: StateDirectory
  let transaction: TransactionID

  /// Keeps what is at a path of a directory. A file is linked rather than moved: what an undo keeps of the same path
  /// stays there too.
  ///
  /// - Parameter name: its name in the directory, when that is not its path in the container.
  func keep(_ path: ContainerPath, in directory: Directory, as name: ContainerPath? = nil) throws {
    let name = name ?? path
    guard let status = try directory.status(name) else { return }
    let target = try folder(for: path)
    if status.type == .directory {
      try target.createDirectories(path)
    } else if try target.status(path) == nil {
      // SQLite refuses a marked file; a conflict copy must open.
      if try directory.isReplaced(name) { return try copy(path, from: directory, as: name) }
      do {
        try directory.link(name, in: target, to: path)
      } catch let error as DrydockError where error.meansNoLink {
        try directory.copyContents(of: name, to: path, in: target)
      }
    }
  }

  /// Moves what is at a path out of a directory, with all that is below it.
  func take(_ path: ContainerPath, from directory: Directory, as name: ContainerPath? = nil) throws {
    let (target, place) = try free(for: path)
    try directory.renameOnto(nothingAt: place, name ?? path, in: target)
  }

  /// Keeps a copy of a file that a process may continue to write to.
  func copy(_ path: ContainerPath, from directory: Directory, as name: ContainerPath) throws {
    let (target, place) = try free(for: path)
    try directory.copyContents(of: name, to: place, in: target)
    if let metadata = try directory.metadata(name) { try target.apply(metadata, to: place) }
    try target.unmarkReplaced(place)
  }

  /// Keeps those of new files that a process has open after a reversal: it may still write to them.
  ///
  /// - Parameters:
  ///   - files: by their inodes, with their paths in the container.
  ///   - name: the name of a path in the directory.
  /// - Returns: the paths of those that are kept, sorted.
  func keepOpen(
    _ files: [FileIdentity: ContainerPath], in directory: Directory, name: (ContainerPath) -> ContainerPath
  ) throws -> [ContainerPath] {
    let open = Set(OpenFileSearch(inodes: files, own: []).run().found.map(\.path)).sorted()
    for path in open { try keep(path, in: directory, as: name(path)) }
    return open
  }

  /// Everything that is kept, sorted: files, links, and directories that were empty.
  func paths() throws -> [ContainerPath] {
    guard let kept = try directory() else { return [] }
    var found: [ContainerPath] = []
    try kept.walk { entry in
      let isDirectory = entry.status.type == .directory
      if try !isDirectory || kept.directory(entry.path).names().isEmpty { found.append(entry.path) }
      return .into
    }
    return found
  }

  func directory() throws -> Directory? {
    let base = try StateDirectory.folder(StateDirectory.conflict, transaction)
    return try state.directory.status(base) == nil ? nil : state.directory.directory(base)
  }

  /// The folder, and a free name for a path in it.
  private func free(for path: ContainerPath) throws -> (Directory, ContainerPath) {
    let target = try folder(for: path)
    var place = path
    while try target.status(place) != nil { place = place.withSuffix("~") }
    return (target, place)
  }

  private func folder(for path: ContainerPath) throws -> Directory {
    let base = try StateDirectory.folder(StateDirectory.conflict, transaction)
    try state.directory.createDirectories(base)
    let target = try state.directory.directory(base)
    try target.createDirectories(path.parent)
    return target
  }
}
