import AppContainer
import DrydockErrors
import FileSystem

/// Applies to the new tree what an app wrote into the old one between the revalidation and the exchange. It is
/// idempotent, so it may run again after a crash.
struct ConcurrentChanges {
  /// The old tree, which was live until the exchange, and the new one.
  let old, new: Directory
  /// The old tree as the transaction saw it.
  let index: TreeIndex
  /// The paths that the transaction changed, with all sidecars of databases it changed.
  let touched: Set<ContainerPath>
  /// Those of them whose change time counts: neither were they marked as replaced, nor linked.
  let timed: Set<ContainerPath>
  /// Other programs may have used the new tree already: the process that put it there was killed.
  let isLate: Bool
  /// Keeps what cannot be applied: both sides changed it.
  let keep: (ContainerPath) throws -> Void

  /// Compares the old tree with the index and applies the changes, on disk when this returns.
  ///
  /// - Returns: the paths that both changed.
  func run() throws -> [ContainerPath] {
    let present = try TreeIndex(of: old)
    var conflicts: [ContainerPath] = []
    var removed: [(ContainerPath, IndexedStatus)] = []
    let differences = present.differences(from: index, timed: timed)
    for path in differences {
      switch (index.paths[path], present.paths[path]) {
      case (nil, let created?):
        if try !carry(path, created, replacing: nil) { conflicts.append(path) }
      case (let seen?, nil):
        removed.append((path, seen))
      case (let seen?, let now?):
        if now.identity == seen.identity && now.type == .directory {
          try copyMetadata(path)
          continue
        }
        // Changed in place: an untouched inode is the new tree's own already.
        if now.identity == seen.identity && !touched.contains(path) { continue }
        if try !carry(path, now, replacing: seen) { conflicts.append(path) }
      case (nil, nil): continue
      }
    }
    // A directory can go only after what was in it.
    for (path, seen) in removed.reversed() { try removeAlike(path, seen) }
    // A log without its main file is nothing.
    for path in conflicts {
      guard let main = path.mainOfLog, present.paths[main]?.type == .file, !conflicts.contains(main) else {
        continue
      }
      conflicts.append(main)
    }
    for path in conflicts { try keep(path) }
    if !differences.isEmpty { try new.syncFileSystem() }
    return conflicts.sorted()
  }

  /// Applies one change; false when that is impossible.
  private func carry(
    _ path: ContainerPath, _ status: IndexedStatus, replacing seen: IndexedStatus?
  ) throws -> Bool {
    guard !touched.contains(path), try new.status(path.parent)?.type == .directory else { return false }
    // The main file is one and the same in both trees. If it is not what it was, a program may have gone on with it since,
    // and the log is older than it.
    if isLate, let main = path.mainOfLog, let seen = index.paths[main], seen.type == .file,
      try new.status(main).map({ !IndexedStatus($0).isSame(as: seen) }) ?? true
    {
      return false
    }
    let target = try new.status(path)
    if status.type == .directory {
      if let target { return target.type == .directory }
      try new.createDirectory(path)
      if let metadata = try old.metadata(path) { try new.apply(metadata, to: path) }
      if let flags = try old.flags(of: path) { try new.setFlags(flags, of: path) }
      return true
    }
    if let target {
      guard let seen, target.identity == seen.identity else { return false }
      try old.rename(path, in: new, to: path)
    } else {
      if seen != nil { return false }
      try old.renameNew(path, in: new, to: path)
    }
    return true
  }

  /// The app changed a directory's mode, owner or attributes.
  private func copyMetadata(_ path: ContainerPath) throws {
    guard !touched.contains(path), try new.status(path)?.type == .directory,
      let metadata = try old.metadata(path)
    else { return }
    try new.apply(metadata, to: path, includingTime: false)
    if let flags = try old.flags(of: path) { try new.setFlags(flags, of: path) }
  }

  /// The app removed it: the new tree's link to the same inode goes too.
  private func removeAlike(_ path: ContainerPath, _ seen: IndexedStatus) throws {
    guard !touched.contains(path), let target = try new.status(path) else { return }
    if seen.type == .directory {
      guard target.type == .directory else { return }
      do {
        try new.removeDirectory(path)
      } catch let error as DrydockError where error.isErrno(.directoryNotEmpty) {
        // The transaction has put something into it: that stays.
      }
    } else if target.identity == seen.identity {
      try new.removeFile(path, missingIsFine: true)
    }
  }
}

extension ContainerPath {
  /// The main file that this is the log of, by its name.
  fileprivate var mainOfLog: ContainerPath? {
    for suffix in ["-wal", "-journal"] where bytes.count > suffix.utf8.count {
      guard bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { continue }
      return try? ContainerPath(bytes: bytes.dropLast(suffix.utf8.count))
    }
    return nil
  }
}

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
    let target = try folder(for: path)
    var place = path
    while try target.status(place) != nil { place = place.withSuffix("~") }
    try directory.renameOnto(nothingAt: place, name ?? path, in: target)
  }

  /// Keeps a copy of a file that a process may continue to write to.
  func copy(_ path: ContainerPath, from directory: Directory, as name: ContainerPath) throws {
    let target = try folder(for: path)
    var place = path
    while try target.status(place) != nil { place = place.withSuffix("~") }
    try directory.copyContents(of: name, to: place, in: target)
    if let metadata = try directory.metadata(name) { try target.apply(metadata, to: place) }
    try target.unmarkReplaced(place, modified: target.status(place)?.modified ?? 0)
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

  /// The directory that it is in; nil when nothing is kept.
  func directory() throws -> Directory? {
    let base = try StateDirectory.folder(StateDirectory.conflict, transaction)
    return try state.directory.status(base) == nil ? nil : state.directory.directory(base)
  }

  private func folder(for path: ContainerPath) throws -> Directory {
    let base = try StateDirectory.folder(StateDirectory.conflict, transaction)
    try state.directory.createDirectories(base)
    let target = try state.directory.directory(base)
    try target.createDirectories(path.parent)
    return target
  }
}

