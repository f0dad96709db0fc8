import AppContainer
import ArchiveFile
import DrydockErrors

extension ManifestEntry {
  /// Reads the content piece by piece, and compares it with its hash at last: what `body` was given is not to be
  /// trusted before this returns.
  ///
  /// - Parameters:
  ///   - archive: the archive's path, for errors.
  ///   - advice: what to do about content that is not what the manifest says.
  /// - Throws: ``DrydockError`` with code `damaged`, `DrydockError`, and what `body` throws.
  func readContent(
    from ranges: RangeReader, of archive: String, otherwise advice: String,
    into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var hash = try ContentHash(isDatabase: kind == .database)
    if size > 0 {
      guard let offset else {
        throw DrydockError(.damaged, "its manifest does not say where \(path) is", path: archive)
      }
      try ranges.read(offset: offset, length: size) { bytes in
        hash.update(bytes)
        try body(bytes)
      }
    }
    guard try hash.finalize() == digest else {
      throw DrydockError(
        .damaged, "the content of \(path) is not what the manifest says; \(advice)", path: archive)
    }
  }
}
