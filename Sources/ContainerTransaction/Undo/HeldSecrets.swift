import AppContainer

/// Looks for files of a state directory that hold a moved value in the clear: every earlier transaction that changed the
/// settings has kept a copy.
struct HeldSecrets {
  let state: StateDirectory
  let container: Container
  let secrets: [MovedSecret]

  /// Their paths below the state directory.
  func find() throws -> [ContainerPath] {
    try (undos() + conflicts()).filter { path in
      guard try state.directory.status(path)?.type == .file else { return false }
      return secrets.areHeld(inFile: try state.directory.contents(path))
    }
  }

  private func undos() throws -> [ContainerPath] {
    try names(StateDirectory.undo).flatMap { folder -> [ContainerPath] in
      guard let record = try? UndoRecord(in: state.directory.directory(folder)) else { return [] }
      return record.changes.filter { $0.grain == .settings || isSettings($0.path) }
        .flatMap { [$0.kept, $0.settingsAfter].compactMap { $0 } }.map { folder.appending(name: $0.bytes) }
    }
  }

  private func conflicts() throws -> [ContainerPath] {
    try names(StateDirectory.conflict).flatMap { folder in
      try state.directory.directory(folder).settings(where: isSettings).map {
        folder.appending(name: $0.bytes)
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
