@testable import ArchiveManifest
import AgeEncryption
import ArchiveFile
import Cryptography
import FileSystem
import Foundation
import SystemPackage
import TestSupport

@testable import BackupRepository

/// An archive whose members and manifest are made by hand, to disagree in whatever way a test wants.
struct HandmadeArchive {
  private let lab: Lab
  let path: String
  let id: Archive.ID
  var header: [UInt8]
  /// The modes of `drydock.json` and `manifest.sqlite`, and the time of all members that are not paths.
  var headerMode: UInt16 = 0o644, manifestMode: UInt16 = 0o644
  private let captured: Int64
  var members: [(member: ArchiveMember, content: [UInt8])] = []
  /// What the manifest says; a file's offset is taken from the member of its name unless it is set. That of blocks in the
  /// archive itself begins at 0 with their member's content.
  var entries: [ManifestEntry] = []
  /// Entries that only the parent's manifest has.
  var inherited: Set<ContainerPath> = []
  var skipped: [SkippedPath] = []
  var excluded: [ExcludedPath] = []
  var encryption: AgeTarget?
  /// What `vault.json` holds, and what the manifest says of it; nil for what is not there.
  var vault: [UInt8]?
  var vaultRecord: (MemberLocation) -> MemberLocation? = { $0 }
  /// Whether the manifest speaks of a `vault.json` that is not there.
  var claimsVault = false
  /// SQL that is run on the finished manifest, `PRAGMA writable_schema` and all.
  var sql: String?

  init(
    _ lab: Lab, name: String = "handmade.tar.zst", id: Archive.ID? = nil, app: String = "com.example.lab",
    instance: String = "box", time: String = "2026-11-20T10:15:00Z", parent: Archive.ID? = nil,
    follows: [String]? = nil
  ) throws {
    self.lab = lab
    path = lab.repository + "/" + name
    self.id = try id ?? Archive.ID.new()
    var header = Archive.Header(
      archive: self.id, app: app, instance: instance, layout: .generic, schemaVersion: nil, time: time,
      tool: "test", parent: parent)
    header.follows = follows
    captured = header.captured ?? 0
    self.header = try header.encoded()
    addDirectory(.root)
  }

  // MARK: Parts that agree

  mutating func addDirectory(_ path: ContainerPath) {
    members.append((member(path, .directory), []))
    entries.append(directory(path))
  }

  mutating func addFile(_ path: ContainerPath, _ text: String) throws {
    let bytes = Array(text.utf8)
    members.append((member(path, .file(size: UInt64(bytes.count))), bytes))
    entries.append(try file(path, bytes))
  }

  mutating func addLink(_ path: ContainerPath, to target: String) {
    members.append((member(path, .symbolicLink(target: Array(target.utf8))), []))
    var entry = entry(path, .symbolicLink)
    entry.linkTarget = Array(target.utf8)
    entries.append(entry)
  }

  func member(_ path: ContainerPath, _ kind: ArchiveMember.Kind) -> ArchiveMember {
    ArchiveMember(
      name: MemberNames(groups: []).name(of: path), kind: kind,
      metadata: FileMetadata(
        mode: 0o755, user: 0, group: 0, modified: 1_700_000_000_000_000_000, attributes: []))
  }

  func directory(_ path: ContainerPath) -> ManifestEntry { entry(path, .directory) }

  func file(_ path: ContainerPath, _ bytes: [UInt8]) throws -> ManifestEntry {
    var entry = entry(path, .file)
    (entry.size, entry.digest) = (UInt64(bytes.count), try SHA256.hash(bytes))
    return entry
  }

  func entry(_ path: ContainerPath, _ kind: ManifestEntry.Kind) -> ManifestEntry {
    ManifestEntry(
      path: path, kind: kind,
      metadata: FileMetadata(
        mode: 0o755, user: 0, group: 0, modified: 1_700_000_000_000_000_000, attributes: []),
      identity: FileIdentity(device: 1, inode: 1), changed: 1)
  }

  // MARK: Writing

  func write() throws -> String {
    guard lab.place != nil else {
      try write(to: path)
      return path
    }
    try lab.store(path, bytes())
    return path
  }

  func bytes() throws -> [UInt8] {
    let file = lab.directory("handmade")
    try write(to: file)
    return [UInt8](try RawFiles.read(Array(file.utf8)))
  }

  private func write(to path: String) throws {
    let file = try FileDescriptor.open(
      FilePath(path), .readWrite, options: [.create, .truncate], permissions: .ownerReadWrite)
    try file.closeAfter {
      let writer = try ArchiveWriter(to: file, encryption: encryption)
      try writer.addMember(
        .file(Archive.Header.memberName, size: UInt64(header.count), mode: headerMode, modified: captured),
        contents: header)
      var offsets: [[UInt8]: UInt64] = [:]
      for (member, content) in members {
        offsets[member.name] = try writer.addMember(member, contents: content)
      }
      let manifest = try makeManifest(offsets, addVault(to: writer))
      let offset = try writer.addMember(
        .file(MemberNames.manifest, size: UInt64(manifest.count), mode: manifestMode, modified: captured),
        contents: manifest)
      _ = try writer.finish(
        manifest: MemberLocation(
          offset: offset, length: UInt64(manifest.count), sha256: try SHA256.hash(manifest)))
    }
  }

  private func addVault(to writer: ArchiveWriter) throws -> MemberLocation? {
    guard let vault else {
      return claimsVault ? MemberLocation(offset: 512, length: 1, sha256: try SHA256.hash([])) : nil
    }
    let offset = try writer.addMember(
      .file(MemberNames.vault, size: UInt64(vault.count), mode: MemberNames.vaultMode, modified: captured),
      contents: vault)
    return vaultRecord(
      MemberLocation(offset: offset, length: UInt64(vault.count), sha256: try SHA256.hash(vault)))
  }

  private func makeManifest(_ offsets: [[UInt8]: UInt64], _ vault: MemberLocation?) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let writer = try ManifestWriter(path: directory("manifest"), archive: id)
    for var entry in entries {
      if let pages = MemberNames(groups: []).pagesName(of: entry.path).flatMap({ offsets[$0] }) {
        entry.extents = Extents(
          entry.extents.map {
            $0.archive == nil ? Extent(offset: pages + $0.offset, length: $0.length) : $0
          })
      }
      if entry.isFile, entry.size > 0, entry.extents.isEmpty, entry.hardLink == nil,
        let offset = offsets[MemberNames(groups: []).name(of: entry.path)]
      {
        entry.extents.append(Extent(offset: offset, length: entry.size))
      }
      try writer.add(entry, since: inherited.contains(entry.path) ? entry : nil)
    }
    if let vault { try writer.add(vault) }
    for path in skipped { try writer.add(path) }
    for path in excluded { try writer.add(path) }
    _ = try writer.finish()
    if let sql {
      // Another process, so that nothing of this one checks or caches anything.
      try Command.succeed(Tools.system("sqlite3"), ["-bail", directory("manifest")], input: Array(sql.utf8))
    }
    return Array(try RawFiles.read(Array(directory("manifest").utf8)))
  }
}
