import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// The hash of a file's content (``ContentHash``), in one pass with bounded memory.
package enum ContentDigest {
  /// - Parameter isDatabase: whether to normalize the header fields that differ between captures of the same content
  ///   (``DatabaseFormat/normalize(header:)``).
  package static func of(_ path: ContainerPath, in directory: Directory, isDatabase: Bool) throws
    -> SHA256.Digest
  {
    let file = try directory.openFile(path)
    defer { try? file.close() }
    return try of(file, path: directory.full(path), isDatabase: isDatabase)
  }

  package static func of(_ file: FileDescriptor, path: String, isDatabase: Bool) throws -> SHA256.Digest {
    try digest(isDatabase: isDatabase, size: FileStatus(of: file, path: path).size) { offset, buffer in
      try DrydockError.translating("cannot read", path) {
        try file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
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
    // More would not be faster, and its pages would have to be mapped for each small file.
    try readInPieces(of: 1 << 16, read: read) { try hash.update($0) }
    return try hash.finish().digest
  }
}

/// The hash of a content, from bytes that arrive in pieces: SHA-256 of a file up to 1 MiB; of a larger one, and of a
/// database, the hash of its blocks' hashes (``BlockHashes/digest(size:)``).
package struct ContentHash {
  /// Larger files have block hashes.
  package static let wholeLimit: UInt64 = 1 << 20

  private enum State {
    case whole(SHA256)
    case blocks(BlockHasher)
    /// The header of a database has its page size.
    case databaseStart
  }

  private var state: State
  private var count: UInt64 = 0

  /// - Parameters:
  ///   - isDatabase: see ``ContentDigest/of(_:in:isDatabase:)``. The first piece must contain the header.
  ///   - size: bytes of the content.
  package init(isDatabase: Bool, size: UInt64) throws {
    if isDatabase {
      state = .databaseStart
    } else if size > Self.wholeLimit {
      state = .blocks(try BlockHasher(blockSize: BlockHashes.fileBlock))
    } else {
      state = .whole(try SHA256())
    }
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) throws {
    count += UInt64(bytes.count)
    switch state {
    case .whole(let hash): hash.update(bytes)
    case .blocks: try updateBlocks(bytes)
    case .databaseStart:
      guard !bytes.isEmpty else { return }
      let pageSize = DatabaseFormat.pageSize(ofHeader: Array(bytes.prefix(DatabaseFormat.headerLength)))
      state = .blocks(try BlockHasher(blockSize: pageSize, isDatabaseStart: true))
      try updateBlocks(bytes)
    }
  }

  /// Adds zeros, as a hole of a file has them.
  package mutating func updateZeros(_ count: UInt64) throws {
    if case .blocks(var hasher) = state {
      self.count += count
      state = .databaseStart
      defer { state = .blocks(hasher) }
      return try hasher.updateZeros(count)
    }
    let zeros = [UInt8](repeating: 0, count: Int(min(count, Self.wholeLimit)))
    var rest = count
    while rest > 0 {
      let piece = Int(min(rest, UInt64(zeros.count)))
      try zeros.withUnsafeBytes { try update(UnsafeRawBufferPointer(rebasing: $0[..<piece])) }
      rest -= UInt64(piece)
    }
  }

  private mutating func updateBlocks(_ bytes: UnsafeRawBufferPointer) throws {
    guard case .blocks(var hasher) = state else { return }
    // Moved out and back in: the hashes are not copied.
    state = .databaseStart
    defer { state = .blocks(hasher) }
    try hasher.update(bytes)
  }

  /// Ends the content.
  ///
  /// - Returns: the digest, and the hashes of the blocks if it follows from them.
  package mutating func finish() throws -> (digest: SHA256.Digest, blocks: BlockHashes?) {
    switch state {
    case .whole(let hash): return (try hash.finalize(), nil)
    case .databaseStart: return (try SHA256.hash([]), nil)
    case .blocks(var hasher):
      let blocks = try hasher.finish()
      return (try blocks.digest(size: count), blocks)
    }
  }
}
