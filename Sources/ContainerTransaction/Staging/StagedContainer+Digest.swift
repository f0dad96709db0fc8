import AgeEncryption
import AppContainer
import FileSystem

extension StagedContainer {
  /// SHA-256 over what is at a path, whatever its metadata: a file's content, a database's captured content
  /// (``ContentDigest``), a link's target, and of a directory the names, types and contents of all below it.
  ///
  /// - Throws: ``DrydockError`` `missing` when nothing is there.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest {
    guard let status = try status(of: path) else { throw missing(path) }
    switch status.type {
    case .symbolicLink: return try SHA256.hash(linkTarget(path))
    case .other: return try SHA256.hash(Array(FileType.other.rawValue.utf8))
    case .directory:
      let hash = try SHA256()
      for below in try descendants(of: path) where try !isSidecar(below) {
        guard let type = try self.status(of: below)?.type else { continue }
        // Paths have no NUL, so that no two trees give the same bytes.
        let name = below.rebased(from: path, to: .root)
        let content = type == .directory ? [] : Array(try digest(of: below).hex.utf8)
        for part in [Array(type.rawValue.utf8), name.bytes, content] {
          (part + [0]).withUnsafeBytes(hash.update)
        }
      }
      return try hash.finalize()
    case .file:
      if try isDatabase(path) { return try databaseDigest(path) }
      let place = place(of: path)
      return try ContentDigest.of(place.path, in: place.directory, isDatabase: false)
    }
  }
}
