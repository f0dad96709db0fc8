import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// An archive that is being written in a private directory: the header in front, then the content that its owner
/// adds to ``archive`` and ``manifest``, then the manifest.
final class ArchiveDraft {
  let archive: ArchiveWriter
  let manifest: ManifestWriter
  /// A private directory for plain data.
  let work: Directory
  /// Without it the archive must hold nothing secret.
  let isEncrypted: Bool
  private let header: ArchiveHeader
  private let time: Date
  private let scratch: Directory
  private let file: FileDescriptor

  private static let fileName: ContainerPath = "archive", manifestName: ContainerPath = "manifest"

  /// - Parameters:
  ///   - time: of the capture.
  ///   - encryption: to whom the archive is encrypted; nil for one that everybody can read.
  init(
    _ header: ArchiveHeader, time: Date, encryption: AgeLock?, in scratch: Directory, work: Directory
  ) throws {
    (self.header, self.time, self.scratch, self.work) = (header, time, scratch, work)
    isEncrypted = encryption != nil
    // A plain archive holds what was readable by its owner only.
    file = try scratch.createFile(Self.fileName, mode: encryption == nil ? 0o600 : 0o644)
    do {
      archive = try ArchiveWriter(to: file, encryption: encryption)
      manifest = try ManifestWriter(path: work.full(Self.manifestName), archive: header.archive)
    } catch {
      try? file.close()
      throw error
    }
    // From here on `deinit` closes the file.
    let json = try header.encoded()
    try archive.addMember(
      .file(ArchiveHeader.memberName, size: UInt64(json.count), modified: modified), contents: json)
    // A list of archives reads the header alone.
    try archive.startFrame()
  }

  deinit {
    archive.cancel()
    try? file.close()
  }

  /// The modification time of members that stand for no path of the container, nanoseconds since 1970.
  private var modified: Int64 { Int64(time.timeIntervalSince1970) * 1_000_000_000 }

  /// Adds a vault's items that may leave their device, from memory; after all other content.
  func add(_ extract: VaultExtract) throws {
    guard isEncrypted else {
      throw DrydockError(.invalidUse, "a vault's items cannot be stored in an archive without encryption")
    }
    try archive.startFrame()
    let member = try extract.encoded().withBytes { bytes in
      let offset = try archive.beginMember(
        .file(MemberNames.vault, size: UInt64(bytes.count), mode: VaultMember.mode, modified: modified))
      try archive.write(bytes)
      try archive.endMember()
      return VaultMember(offset: offset, length: UInt64(bytes.count), digest: try SHA256.hash(bytes))
    }
    try manifest.add(member)
  }

  /// Adds the manifest, which is finished, and gives the archive its place, never replacing a file.
  func publish(at place: ArchivePlace) throws -> (path: String, size: UInt64) {
    let summary = try archive.finish(manifest: addManifest())
    try scratch.syncFile(file, Self.fileName)
    let names = ArchiveName.candidates(
      app: header.app, instance: header.instance, time: UTCTime.compact(time), id: header.archive,
      isEncrypted: isEncrypted)
    return (try place.publish(Self.fileName, in: scratch, as: names), summary.fileSize)
  }

  private func addManifest() throws -> ManifestLocation {
    let file = try work.open(Self.manifestName, .readOnly)
    defer { try? file.close() }
    let size = try work.status(Self.manifestName)?.size ?? 0
    try archive.startFrame()
    let offset = try archive.beginMember(.file(MemberNames.manifest, size: size, modified: modified))
    let hash = try SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    while true {
      let count: Int
      do { count = try file.read(into: buffer) } catch let error as Errno {
        throw DrydockError.system("cannot read", work.full(Self.manifestName), error)
      }
      if count == 0 { break }
      let chunk = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      hash.update(chunk)
      try archive.write(chunk)
    }
    try archive.endMember()
    return ManifestLocation(offset: offset, length: size, sha256: try hash.finalize())
  }
}
