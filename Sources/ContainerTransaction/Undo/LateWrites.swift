import AppContainer

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
  private static func changed(in folder: Directory) throws -> [(name: ContainerPath, now: FileStatus)] {
    guard try folder.status(file) != nil else { return [] }
    var changed: [(ContainerPath, FileStatus)] = []
    for line in try folder.contents(file).split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count == 3 else { continue }
      // One that is sealed since is gone under this name.
      guard let now = try folder.status(ContainerPath(name: Array(fields[0]))) else { continue }
      let noted = fields.dropFirst().map { String(decoding: $0, as: UTF8.self) }
      if noted != [String(now.size), String(now.modified)] {
        changed.append((ContainerPath(name: Array(fields[0])), now))
      }
    }
    return changed
  }

  /// The undos in one of a container's states. One that a later transaction has undone does not count: its files are live
  /// again, and a kill may have come before its folder was removed.
  private static func folders(
    in state: StateDirectory, besides undone: Set<TransactionID>
  ) throws -> [(TransactionID, Directory)] {
    guard try state.directory.status(StateDirectory.undo)?.type == .directory else { return [] }
    let undos = try state.directory.directory(StateDirectory.undo)
    return try undos.names().sorted { $0.lexicographicallyPrecedes($1) }.compactMap { name in
      guard try undos.status(ContainerPath(name: name))?.type == .directory else { return nil }
      let transaction = TransactionID(String(decoding: name, as: UTF8.self))
      guard !undone.contains(transaction) else { return nil }
      return (transaction, try undos.directory(ContainerPath(name: name)))
    }
  }

  /// Whether something may have been written. Only looks.
  static func mayBeThere(in states: [StateDirectory]) throws -> Bool {
    // The journals need not be read for that: whoever keeps the copies looks again.
    try states.contains { try folders(in: $0, besides: []).contains { try !changed(in: $1).isEmpty } }
  }

  /// Keeps copies of what was written, and notes them. With the container's lock held.
  static func keep(in states: [StateDirectory]) throws -> [Found] {
    guard try mayBeThere(in: states) else { return [] }
    let undone = UndoStore.undone(try UndoStore(states: states).records())
    return try states.flatMap { state in
      try folders(in: state, besides: undone).compactMap { transaction, folder in
        let changed = try changed(in: folder)
        guard !changed.isEmpty else { return nil }
        let undo = try UndoRecord(in: folder)
        let kept = KeptConflicts(state: state, transaction: transaction)
        var paths: [ContainerPath] = []
        for change in undo.changes {
          guard let name = change.kept, changed.contains(where: { $0.name == name }) else { continue }
          try kept.copy(change.path, from: folder, as: name)
          paths.append(change.path)
        }
        try note(undo, in: folder, besides: Set(paths))
        return Found(transaction: transaction, paths: paths)
      }
    }
  }
}
