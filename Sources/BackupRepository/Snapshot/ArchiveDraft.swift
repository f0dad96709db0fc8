import ArchiveManifest
import AgeEncryption
import AppStores
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Storage
import SystemPackage

/// An archive that is being written in a private directory: the header, then the content that is added to ``archive`` and
/// ``manifest``, then the manifest.
final class ArchiveDraft {
  let archive: ArchiveWriter
  let manifest: ManifestWriter
  /// Without encryption the archive must hold nothing secret.
  let isEncrypted: Bool
  let header: Archive.Header
  let names: MemberNames
  /// What an incremental archive is the difference to.
  let parent: Manifest?
  /// The modification time of members that are not paths of the container, in nanoseconds since 1970.
  private let modified: Int64
  private let destination: ArchiveDestination
  private let scratch: ScratchDirectory
  /// For plain data of an encrypted archive: the destination may be on another person's disk.
  private let plainScratch: ScratchDirectory?
  /// A private directory for plain data.
  let work: Directory
  private let file: FileDescriptor
  /// The header's bytes.
  private let json: [UInt8]
  private let upload: any PlaceUpload
  /// The place of the manifest, when it is in the archive.
  private var location: MemberLocation?
  private var isPublished = false

  /// A content with fewer bytes is stored whole: a member and the places of its blocks take more than they save.
  private static let smallestChanged: UInt64 = 64 << 10
  private static let fileName: ContainerPath = "archive", manifestName: ContainerPath = "manifest"

  /// - Parameters:
  ///   - encryption: the recipients; nil for an archive that everybody can read.
  init(
    _ header: Archive.Header, since parent: Manifest?, encryption: AgeTarget?,
    to destination: ArchiveDestination
  ) throws {
    guard let modified = header.captured else {
      throw DrydockError(.damaged, "its header has an invalid time")
    }
    self.modified = modified
    (self.header, self.parent, self.destination) = (header, parent, destination)
    names = header.memberNames
    json = try header.encoded()
    // What no reader accepts is not written.
    _ = try Archive.Header(decoding: json, path: destination.repository ?? header.app)
    isEncrypted = encryption != nil
    scratch = try destination.makeScratch()
    if encryption == nil {
      work = scratch.directory
      plainScratch = nil
    } else {
      let plain = try ScratchDirectory.temporary()
      work = plain.directory
      plainScratch = consume plain
    }
    let fileNames = ArchiveLabel(header).fileNames(isEncrypted: encryption != nil)
    var created: FileDescriptor?
    var begun: (any PlaceUpload)?
    do {
      manifest = try ManifestWriter(
        path: work.full(Self.manifestName), archive: header.archive, since: parent)
      // A plain archive holds data that only its owner could read.
      let file = try scratch.directory.createFile(Self.fileName, mode: encryption == nil ? 0o600 : 0o644)
      created = file
      // The id is random, so that the first name is free.
      let upload = try destination.upload(Self.fileName, in: scratch.directory, as: [fileNames[0]])
      begun = upload
      var written: (@Sendable (UInt64) throws -> Void)?
      if upload.isSent { written = { try upload.extend(to: $0) } }
      archive = try ArchiveWriter(
        to: file, encryption: encryption, isSigned: !destination.signing.isEmpty, written: written)
      (self.file, self.upload) = (file, upload)
    } catch {
      begun?.cancel()
      try? created?.close()
      guard let error = error as? DrydockError else { throw error }
      throw Self.explained(error, work, isEncrypted, destination)
    }
    do {
      try archive.addMember(
        .file(Archive.Header.memberName, size: UInt64(json.count), modified: modified), contents: json)
      // A list of archives reads the header alone.
      try archive.startFrame()
      if let recipients = try encryption?.recipientsDigest() { try manifest.add(recipients: recipients) }
    } catch let error as DrydockError {
      throw explained(error)
    }
  }

  deinit {
    archive.cancel()
    if !isPublished { upload.cancel() }
    try? file.close()
  }

  /// An error of writing the archive, with its place and advice.
  func explained(_ error: DrydockError) -> DrydockError {
    Self.explained(error, work, isEncrypted, destination)
  }

  private static func explained(
    _ error: DrydockError, _ work: Directory, _ isEncrypted: Bool, _ destination: ArchiveDestination
  ) -> DrydockError {
    guard error.code == .noSpace, isEncrypted, error.path?.hasPrefix(work.path) == true
    else { return destination.located(error) }
    var error = error
    error.message += "; data to be encrypted is prepared below TMPDIR: set it to a directory with more space"
    return error
  }

  // MARK: Contents

  /// Sets the place of a content that a member has whole, and records the hashes of its blocks.
  func place(_ entry: inout ManifestEntry, at offset: UInt64, _ blocks: BlockHashes?) throws {
    entry.extents = Extents(at: offset, length: entry.size)
    if let blocks, entry.size >= Self.smallestChanged {
      try manifest.add(blocks, [0..<blocks.count], at: offset)
    }
  }

