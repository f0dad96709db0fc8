import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem

/// An archive, open for reading: its header and its manifest.
public final class Archive {
  public let path: String
  public let header: Archive.Header
  package let manifest: ManifestReader
  /// The snapshot id: equal ones hold the same content.
  public let snapshot: String
  /// Where the vault's items are that may leave their device; only an encrypted archive has them.
  let vault: VaultMember?
  let reader: ArchiveReader
  private let limit: ExpansionLimit

  /// Opens an archive; reads its end, its first member and its manifest, and nothing else.
  ///
  /// - Parameters:
  ///   - keys: what opens it when it is encrypted.
  ///   - limit: how large its manifest may be, and its content when that is read.
  /// - Throws: `DrydockError`: `notFound`, `noIdentity` when no key opens it, `damaged`, and what reading it throws.
  public init(path: String, keys: AgeKeys = AgeKeys(), limit: ExpansionLimit = .standard) throws {
    self.path = path
    self.limit = limit
    do {
      reader = try ArchiveReader(path: path, keys: keys)
    } catch let error as DrydockError where error.code == .io && FollowedStatus.identity(path) == nil {
      throw DrydockError(.notFound, "no such archive; check the path", path: path, cause: error)
    }
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
        "holds a vault's items (\(MemberNames.vault)) without encryption, which Drydock never writes; if you decrypted "
          + "it, use the encrypted file", path: path)
    }
  }

  package var encryption: ArchiveEncryption? { reader.encryption }
  /// Compressed bytes that were read from the file so far.
  public var bytesRead: UInt64 { reader.bytesRead }
  public var fileSize: UInt64 { reader.fileSize }

  public static func header(path: String, keys: AgeKeys = AgeKeys()) throws -> Archive.Header {
    try header(ArchiveReader(path: path, keys: keys), path)
  }

  static func header(_ reader: ArchiveReader, _ path: String) throws -> Archive.Header {
    guard let (member, offset) = try reader.firstMember() else {
      throw DrydockError(.damaged, "it is empty: not an archive of Drydock", path: path)
    }
    guard member.name == Array(Archive.Header.memberName.utf8),
      member.contentSize <= Archive.Header.sizeLimit
    else {
      throw DrydockError(
        .damaged, "its first member is not \(Archive.Header.memberName): not an archive of Drydock",
        path: path
      )
    }
    var bytes: [UInt8] = []
    try reader.read(offset: offset, length: member.contentSize) { bytes.append(contentsOf: $0) }
    return try Archive.Header(decoding: bytes, path: path)
  }

  /// Checks that all content together stays within the limit that the archive was opened with.
  func checkExpansion() throws { try reader.checkExpansion(limit) }

  /// Throws unless the entries that were read give the snapshot id.
  func expectSnapshot(_ id: String) throws {
    guard id == snapshot else {
      throw DrydockError(
        .damaged, "the manifest's entries do not match its snapshot id; use another archive", path: path)
    }
  }

  /// Reads an entry's content; see ``ManifestEntry/readContent(from:of:otherwise:into:)``.
  func content(
    of entry: ManifestEntry, otherwise advice: String = "use another archive",
    _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try entry.readContent(from: reader.ranges, of: path, otherwise: advice, into: body)
  }

  /// The vault's items that may leave their device, checked against the manifest; nil when the archive has none.
  package func vaultExtract() throws -> VaultExtract? {
    guard let vault else { return nil }
    let secret = try SecretBytes(count: Int(vault.length)) { target in
      var filled = 0
      try reader.read(offset: vault.offset, length: vault.length) { bytes in
        UnsafeMutableRawBufferPointer(rebasing: target[filled...]).copyMemory(from: bytes)
        filled += bytes.count
      }
    }
    guard try secret.withBytes({ try SHA256.hash($0) }) == vault.digest else {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is not what the manifest says; use another archive", path: path)
    }
    do {
      return try VaultExtract(decoding: secret, path: nil)
    } catch let error as DrydockError {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is invalid: \(error.message)", path: path, cause: error)
    }
  }
}

extension ManifestEntry {
  /// Reads the content piece by piece, and compares it with its hash at last: what `body` was given is not to be
  /// trusted before this returns.
  ///
  /// - Parameters:
  ///   - archive: the archive's path, for errors.
  ///   - advice: what to do about content that is not what the manifest says.
  /// - Throws: `DrydockError` with code `damaged`, what reading the archive throws, and what `body` throws.
  func readContent(
    from ranges: RangeReader, of archive: String, otherwise advice: String,
    into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var hash = try ContentHash(isDatabase: kind == .database)
    if size > 0 {
      guard let offset else {
        throw DrydockError(.damaged, "its manifest has no place for the content of \(path)", path: archive)
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
