import AgeEncryption
import AppContainer
import FileSystem

/// What a restore asks of a stage beyond reading and writing.
extension StagedContainer {
  /// Whether the stage changes anything directly in a directory.
  package func changesNames(in directory: ContainerPath) -> Bool { !overlay.children(of: directory).isEmpty }

  /// What a path carries once this metadata has been put on it: a user who is not root can give nothing away, and a
  /// file system may lack attributes or flags, or round times. Found out by trying, once for each kind of metadata.
  package func attainable(_ metadata: FileMetadata, for type: FileType) throws -> FileMetadata {
    var wanted = Attempt(type: type, metadata: metadata)
    wanted.metadata.modified = 0
    if var known = attained[wanted] {
      known.modified = metadata.modified
      return known
    }
    let name = newName()
    switch type {
    case .directory: try stage.createDirectory(name)
    case .symbolicLink: try stage.createLink(name, target: [0x2E])
    case .file, .other: try stage.createFile(name).close()
    }
    try stage.apply(metadata, to: name)
    let made = try stage.metadata(name) ?? metadata
    try stage.removeTree(name)
    if made.modified == metadata.modified { attained[wanted] = made }
    return made
  }

  /// The digest of a live file or database as a manifest records it; a database's of its captured content.
  package func liveDigest(of path: ContainerPath) throws -> SHA256.Digest {
    if try isDatabase(path) { return try databaseDigest(path) }
    return try ContentDigest.of(path, in: live, isDatabase: false)
  }
}
