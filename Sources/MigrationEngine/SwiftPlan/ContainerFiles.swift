import ContainerTransaction
import FileSystem

/// The files of a container as a stage changes them. A database goes with all that belongs to it, as in the operations on
/// files; its rows are changed by ``MigrationContext/write(database:ifMissing:_:)``.
package struct ContainerFiles {
  let stage: StagedContainer
  let drafts: SettingsDrafts

  /// Whether something is there: a file, a directory or a link.
  package func exists(_ path: ContainerPath) throws -> Bool { try stage.status(of: path) != nil }

  /// What is directly in a directory, sorted; nothing when there is no such directory.
  package func children(of path: ContainerPath) throws -> [ContainerPath] { try stage.children(of: path) }

  /// The content of a file of up to 64 MiB.
  package func read(_ path: ContainerPath) throws -> [UInt8] {
    if drafts.touch(path) { try drafts.save() }
    return try stage.read(path)
  }

  /// Writes a file. Missing directories are made; a file that is replaced keeps its mode, owner and attributes.
  package func write(_ bytes: some Sequence<UInt8>, to path: ContainerPath) throws {
    try prepare(path)
    if try stage.isDatabase(path) {
      throw StepFailure(
        message: "`\(path)` is a database: change it by `write(database:)`", path: path.description)
    }
    try stage.write(Array(bytes), to: path)
  }

  /// Makes a directory and those above it; an existing one is fine.
  package func createDirectory(_ path: ContainerPath) throws { try stage.createDirectory(path) }

  /// Copies a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or something is at the target.
  package func copy(_ source: ContainerPath, to target: ContainerPath) throws {
    if drafts.touch(source) { try drafts.save() }
    try prepare(target)
    try stage.copy(source, to: target)
  }

  /// Moves a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or something is at the target.
  package func move(_ source: ContainerPath, to target: ContainerPath) throws {
    try prepare(source)
    try prepare(target)
    try stage.move(source, to: target)
  }

  /// Removes a path with everything below it.
  ///
  /// - Throws: when it is missing.
  package func remove(_ path: ContainerPath) throws {
    try prepare(path)
    try stage.remove(path)
  }

  /// The history is Drydock's own.
  private func prepare(_ path: ContainerPath) throws {
    let own = stage.container.historyPath.parent
    guard path != own, !path.isInside(own), !own.isInside(path) else {
      throw StepFailure(message: "`\(path)` holds Drydock's history: leave it alone", path: path.description)
    }
    if drafts.touch(path) { try drafts.save() }
  }
}
