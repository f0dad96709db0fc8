import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// The hash of a content, from bytes that arrive in pieces: SHA-256 of a file up to 1 MiB; of a larger one, and of a
/// database, the hash of its blocks' hashes (``BlockHashes/digest(size:)``).
package enum ContentHash {
  /// Larger files have block hashes.
  package static let wholeLimit: UInt64 = 1 << 20

  case whole(SHA256)
  case blocks(BlockHasher)
  /// The header of a database has its page size.
  case databaseStart

  /// - Parameters:
  ///   - isDatabase: whether to normalize the header fields that differ between captures of the same content
  ///     (``DatabaseFormat/normalize(header:)``). The first piece must contain the header.
  ///   - size: bytes of the content.
  package init(isDatabase: Bool, size: UInt64) throws {
    if isDatabase {
      self = .databaseStart
    } else if size > Self.wholeLimit {
      self = .blocks(try BlockHasher(blockSize: BlockHashes.fileBlock))
    } else {
      self = .whole(try SHA256())
    }
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) throws {
    switch self {
    case .whole(let hash): hash.update(bytes)
    case .blocks: try updateBlocks { try $0.update(bytes) }
    case .databaseStart:
      guard !bytes.isEmpty else { return }
      let pageSize = DatabaseFormat.pageSize(ofHeader: Array(bytes.prefix(DatabaseFormat.headerLength)))
      self = .blocks(try BlockHasher(blockSize: pageSize, isDatabaseStart: true))
      try updateBlocks { try $0.update(bytes) }
    }
  }

  /// Adds zeros, as a hole of a file has them.
  package mutating func updateZeros(_ count: UInt64) throws {
    if case .blocks = self { return try updateBlocks { try $0.updateZeros(count) } }
    let zeros = [UInt8](repeating: 0, count: Int(min(count, Self.wholeLimit)))
    var rest = count
    while rest > 0 {
      let piece = Int(min(rest, UInt64(zeros.count)))
      try zeros.withUnsafeBytes { try update(UnsafeRawBufferPointer(rebasing: $0[..<piece])) }
      rest -= UInt64(piece)
    }
  }

  private mutating func updateBlocks(_ body: (inout BlockHasher) throws -> Void) throws {
    guard case .blocks(var hasher) = self else { return }
    // Moved out and back in: the hashes are not copied.
    self = .databaseStart
    defer { self = .blocks(hasher) }
    try body(&hasher)
  }

  /// Ends the content.
  ///
  /// - Returns: the digest, and the hashes of the blocks if it follows from them.
  package mutating func finish() throws -> (digest: SHA256.Digest, blocks: BlockHashes?) {
    switch self {
    case .whole(let hash): return (try hash.finalize(), nil)
    case .databaseStart: return (try SHA256.hash([]), nil)
    case .blocks(var hasher):
      let size = hasher.count
      let blocks = try hasher.finish()
      return (try blocks.digest(size: size), blocks)
    }
  }
}

// In one pass with bounded memory.
extension ContentHash {
  package static func of(_ path: ContainerPath, in directory: Directory, isDatabase: Bool) throws
    -> SHA256.Digest
  {
    let file = try directory.openFile(path)
    defer { try? file.close() }
    return try of(file, path: directory.full(path), isDatabase: isDatabase)
  }

  package static func of(_ file: FileDescriptor, path: String, isDatabase: Bool) throws -> SHA256.Digest {
    let status = try FileStatus(of: file, path: path)
    var data: Range<UInt64> = 0..<0
    return try digest(isDatabase: isDatabase, size: status.size) { offset, buffer in
      try DrydockError.translating("cannot read", path) {
        try status.isSparse
          ? file.fillAroundHoles(buffer, at: offset, data: &data, path: path)
          : file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
      }
    }
  }

  /// The digest of a database's content, valid only if ``DatabasePages/isUnchanged()`` afterwards.
  package static func of(_ pages: DatabasePages) throws -> SHA256.Digest {
    try digest(isDatabase: true, size: pages.size, read: pages.read)
  }

  private static func digest(
    isDatabase: Bool, size: UInt64, read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> SHA256.Digest {
    var hash = try ContentHash(isDatabase: isDatabase, size: size)
    // The blocks of a large piece are hashed on all cores; its pages would have to be mapped for each small file.
    try readInPieces(of: size > wholeLimit ? 1 << 20 : 1 << 16, read: read) { try hash.update($0) }
    return try hash.finish().digest
  }
}
