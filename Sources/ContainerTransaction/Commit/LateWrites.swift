import AppContainer
import AppStores
import DrydockErrors
import FileSystem

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
    for line in try folder.contents(file, limit: 1 << 30).split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count == 3 else { continue }
      // A file that was sealed since has another name. A write to a file with another hard link is not lost.
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
      // An interrupted rollback was removing the mark: no app has written to the file, and it is marked again.
      for name in try self.changed(in: changed.folder) where try changed.folder.settleMark(name) {
        try changed.folder.markReplaced(name)
      }
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
