import AppContainer
import FileSystem
import Formats

/// Looks for files of a state directory that hold a moved value in the clear: every earlier transaction that changed the
/// settings has kept a copy.
struct HeldSecrets {
  let state: StateDirectory
  let container: Container
  let secrets: [MovedSecret]
  /// What is larger is no settings file.
  private static let sizeLimit = 64 << 20

  /// A file that was kept: of what, and where it is below the state directory. No path when that is not known.
  private struct Kept {
    var path: ContainerPath?
    var file: ContainerPath
  }

  /// The files, as paths below the state directory, and the settings that have such a value in them: by the names that
  /// it had before.
  func find() throws -> (files: [ContainerPath], settings: [Sealing.Setting]) {
    var found: (files: [ContainerPath], settings: [Sealing.Setting]) = ([], [])
    // What steps wrote down is no settings file to look into: it is sealed in any case.
    found.files = try names(StateDirectory.undo).flatMap { folder in
      try state.directory.directory(folder).names().filter(StepFile.isOne).map { folder.appending(name: $0) }
    }
    for kept in try undos() + conflicts() {
      guard let status = try state.directory.status(kept.file), status.type == .file,
        status.size <= Self.sizeLimit
      else { continue }
      let bytes = try state.directory.contents(kept.file)
      let file = try? PropertyListFile(bytes: bytes)
      // An earlier value of the same setting may open something still.
      let hasEarlier = secrets.contains {
        $0.path == kept.path ?? $0.path && file?.root[$0.key] != nil
      }
      guard hasEarlier || secrets.areHeld(inFile: bytes) else { continue }
      found.files.append(kept.file)
      guard let path = kept.path, let file else { continue }
      found.settings += secrets.keys(in: file.root).map { Sealing.Setting(path: path, key: $0) }
    }
    return found
  }

  private func undos() throws -> [Kept] {
    try names(StateDirectory.undo).flatMap { folder -> [Kept] in
      let directory = try state.directory.directory(folder)
      guard let record = try? UndoRecord(in: directory) else {
        // What nobody can tell the paths of: any of it may have been settings.
        return try directory.names().map { Kept(path: nil, file: folder.appending(name: $0)) }
      }
      return record.changes.filter { $0.grain == .settings || isSettings($0.path) }.flatMap { change in
        [change.kept, change.settingsAfter].compactMap { $0 }
          .map { Kept(path: change.path, file: folder.appending(name: $0.bytes)) }
      }
    }
  }

  private func conflicts() throws -> [Kept] {
    try names(StateDirectory.conflict).flatMap { folder in
      try state.directory.directory(folder).settings(where: isSettings).map {
        Kept(path: nil, file: folder.appending(name: $0.bytes))
      }
    }
  }

  private func names(_ folder: ContainerPath) throws -> [ContainerPath] {
    guard try state.directory.status(folder)?.type == .directory else { return [] }
    return try state.directory.directory(folder).names().map { folder.appending(name: $0) }
  }

  private func isSettings(_ path: ContainerPath) -> Bool {
    container.isSettings(path) || secrets.contains { $0.path == path }
  }
}

extension Directory {
  /// The files below that were kept of such paths; a second one of a path has a `~` behind its name.
  func settings(where isOne: (ContainerPath) -> Bool) throws -> [ContainerPath] {
    var found: [ContainerPath] = []
    try walk { entry in
      var path = entry.path
      while path.bytes.last == UInt8(ascii: "~") { path = ContainerPath(name: path.bytes.dropLast()) }
      if entry.status.type == .file, isOne(path) { found.append(entry.path) }
      return .into
    }
    return found
  }
}
