import AgeEncryption
import ArchiveFile
import ArchiveManifest
import ArchiveSigning
import DrydockErrors
import FileSystem
import Storage

/// One archive file, open for reading: its header, and its own manifest.
final class ArchivePart {
  let path: String
  let header: Archive.Header
  let manifest: ManifestReader
  let snapshot: String
  let vault: MemberLocation?
  let reader: ArchiveReader
  /// The bytes of the header.
  let json: [UInt8]
  /// Its signature payload, and who signed that; nil unless it was opened with trusted keys.
  let signature: (payload: SignaturePayload, by: Signer)?

  /// - Parameters:
  ///   - file: the file, when a listing of its remote place has it.
  ///   - usesCache: see ``Place/open(_:usesCache:)``.
  init(
    path: String, _ file: PlaceFile? = nil, keys: AgeKeys, limit: ExpansionLimit = .standard,
    trusted: TrustedKeys? = nil, usesCache: Bool = false
  ) throws {
    self.path = path
    // The signature first: of a file that nobody trusted has signed, nothing is parsed.
    let source = try Places.source(path, file, usesCache: usesCache)
    signature = try trusted.map { try SignaturePayload.trusted(of: path, $0) }
    reader = try ArchiveReader(source, path: path, keys: keys)
    json = try Self.json(reader, path)
    header = try Archive.Header(decoding: json, path: path)
    do { try signature?.payload.requireOf(header, json, reader) } catch let error as DrydockError {
      throw error.at(path)
    }
    try reader.checkManifestMemory(ManifestReader.memory(ofText: reader.manifest.length), limit)
    manifest = try ManifestReader(reader, header, path: path)
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

  /// Identifies the file in the state that it has now; nil when it is gone. What is at a remote place never changes.
  var version: String? {
    if Places.isRemote(path) { return path }
    return FollowedStatus.version(path)
  }

  static func header(_ reader: ArchiveReader, _ path: String) throws -> Archive.Header {
    try Archive.Header(decoding: json(reader, path), path: path)
  }

  static func json(_ reader: ArchiveReader, _ path: String) throws -> [UInt8] {
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
    return bytes
  }

  /// What its manifest says must be in its tar, once its entries are added.
  func expectedMembers() throws -> ExpectedMembers {
    try ExpectedMembers(manifest, vault: vault, path: path)
  }
}