extension Directory {
  /// Renames to a name that must be free, also where the file system cannot refuse a taken one by itself.
  ///
  /// - Throws: `DrydockError` with cause `EEXIST` when it is not free.
  func renameOnto(nothingAt target: ContainerPath, _ path: ContainerPath, in other: Directory) throws {
    do {
      try renameNew(path, in: other, to: target)
    } catch let error as DrydockError where error.meansNoSuchRename {
      if try other.status(target) != nil {
        throw DrydockError.system("cannot move to", other.full(target), .fileExists)
      }
      try rename(path, in: other, to: target)
    }
  }
}

/// Finds what was written into kept files after they were replaced: by a program that could not be seen and still had them
/// open. A copy is kept under `conflict/<transaction>/`, once.
struct LateWrites {
  /// Size and modification time of each kept file, one a line, so that every command can compare them at little cost.
  static let file: ContainerPath = "kept"

  /// A file that was written to.
  struct Found {
    let transaction: TransactionID
    let paths: [ContainerPath]
  }

  /// Notes what is kept: as it was when it was replaced.
  ///
  /// - Parameter known: paths whose change is known: as they are now.
  static func note(_ undo: UndoRecord, in folder: Directory, besides known: Set<ContainerPath>) throws {
    var lines = ""
    for change in undo.changes {
      guard let name = change.kept, let before = change.before, before.type == .file,
        let now = try folder.status(name)
      else { continue }
      let isKnown = known.contains(change.path)
      let (size, modified) = isKnown ? (now.size, now.modified) : (before.size, before.metadata.modified)
      lines += "\(name) \(size) \(modified)\n"
    }
    try folder.removeFile(file, missingIsFine: true)
    if !lines.isEmpty { try folder.create(file, Array(lines.utf8)) }
  }

  /// The names of kept files of an undo that are not as they were noted.
  private static func changed(in folder: Directory) throws -> [ContainerPath] {
    guard try folder.status(file) != nil else { return [] }
    var changed: [ContainerPath] = []
    for line in try folder.contents(file).split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count == 3 else { continue }
      // One that is sealed since is gone under this name.
      guard let now = try folder.status(ContainerPath(name: Array(fields[0]))) else { continue }
      let noted = fields.dropFirst().map { String(decoding: $0, as: UTF8.self) }
      if noted != [String(now.size), String(now.modified)] {
        changed.append(ContainerPath(name: Array(fields[0])))
      }
    }
    return changed
  }

  /// An undo whose kept files are not as they were noted.
  private struct Changed {
    let state: StateDirectory
    let transaction: TransactionID
    let folder: Directory
    let names: Set<ContainerPath>
  }

  private static func all(in states: [StateDirectory]) throws -> [Changed] {
    try states.flatMap { state -> [Changed] in
      guard try state.directory.status(StateDirectory.undo)?.type == .directory else { return [] }
      let undos = try state.directory.directory(StateDirectory.undo)
      return try undos.names().sorted { $0.lexicographicallyPrecedes($1) }.compactMap { name in
        guard try undos.status(ContainerPath(name: name))?.type == .directory else { return nil }
        let folder = try undos.directory(ContainerPath(name: name))
        let names = try changed(in: folder)
        guard !names.isEmpty else { return nil }
        return Changed(
          state: state, transaction: TransactionID(String(decoding: name, as: UTF8.self)), folder: folder,
          names: Set(names))
      }
    }
  }

  /// Whether something may have been written. Only looks.
  static func mayBeThere(in states: [StateDirectory]) throws -> Bool { try !all(in: states).isEmpty }

  /// Keeps copies of what was written, and notes them. With the container's lock held.
  static func keep(in states: [StateDirectory]) throws -> [Found] {
    let all = try all(in: states)
    guard !all.isEmpty else { return [] }
    // What a later transaction has undone is live again, and a kill may have come before its folder was removed.
    let undone = UndoLog.undone(try UndoLog(states: states).records())
    return try all.filter { !undone.contains($0.transaction) }.map { changed in
      let undo = try UndoRecord(in: changed.folder)
      let kept = ConflictCopies(state: changed.state, transaction: changed.transaction)
      var paths: [ContainerPath] = []
      for change in undo.changes {
        guard let name = change.kept, changed.names.contains(name) else { continue }
        try kept.copy(change.path, from: changed.folder, as: name)
        paths.append(change.path)
      }
      try note(undo, in: changed.folder, besides: Set(paths))
      return Found(transaction: changed.transaction, paths: paths)
    }
  }
}
