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
      // One that is sealed since is gone under this name. What is written to one with another hard link is there.
      guard let now = try folder.status(ContainerPath(name: Array(fields[0]))), now.links == 1 else {
        continue
      }
      let noted = fields.dropFirst().map { String(decoding: $0, as: UTF8.self) }
      if noted != [String(now.size), String(now.modified)] {
        changed.append(ContainerPath(name: Array(fields[0])))
      }
    }
    return changed
  }

  /// An undo whose kept files are not as they were noted.
  private typealias Changed = (state: StateDirectory, transaction: TransactionID, folder: Directory)

  private static func all(in states: [StateDirectory]) throws -> [Changed] {
    try states.flatMap { state -> [Changed] in
      guard try state.directory.status(StateDirectory.undo)?.type == .directory else { return [] }
      let undos = try state.directory.directory(StateDirectory.undo)
      return try undos.names().sorted { $0.lexicographicallyPrecedes($1) }.compactMap { name -> Changed? in
        guard try undos.status(ContainerPath(name: name))?.type == .directory else { return nil }
        let folder = try undos.directory(ContainerPath(name: name))
        guard try !changed(in: folder).isEmpty else { return nil }
        return (state, TransactionID(String(decoding: name, as: UTF8.self)), folder)
      }
    }
  }

  /// Whether something may have been written. Only looks.
  static func mayBeThere(in states: [StateDirectory]) throws -> Bool { try !all(in: states).isEmpty }

  /// Keeps copies of what was written, and notes them. With the container's lock held.
  static func keep(in states: [StateDirectory]) throws -> [RecoveryReport] {
    let all = try all(in: states)
    guard !all.isEmpty else { return [] }
    // What a later transaction has undone is live again, and a kill may have come before its folder was removed.
    let undone = try UndoLog(states: states).undone
    return try all.filter { !undone.contains($0.transaction) }.compactMap { changed in
      try UnmarkedFiles.markAgain(in: changed.folder)
      let names = try Set(self.changed(in: changed.folder))
      if names.isEmpty { return nil }
      let undo = try UndoRecord(in: changed.folder)
      let kept = ConflictCopies(state: changed.state, transaction: changed.transaction)
      var paths: [ContainerPath] = []
      for change in undo.changes {
        guard let name = change.kept, names.contains(name) else { continue }
        try kept.copy(change.path, from: changed.folder, as: name)
        paths.append(change.path)
      }
      try note(undo, in: changed.folder, besides: Set(paths))
      return RecoveryReport(transaction: changed.transaction, outcome: .writtenLater, conflicts: paths)
    }
  }
}

/// The kept main files whose marks a rollback removes, with their times. If it is killed, or the power is cut, before a time is set
/// back, the file must not be taken for one that was written later.
struct UnmarkedFiles: Codable {
  static let file: ContainerPath = "unmarked"
  private static let damaged = "the list of databases that were about to come back is corrupt; remove it"

  private var times: [String: Int64] = [:]

  /// Notes a file, on disk when this returns.
  static func note(_ name: ContainerPath, _ modified: Int64, in undo: Directory) throws {
    var note =
      try undo.status(file) == nil ? UnmarkedFiles() : StateRecord.read(file, in: undo, damaged: damaged)
    note.times[name.nameString] = modified
    try undo.replace(file, with: StateRecord.encode(note))
  }

  /// Marks what was noted again, and sets its time, unless it was written to later than a moment after the note.
  static func markAgain(in undo: Directory) throws {
    guard let noted = try undo.status(file)?.modified else { return }
    let note: UnmarkedFiles = try StateRecord.read(file, in: undo, damaged: damaged)
    for (name, time) in note.times {
      let name = ContainerPath(name: Array(name.utf8))
      guard let modified = try undo.status(name)?.modified, (0..<2_000_000_000).contains(modified - noted)
      else {
        continue
      }
      try undo.markReplaced(name, modified: time, links: 2)
      try undo.setModified(time, of: name)
    }
    try undo.removeFile(file)
  }
}