  /// The hashes of the blocks of the parent's content, which a new one can be stored as the difference to; nil when it
  /// cannot.
  func blocks(
    of earlier: ManifestEntry, like entry: ManifestEntry, blockSize: Int
  ) throws -> BlockHashes? {
    guard earlier.kind == entry.kind, earlier.hardLink == nil,
      min(earlier.size, entry.size) >= Self.smallestChanged
    else { return nil }
    return try parent?.blocks(of: earlier, blockSize: blockSize)
  }

  /// Adds only the blocks of a content that an earlier one does not have, and sets the entry's places.
  ///
  /// - Parameters:
  ///   - entry: with its size.
  ///   - earlier: the places of the earlier content, whose blocks have the hashes `known`.
  ///   - copy: writes ranges of the content, one for each run of blocks; false when they are not what was hashed.
  /// - Returns: nil when that would save little; false when the content has changed since it was hashed.
  func addChanged(
    _ entry: inout ManifestEntry, _ blocks: BlockHashes, since earlier: Extents, _ known: BlockHashes,
    copy: ([Range<UInt64>], [Range<Int>]) throws -> Bool
  ) throws -> Bool? {
    let (size, runs, end) = (UInt64(blocks.blockSize), blocks.changed(since: known), entry.size)
    let ranges = runs.map { UInt64($0.lowerBound) * size..<min(UInt64($0.upperBound) * size, end) }
    let length = ranges.reduce(0) { $0 + UInt64($1.count) }
    guard length <= end / 2, let name = names.pagesName(of: entry.path) else { return nil }
    var offset: UInt64 = 0
    // Where only the end was cut off, there is nothing to add.
    if length > 0 {
      offset = try archive.beginMember(
        ArchiveMember(name: name, kind: .file(size: length), metadata: entry.metadata))
      let isSame = try copy(ranges, runs)
      try archive.endMember(padding: true)
      guard isSame else {
        try manifest.addReplaced(entry.path, offset: offset, length: length)
        return false
      }
      try manifest.add(blocks, runs, at: offset)
    }
    entry.extents = earlier.replacing(ranges, by: offset, size: end)
    return true
  }

  /// Adds a vault's items that may leave their device, after all other content.
  func add(_ extract: VaultExtract) throws {
    guard isEncrypted else {
      throw DrydockError(.invalidUse, "a vault's items cannot be stored in an archive without encryption")
    }
    try archive.startFrame()
    let member = try extract.encoded().withBytes { bytes in
      let offset = try archive.beginMember(
        .file(MemberNames.vault, size: UInt64(bytes.count), mode: MemberNames.vaultMode, modified: modified))
      try archive.write(bytes)
      try archive.endMember()
      return MemberLocation(offset: offset, length: UInt64(bytes.count), sha256: try SHA256.hash(bytes))
    }
    try manifest.add(member)
  }

  /// Adds the finished manifest and publishes the archive, never replacing a file.
  ///
  /// - Parameters:
  ///   - tags: on disk before the archive is: it must not be there for a moment without the tag that keeps it.
  ///   - status: of the file in whose place the archive is.
  func publish(tags: [String] = [], like status: FileStatus? = nil) throws -> (path: String, size: UInt64) {
    let location = try addManifest()
    let size = try archive.finish(manifest: location)
    let signed = try archive.signed(header: json, manifest: location).map { try SignaturePayload(header, $0) }
    self.location = location
    if let status { try scratch.directory.makeLike(status, Self.fileName) }
    try scratch.directory.syncFile(file, Self.fileName)
    try destination.write(tags: tags, of: header.archive)
    do {
      let path = try destination.publish(upload, size: size, signed, isAlone: true)
      isPublished = true
      return (path, size)
    } catch let error as DrydockError {
      if error.code == .overlap { destination.removeTags(of: header.archive) }
      throw error
    }
  }

  /// Keeps the manifest of the published archive for the next snapshot.
  func keepManifest(in cache: ManifestCache, of path: String) throws {
    guard let location else { return }
    let file = try work.open(Self.manifestName, .readOnly)
    defer { try? file.close() }
    try cache.store(header, of: path, file, location, tarSize: archive.tarPosition, parent: parent)
  }

  private func addManifest() throws -> MemberLocation {
    let size = try work.status(Self.manifestName)?.size ?? 0
    try archive.startFrame()
    let offset = try archive.beginMember(.file(MemberNames.manifest, size: size, modified: modified))
    let hash = try SHA256()
    try work.read(Self.manifestName) { piece in
      hash.update(piece)
      try archive.write(piece)
    }
    try archive.endMember()
    return MemberLocation(offset: offset, length: size, sha256: try hash.finalize())
  }
}
