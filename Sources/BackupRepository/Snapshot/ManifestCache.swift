import ArchiveManifest
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Storage
import SystemPackage

/// Copies of the manifests of encrypted archives, on the machine that writes them and need not be able to decrypt them: the
/// next snapshot is compared with them. They hold names, attributes, sizes and hashes, and no contents. They can be removed
/// at any time; then the next archive is a full one.
///
/// Each owner of archives in a repository has a directory, and in it each archive a file of its name: one line of JSON, then
/// the manifest as it is in the archive.
package struct ManifestCache: Sendable {
  private let path: String

  /// - Parameter path: a directory for caches; it is created on the first use.
  package init(_ path: String) { self.path = path + "/manifests" }

  /// What an archive's file was when it was published, and what of it is not in the manifest.
  private struct Record: Codable {
    var header: Archive.Header
    var size: UInt64
    /// The SHA-256 of the file's first bytes. They have the file key, encrypted, so that they differ after a rekey.
    var beginning: String
    var tarSize: UInt64
    var manifestSize: UInt64, manifestHash: String
  }

  private static let scratchPrefix = ".drydock-writing-", lineLimit = 1 << 16
  /// Seconds after which the directory of an owner without new archives is removed.
  private static let staleAge: Int64 = 100 * 86_400

  /// The directory for an owner's archives; nil if there is none.
  private func folder(_ repository: String, _ app: String, _ instance: String) throws -> Directory? {
    guard FollowedStatus.identity(path) != nil else { return nil }
    let base = try Directory(path)
    let status = try base.status()
    guard status.user == geteuid(), status.mode & 0o077 == 0 else {
      throw DrydockError(
        .permission, "the cache is not private to this user; remove it, or choose another directory",
        path: path)
    }
    let name = try Self.name(repository, app, instance)
    return try base.status(name) == nil ? nil : base.directory(name)
  }

  /// By what names of archives have of their owner, which is all that is known of an archive without a key.
  private static func name(_ repository: String, _ app: String, _ instance: String) throws -> ContainerPath {
    let place = realPath(repository) ?? repository
    let parts = [place, ArchiveLabel.nameKey(app, instance)]
    return try ContainerPath(String(SHA256.hash(Array(parts.joined(separator: "\n").utf8)).hex.prefix(32)))
  }

  // MARK: Reading

  /// The manifest of a snapshot; nil unless the manifests of all archives that it needs are here, and their files are in the
  /// repository as they were written.
  ///
  /// - Parameters:
  ///   - archive: the path of its file.
  ///   - present: what is in the repository.
  /// - Throws: `DrydockError` if a file of the cache cannot be read, or is damaged.
  func snapshot(
    of archive: String, app: String, instance: String, _ present: PlaceListing
  ) throws -> Manifest? {
    let (repository, name) = try Places.ofFile(archive)
    guard let folder = try folder(repository.path, app, instance), try folder.status(name) != nil else {
      return nil
    }
    let (names, owner) = (
      try folder.names().filter(ArchiveLabel.isFileName), ArchiveLabel.ownerKey(app, instance)
    )
    var chain: [ManifestReader] = []
    var candidates = [name]
    while true {
      var found: ManifestReader?
      for name in candidates where found == nil {
        found = try manifest(name, in: folder, of: chain.last?.header.parent, owner) {
          try Self.state(of: present.file(name), in: repository)
        }
      }
      guard let found else { return nil }
      chain.append(found)
      guard let parent = found.header.parent, chain.count < Manifest.longestChain else {
        return try Manifest(chain)
      }
      // A name has the beginning of the id.
      candidates = names.filter { Self.label($0)?.id.hasPrefix(parent.short) ?? false }
        .map { ContainerPath(name: $0) }
    }
  }

  private static func label(_ name: [UInt8]) -> ArchiveLabel? {
    ArchiveLabel(fileName: String(decoding: name, as: UTF8.self))
  }

  /// The manifest in a file of the cache; nil if it is of another archive than the wanted one or of another owner, or
  /// the archive's file is not in the repository as it was written.
  private func manifest(
    _ name: ContainerPath, in folder: Directory, of wanted: Archive.ID?, _ owner: String,
    state: () throws -> (UInt64, String)?
  ) throws -> ManifestReader? {
    let path = folder.full(name)
    let file = try folder.openFile(name)
    defer { try? file.close() }
    let bytes = try ArchiveSource(file).beginning(Self.lineLimit)
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
      let record = try? JSONDecoder().decode(Record.self, from: Data(bytes[..<end]))
    else { throw Self.damaged(path) }
    guard wanted == nil || record.header.archive == wanted,
      ArchiveLabel(record.header).ownerKey == owner,
      let state = try state(), state == (record.size, record.beginning)
    else { return nil }
    return try ManifestReader(
      record.header, tarSize: record.tarSize, fileSize: record.size, path: path, size: record.manifestSize
    ) { target in
      let hash = try SHA256()
      try Self.copy(file, from: Int64(end + 1), to: target) { hash.update($0) }
      guard try hash.finalize().hex == record.manifestHash else { throw Self.damaged(path) }
    }
  }

  private static func damaged(_ path: String) -> DrydockError {
    DrydockError(.damaged, "a file of the cache is damaged; remove it", path: path)
  }

  /// The size of an archive's file, and the hash of its beginning; nil if it is not there.
  private static func state(of file: PlaceFile?, in repository: any Place) throws -> (UInt64, String)? {
    guard let file, file.isFile else { return nil }
    return (file.size, try SHA256.hash(repository.open(file, usesCache: true).beginning(4096)).hex)
  }

  private static func copy(
    _ source: FileDescriptor, from start: Int64, to target: FileDescriptor,
    _ visit: (UnsafeRawBufferPointer) -> Void = { _ in }
  ) throws {
    let read = { (offset: UInt64, buffer: UnsafeMutableRawBufferPointer) throws -> Int in
      try source.read(fromAbsoluteOffset: start + Int64(offset), into: buffer)
    }
    try readInPieces(read: read) { piece in
      visit(piece)
      _ = try target.writeAll(piece)
    }
  }

  // MARK: Writing

  /// Keeps the manifest of an archive that was published, and removes what no next snapshot needs.
  ///
  /// - Parameters:
  ///   - archive: the path of its file.
  ///   - file: its manifest, whose place in the archive is `location`.
  ///   - parent: what it is the difference to.
  func store(
    _ header: Archive.Header, of archive: String, _ file: FileDescriptor, _ location: MemberLocation,
    tarSize: UInt64, parent: Manifest?
  ) throws {
    let (repository, name) = try Places.ofFile(archive)
    guard let (size, beginning) = try Self.state(of: repository.file(name), in: repository) else { return }
    let folder = try makeFolder(repository.path, header)
    let record = Record(
      header: header, size: size, beginning: beginning, tarSize: tarSize, manifestSize: location.length,
      manifestHash: location.sha256.hex)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let line = [UInt8](try encoder.encode(record)) + [UInt8(ascii: "\n")]
    // A line that is too long would be read as damaged.
    guard line.count <= Self.lineLimit else { return }
    let scratch = try ScratchDirectory(Self.scratchPrefix, in: folder)
    let output = try scratch.directory.createFile("manifest")
    defer { try? output.close() }
    do {
      _ = try output.writeAll(line)
      try Self.copy(file, from: 0, to: output)
    } catch let error as Errno {
      throw DrydockError.system("cannot write", scratch.directory.full("manifest"), error)
    }
    try scratch.directory.syncFile(output, "manifest")
    try scratch.directory.rename("manifest", in: folder, to: name)
    try folder.sync()
    try removeUnused(folder, repository, header, parent)
  }

  private func makeFolder(_ repository: String, _ header: Archive.Header) throws -> Directory {
    let parent = String(path.prefix(path.count - lastName(path).count))
    do {
      try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    } catch {
      throw DrydockError(.io, "the cache's directory cannot be created", path: parent, cause: error)
    }
    try Directory(parent).createDirectories(ContainerPath(lastName(path)))
    try Directory(path).createDirectories(Self.name(repository, header.app, header.instance))
    guard let folder = try folder(repository, header.app, header.instance) else {
      throw DrydockError(.notFound, "the cache was removed meanwhile", path: path)
    }
    return folder
  }

  /// Removes the manifests of archives that are no longer in the repository, or older than the chain; and the directories of
  /// owners that have had no snapshot for a long time.
  private func removeUnused(
    _ folder: Directory, _ repository: any Place, _ header: Archive.Header, _ parent: Manifest?
  ) throws {
    let chain = [header] + (parent?.parts.map(\.header) ?? [])
    let start = chain[chain.count - 1].time
    // An archive that is published while this runs is in the second list if its manifest is in the first.
    let unused = try folder.names().filter { name in
      ArchiveLabel.isFileName(name)
        && !chain.contains { $0.archive.short == Self.label(name)?.id.prefix(8) ?? "" }
    }
    let present = unused.isEmpty ? [] : Set(try repository.list().names)
    for name in unused where !present.contains(name) || Self.label(name)?.time ?? "" < start {
      try folder.removeFile(ContainerPath(name: name), missingIsFine: true)
    }
    let base = try Directory(path)
    let limit = (Int64(Date().timeIntervalSince1970) - Self.staleAge) * 1_000_000_000
    for name in try base.names() {
      let name = ContainerPath(name: name)
      if let status = try base.status(name), status.type == .directory, status.modified < limit {
        try base.removeTree(name)
      }
    }
  }

  /// Removes the manifests of an owner's archives.
  func remove(_ repository: String, app: String, instance: String) throws {
    guard try folder(repository, app, instance) != nil else { return }
    try Directory(path).removeTree(Self.name(repository, app, instance))
  }
}
