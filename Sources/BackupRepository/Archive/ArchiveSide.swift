import ArchiveManifest
import AppContainer
import AppStores
import ContainerDiff
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import SystemPackage

/// An archive, as a side of a comparison. Its manifest shows what differs; only differing content is read.
package struct ArchiveSide: ComparisonSide {
  private let archive: Archive
  private let container: Container

  /// - Parameter configuration: where settings and secrets are; the archive's header says the rest.
  package init(_ archive: Archive, configuration: ContainerConfiguration = ContainerConfiguration()) throws {
    self.archive = archive
    try archive.requireComplete()
    try archive.checkExpansion()
    let header = archive.header
    container = Container(
      planned: archive.path, layout: configuration.layout ?? header.layout,
      app: configuration.app ?? header.app, instance: header.instance, configuration: configuration)
  }

  package func walk() throws -> SideWalk {
    let manifest = archive.manifest
    var omitted = try manifest.excluded().map { ($0.path, $0.exclusion.description) }
    // Sockets and the like are not among the entries.
    var special: [ContainerPath] = []
    for path in try manifest.skipped() {
      switch path.reason {
      case .special: special.append(path.path)
      case .mount: omitted.append((path.path, "another file system is mounted there"))
      case .unreadable, .unstable: omitted.append((path.path, NotCompared.unreadable))
      }
    }
    special.sort(by: >)
    var (steps, entries) = (omitted.makeIterator(), try MergedEntries(manifest))
    var head: ComparedEntry?
    // The databases that SQLite could not open. A main file comes before its sidecars.
    var raw: Set<ContainerPath> = []
    return {
      if let (path, reason) = steps.next() { return .omitted(path, reason) }
      while head == nil, let entry = try entries.next() {
        if entry.kind == .rawDatabase {
          if let main = DatabaseUnit.main(ofSidecar: entry.path), raw.contains(main) { continue }
          raw.insert(entry.path)
        }
        head = try Self.compared(entry, container)
      }
      if let path = special.last, head.map({ path < $0.path }) ?? true {
        special.removeLast()
        return .entry(ComparedEntry(path, .other))
      }
      defer { head = nil }
      return head.map { .entry($0) }
    }
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
    try compared.describe(entry.metadata, size: entry.size)
    compared.linkTarget = entry.linkTarget
    if compared.size != nil { compared.digest = entry.digest }
    return compared
  }

  package func digest(of entry: ComparedEntry) throws -> SHA256.Digest? { entry.digest }

  package func contents(of entry: ComparedEntry) throws -> [UInt8]? {
    try contents(of: entry.path, limit: entry.size ?? 0)
  }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    let source = try Container.settingsSource(path) { try archive.manifest.entry($0)?.kind == .file }
    guard try archive.manifest.entry(source) != nil else { return nil }
    // A settings file is a few kilobytes.
    return try contents(of: source, limit: 64 << 20).flatMap {
      try SettingsFile.settings(in: $0, path: path.description)
    }
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
    let entry = try entry(path)
    guard entry.kind == .rawDatabase else { return entry.digest.map { .image($0) } ?? .unknown }
    var digests: [String: SHA256.Digest] = [:]
    digests[""] = entry.digest
    for suffix in DatabaseFormat.sidecarSuffixes {
      let sidecar = try archive.manifest.entry(path.withSuffix(suffix))
      if let sidecar, sidecar.kind == .rawDatabase { digests[suffix] = sidecar.digest }
    }
    return .raw(digests)
  }

  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    let entry = try entry(path)
    guard entry.kind != .rawDatabase else {
      throw DrydockError(
        .malformed, "SQLite could not open it when the archive was written", path: path.description)
    }
    let file = try scratch.createFile(name)
    defer { try? file.close() }
    let full = scratch.full(name)
    let doing = "cannot write a copy of the database"
    let output = FileOutput(file, size: entry.size)
    try read(entry) { bytes in try DrydockError.translating(doing, full) { try output.appendWithHoles(bytes) }
    }
    _ = try DrydockError.translating(doing, full) { try output.finish() }
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
