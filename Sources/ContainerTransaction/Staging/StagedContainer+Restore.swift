import AgeEncryption
import AppContainer

/// What a restore asks of a stage beyond reading and writing.
extension StagedContainer {
  /// Whether the stage changes anything directly in a directory.
  public func changesNames(in directory: ContainerPath) -> Bool { !overlay.children(of: directory).isEmpty }

  /// The digest of a live file or database as a manifest records it; a database's of its captured content.
  public func liveDigest(of path: ContainerPath) throws -> SHA256.Digest {
    if try isDatabase(path) { return try databaseDigest(path) }
    return try ContentDigest.of(path, in: live, isDatabase: false)
  }
}
