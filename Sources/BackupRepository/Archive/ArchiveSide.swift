import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import SystemPackage

/// An archive, as a side of a comparison. Its manifest shows what differs; only differing content is read.
package struct ArchiveSide: ComparisonSide {
  package private(set) var entries: [ComparedEntry] = []
  /// See ``ComparisonSide``: excluded paths, and those that could not be stored.
  package private(set) var omitted: [ContainerPath: String] = [:]
  private let archive: Archive
  /// The files of databases that SQLite could not open: the endings of their names and their digests.
  private var raw: [ContainerPath: [String: SHA256.Digest]] = [:]

  /// Reads an archive's manifest.
  ///
  /// - Parameter configuration: where settings and secrets are; the archive's header says the rest.
  package init(_ archive: Archive, configuration: ContainerConfiguration = ContainerConfiguration()) throws {
    self.archive = archive
    try archive.requireComplete()
    let header = archive.header
    let container = Container(
      planned: archive.path, layout: configuration.layout ?? header.layout,
      app: configuration.app ?? header.app, instance: header.instance, configuration: configuration)
    var found: [ComparedEntry] = []
    var parts: [ContainerPath: [String: SHA256.Digest]] = [:]
    try archive.manifest.entries { entry in
      if entry.kind == .rawDatabase, let digest = entry.digest {
        // A main file comes before its sidecars.
        if let main = DatabaseUnit.main(ofSidecar: entry.path), parts[main] != nil {
          let suffix = entry.path.nameString.dropFirst(main.nameString.count)
          parts[main]?[String(suffix)] = digest
          return
        }
        parts[entry.path] = ["": digest]
      }
      found.append(try Self.compared(entry, container))
    }
    raw = parts
    for path in try archive.manifest.excluded() { omitted[path.path] = path.exclusion.description }
    for path in try archive.manifest.skipped() {
      switch path.reason {
      case .special: found.append(ComparedEntry(path.path, .other))
      case .mount: omitted[path.path] = "another file system is mounted there"
      case .unreadable, .unstable: omitted[path.path] = OmissionReason.unreadable
      }
    }
    entries = found.sorted { $0.path < $1.path }
  }

  private static func compared(_ entry: ManifestEntry, _ container: Container) throws -> ComparedEntry {
    let kind: ComparedEntry.Kind =
      switch entry.kind {
      case .directory: .directory
      case .symbolicLink: .link
      case .database, .rawDatabase: .database
      case .file: container.comparedKind(ofFile: entry.path)
      }
    var compared = ComparedEntry(entry.path, kind)
    try compared.describe(entry.metadata)
    compared.linkTarget = entry.linkTarget
    if [.file, .settings, .vault].contains(kind) { compared.size = entry.size }
    return compared
  }

  package func digest(of path: ContainerPath) throws -> SHA256.Digest? { try entry(path).digest }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    // A settings file is a few kilobytes.
    try contents(of: path, limit: 64 << 20).flatMap { try PropertyListFile.settings(in: $0) }
  }

  package func vault(of path: ContainerPath) throws -> ComparedVault? {
    try contents(of: path, limit: UInt64(Vault.sizeLimit)).map { .sealed($0) }
  }

  /// Nil for what is larger.
  private func contents(of path: ContainerPath, limit: UInt64) throws -> [UInt8]? {
    let entry = try entry(path)
    guard entry.size <= limit else { return nil }
    var bytes: [UInt8] = []
    try read(entry) { bytes.append(contentsOf: $0) }
    return bytes
  }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    if let digests = raw[path] { return .raw(digests) }
    return try entry(path).digest.map { .image($0) } ?? .unknown
  }

  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    guard raw[path] == nil else {
      throw DrydockError(
        .malformed, "SQLite could not open it when the archive was written", path: path.description)
    }
    let file = try scratch.createFile(name)
    defer { try? file.close() }
    let full = scratch.full(name)
    try read(entry(path)) { bytes in
      do { _ = try file.writeAll(bytes) } catch let error as Errno {
        throw DrydockError.system("cannot write a copy of the database", full, error)
      }
    }
    return full
  }

  package func forgetDatabase(_ path: ContainerPath) {}

  private func entry(_ path: ContainerPath) throws -> ManifestEntry {
    guard let entry = try archive.manifest.entry(path) else {
      throw DrydockError(.damaged, "its manifest has no entry for \(path)", path: archive.path)
    }
    return entry
  }

  /// Wrong content is an error, after it was passed on.
  private func read(_ entry: ManifestEntry, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    try archive.content(of: archive.manifest.withContent(entry), body)
  }
}
