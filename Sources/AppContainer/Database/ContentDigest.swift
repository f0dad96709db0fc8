import AgeEncryption
import DrydockErrors
import FileSystem
import SystemPackage

/// SHA-256 of a file's content, in one pass with bounded memory.
package enum ContentDigest {
  /// - Parameter isDatabase: whether to normalize the header fields that differ between captures of the same content
  ///   (``DatabaseFormat/normalize(header:)``).
  package static func of(_ path: ContainerPath, in directory: Directory, isDatabase: Bool) throws
    -> SHA256.Digest
  {
    let file = try directory.open(path, .readOnly, options: [.nonBlocking])
    defer { try? file.close() }
    return try of(file, path: directory.full(path), isDatabase: isDatabase)
  }

  package static func of(_ file: FileDescriptor, path: String, isDatabase: Bool) throws -> SHA256.Digest {
    try digest(isDatabase: isDatabase) { offset, buffer in
      do {
        return try file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
      } catch let error as Errno {
        throw DrydockError.system("cannot read", path, error)
      }
    }
  }

  /// The digest of a database's content, valid only if ``DatabasePages/isUnchanged()`` afterwards.
  package static func of(_ pages: DatabasePages) throws -> SHA256.Digest {
    try digest(isDatabase: true, read: pages.read)
  }

  private static func digest(
    isDatabase: Bool, read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> SHA256.Digest {
    var hash = try ContentHash(isDatabase: isDatabase)
    // More would not be faster, and its pages would have to be mapped for each small file.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: UInt64 = 0
    while true {
      let count = try read(offset, buffer)
      if count == 0 { break }
      hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += UInt64(count)
    }
    return try hash.finalize()
  }
}

/// A content digest of bytes that arrive in pieces, as from an archive.
package struct ContentHash {
  private let hash: SHA256
  private let isDatabase: Bool
  private var isStart = true

  /// - Parameter isDatabase: see ``ContentDigest/of(_:in:isDatabase:)``. The first piece must contain the header.
  package init(isDatabase: Bool) throws {
    hash = try SHA256()
    self.isDatabase = isDatabase
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    if isDatabase && isStart {
      // Normalizes a copy of the header.
      let length = min(bytes.count, DatabaseFormat.headerLength)
      var header = Array(bytes[..<length])
      header.withUnsafeMutableBytes { DatabaseFormat.normalize(header: $0) }
      header.withUnsafeBytes { hash.update($0) }
      rest = UnsafeRawBufferPointer(rebasing: bytes[length...])
    }
    hash.update(rest)
    isStart = false
  }

  package func finalize() throws -> SHA256.Digest { try hash.finalize() }
}
