import AgeEncryption
import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// An archive, open for reading: its header and its manifest.
package final class Archive {
  /// The file's path.
  package let path: String
  /// What it is.
  package let header: ArchiveHeader
  /// What is in it.
  package let manifest: ManifestReader
  /// The snapshot id: equal ones hold the same content.
  package let snapshot: String
  /// Where the vault's items are that may leave their device; only an encrypted archive has them.
  let vault: VaultMember?
  let reader: ArchiveReader
  private let limit: ExpansionLimit

  /// Opens an archive; reads its end, its first member and its manifest, and nothing else.
  ///
  /// - Parameters:
  ///   - keys: what opens it when it is encrypted.
  ///   - limit: how large its manifest may be, and its content when that is read.
  /// - Throws: `DrydockError` (`noIdentity` when no key opens it), ``DrydockError``.
  package init(path: String, keys: AgeKeys = AgeKeys(), limit: ExpansionLimit = .standard) throws {
    self.path = path
    self.limit = limit
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(path: path, keys: keys)
    } catch let error as DrydockError where error.code == .io && FollowedStatus.identity(path) == nil {
      throw DrydockError(.notFound, "no such archive; check the path", path: path, cause: error)
    }
    self.reader = reader
    header = try Self.header(reader, path)
    try reader.checkManifestMemory(ManifestReader.memory(ofText: reader.manifest.length), limit)
    manifest = try ManifestReader(reader, archive: header.archive, path: path)
    try reader.checkManifestMemory(manifest.memory(), limit)
    let properties = try manifest.properties()
    snapshot = properties.snapshot
    vault = try manifest.vault()
    guard properties.archive == header.archive.description else {
      throw DrydockError(.damaged, "its header and its manifest name different archives", path: path)
    }
    guard vault == nil || reader.encryption != nil else {
      throw DrydockError(
        .damaged,
        "it holds a vault's items (\(MemberNames.vault)) and is not encrypted, which no archive of Drydock's is; when you "
          + "decrypted it, use the file from before", path: path)
    }
  }

  /// How it is encrypted; nil when it is not.
  package var encryption: ArchiveEncryption? { reader.encryption }

  /// Reads an archive's header alone.
  package static func header(path: String, keys: AgeKeys = AgeKeys()) throws -> ArchiveHeader {
    try header(ArchiveReader(path: path, keys: keys), path)
  }

  /// What is to be known of an archive without its manifest.
  struct Start {
    var header: ArchiveHeader
    var encryption: ArchiveEncryption?
    var contentSize: UInt64
  }

  /// Reads the header of an archive that is open; its position is moved.
  static func start(_ file: FileDescriptor, keys: AgeKeys, path: String) throws -> Start {
    let reader = try ArchiveReader(file, keys: keys)
    return Start(
      header: try header(reader, path), encryption: reader.encryption, contentSize: reader.contentSize)
  }

  private static func header(_ reader: ArchiveReader, _ path: String) throws -> ArchiveHeader {
    struct Found: Error { var bytes: [UInt8] }
    do {
      try reader.members { member, _, content in
        guard member.name == Array(ArchiveHeader.memberName.utf8), content.size <= ArchiveHeader.sizeLimit
        else {
          throw DrydockError(
            .damaged, "its first member is not \(ArchiveHeader.memberName): no archive of Drydock's",
            path: path)
        }
        var bytes: [UInt8] = []
        try content.read { bytes.append(contentsOf: $0) }
        throw Found(bytes: bytes)
      }
    } catch let found as Found {
      return try ArchiveHeader(decoding: found.bytes, path: path)
    }
    throw DrydockError(.damaged, "it is empty: no archive of Drydock's", path: path)
  }

  /// Checks that all content together stays within the limit that the archive was opened with.
  func checkExpansion() throws { try reader.checkExpansion(limit) }

  /// Reads an entry's content; see ``ManifestEntry/readContent(from:of:otherwise:into:)``.
  func content(
    of entry: ManifestEntry, otherwise advice: String = "use another archive",
    _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try entry.readContent(from: reader.ranges, of: path, otherwise: advice, into: body)
  }

  /// Compressed bytes that were read from the file so far.
  package var bytesRead: UInt64 { reader.bytesRead }
  /// The size of the file in bytes.
  package var fileSize: UInt64 { reader.fileSize }
}
