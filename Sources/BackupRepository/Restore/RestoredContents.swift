import AppContainer
import ArchiveFile
import ContainerTransaction
import Foundation

/// Brings the contents of an archive's entries into a stage, each compared with its hash.
struct RestoredContents {
  /// A group of files smaller than this is not worth a thread: it would only decode frames that the next one
  /// decodes again.
  private static let smallestGroup: UInt64 = 16 << 20

  private let archive: Archive
  private let members: MemberGaps
  private let superseded: [UInt64: SupersededMember]

  init(_ archive: Archive, _ members: MemberGaps) throws {
    (self.archive, self.members) = (archive, members)
    superseded = try archive.manifest.superseded()
  }

  /// Puts files and symbolic links.
  ///
  /// - Throws: ``DrydockError`` with code `damaged`, and what reading the archive and staging throw.
  func put(_ entries: [ManifestEntry], _ staged: StagedContainer) throws {
    for entry in entries {
      guard let target = entry.linkTarget else { continue }
      try staged.putLink(at: entry.path, target: target, metadata: entry.metadata)
    }
    let files = entries.filter(\.isFile)
    let byPath = Dictionary(files.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    let (source, path) = (archive.reader.rangeSource, archive.path)
    let (members, superseded, vault) = (members, superseded, archive.vault)
    let names = archive.header.memberNames
    try staged.putFiles(groups(files)) {
      let ranges = source.reader()
      let check = MemberCheck(ranges, members, superseded: superseded, vault: vault, names: names, path: path)
      return { file, target in
        guard let entry = byPath[file.path] else { return }
        if entry.size > 0, let offset = entry.offset { try check.check(contentAt: offset) }
        try entry.readContent(
          from: ranges, of: path, otherwise: "nothing was changed, use another archive", into: target.write)
      }
    }
  }

  /// Reads one content into memory.
  ///
  /// - Throws: as ``put(_:_:)``.
  func read(_ entry: ManifestEntry) throws -> [UInt8] {
    let ranges = archive.reader.ranges
    let check = MemberCheck(
      ranges, members, superseded: superseded, vault: archive.vault,
      names: archive.header.memberNames, path: archive.path)
    var bytes: [UInt8] = []
    if entry.size > 0, let offset = entry.offset { try check.check(contentAt: offset) }
    try entry.readContent(
      from: ranges, of: archive.path, otherwise: "nothing was changed, use another archive"
    ) { bytes.append(contentsOf: $0) }
    return bytes
  }

  /// Checks what comes after the last content of the archive: nobody who reads all of it must find more there.
  func checkEnd() throws {
    let check = MemberCheck(
      archive.reader.ranges, members, superseded: superseded, vault: archive.vault,
      names: archive.header.memberNames, path: archive.path)
    let manifest = archive.reader.manifest
    try check.checkRest(manifestAt: manifest.offset)
    try archive.reader.checkEnd(after: manifest.offset + RangeReader.padded(manifest.length))
  }

  /// Files that lie one after the other in the archive, in as many groups as keep all cores busy to the end; the
  /// largest groups first.
  private func groups(_ entries: [ManifestEntry]) -> [[NewFile]] {
    let total = entries.reduce(0) { $0 &+ $1.size }
    let cores = UInt64(max(ProcessInfo.processInfo.activeProcessorCount, 1))
    let limit = max(Self.smallestGroup, total / (8 * cores))
    var groups: [(size: UInt64, files: [NewFile])] = []
    for entry in entries.sorted(by: { ($0.offset ?? 0) < ($1.offset ?? 0) }) {
      if groups.isEmpty || groups[groups.count - 1].size >= limit { groups.append((0, [])) }
      groups[groups.count - 1].size += entry.size
      groups[groups.count - 1].files.append(
        NewFile(
          path: entry.path, metadata: entry.metadata, digest: entry.digest, size: entry.size,
          isDatabase: entry.kind != .file))
    }
    return groups.sorted { $0.size > $1.size }.map(\.files)
  }
}
