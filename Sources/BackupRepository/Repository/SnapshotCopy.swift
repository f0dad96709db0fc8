import ArchiveManifest
import AgeEncryption
import AppStores
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem

/// An archive that was written from another one.
package struct CopyReport: Sendable {
  package var path: String, header: Archive.Header, archiveBytes: UInt64
  /// Number of stored paths, and bytes of their content, where these were copied one by one.
  package var entries = 0, contentBytes: UInt64 = 0
  /// Whether the vault's items for other devices were left out: an archive without encryption never has them.
  package var dropsVaultItems = false
  /// Whether the archive that was read has a signature, and the new one has none.
  package var losesSignature = false
}

/// Writes the snapshot of an archive again, under a new id: as a full archive, or as the difference to another one that
/// was written so. Every content is read from the old chain and compared with its hash on its way; nothing is published
/// unless all are right.
package struct SnapshotCopy {
  private let source: Archive
  private let draft: ArchiveDraft
  /// The first names of hard links, and those of them whose whole content this archive has.
  private let firstNames: Set<ContainerPath>
  private var stored: Set<ContainerPath> = []

  /// Writes a full archive that needs no other one to be read, with the same record of what is not in it.
  ///
  /// - Parameters:
  ///   - encryption: to whom the new archive is encrypted; nil for one that everybody can read.
  ///   - signing: the keys that sign the new archive.
  ///   - tool: the program's name and version, for the header.
  ///   - progress: counts what is read of the archive.
  /// - Throws: `DrydockError`: `damaged`, `overlap`, `notFound`, `locked`.
  package static func export(
    _ source: Archive, to target: ArchiveTarget, encryption: AgeTarget? = nil,
    signing: [SigningKey] = [], tool: String, progress: WorkProgress? = nil
  ) throws -> CopyReport {
    try source.requireComplete()
    var header = source.fullHeader()
    (header.exportedFrom, header.tool) = (source.header.archive, tool)
    return try write(
      source, as: header, encryption: encryption,
      to: ArchiveDestination(target, signing: signing, lockTimeout: 0), progress)
  }

  /// Writes the snapshot of an archive.
  ///
  /// - Parameters:
  ///   - header: its id is replaced by a new one.
  ///   - former: the archive that the new one is the difference to; nil for a full one.
  ///   - status: of the file whose owner, mode and time the new one gets.
  static func write(
    _ source: Archive, as header: Archive.Header, since former: Archive? = nil, tags: [String] = [],
    like status: FileStatus? = nil, encryption: AgeTarget?, to destination: ArchiveDestination,
    _ progress: WorkProgress?
  ) throws -> CopyReport {
    try source.checkExpansion()
    progress?.begin(.export, reading: source)
    var header = header
    header.archive = try .new()
    let draft = try DrydockError.locating(source.path) {
      try ArchiveDraft(header, since: former?.manifest, encryption: encryption, to: destination)
    }
    do {
      var report = CopyReport(path: "", header: header, archiveBytes: 0)
      var copy = try SnapshotCopy(source, draft)
      var entries = try MergedEntries(source.manifest)
      while let entry = try entries.next() {
        try copy.copy(entry)
        report.entries += 1
        report.contentBytes += entry.extents.length
        progress?.add(files: 1)
      }
      try draft.manifest.addOmitted(source.manifest.excluded(), source.manifest.skipped())
      if draft.isEncrypted, let extract = try source.vaultExtract() { try draft.add(extract) }
      try source.expectSnapshot(draft.manifest.finish(storesExcluded: source.manifest.storesExcluded()).hex)
      (report.path, report.archiveBytes) = try draft.publish(tags: tags, like: status)
      report.dropsVaultItems = source.vault != nil && !draft.isEncrypted
      return report
    } catch let error as DrydockError {
      throw draft.explained(error)
    }
  }

  private init(_ source: Archive, _ draft: ArchiveDraft) throws {
    (self.source, self.draft) = (source, draft)
    var firstNames: Set<ContainerPath> = []
    try source.manifest.entries { entry in
      if let first = entry.hardLink { firstNames.insert(first) }
    }
    self.firstNames = firstNames
  }

  private mutating func copy(_ old: ManifestEntry) throws {
    let earlier = try draft.manifest.earlier(at: old.path)
    var entry = old
    entry.extents = try places(of: old, since: earlier)
    // It follows from the first name's entry.
    entry.linkArchive = earlier?.linkArchive
    let capture = try capture(of: old, in: source.manifest)
    if entry == earlier, try draft.parent.map({ try self.capture(of: old, in: $0) }) == capture {
      return try draft.manifest.add(entry, since: earlier)
    }
    if try addMember(&entry, old, since: earlier), firstNames.contains(entry.path) {
      stored.insert(entry.path)
    }
    try draft.manifest.add(entry, capture: capture)
  }

  private func capture(of entry: ManifestEntry, in manifest: Manifest) throws -> DatabaseCaptureState? {
    entry.kind == .database ? try manifest.captureState(of: entry.path) : nil
  }

  /// Where the new chain has a content; empty if it does not have it yet.
  private func places(of entry: ManifestEntry, since earlier: ManifestEntry?) throws -> Extents {
    guard entry.hardLink == nil, entry.size > 0, let digest = entry.digest else { return Extents() }
    return try draft.parent?.places(
      of: digest, size: entry.size, isDatabase: entry.kind == .database, earlier: earlier) ?? Extents()
  }

  /// Adds what the tar has of an entry.
  ///
  /// - Returns: whether it has the whole content.
  private func addMember(
    _ entry: inout ManifestEntry, _ old: ManifestEntry, since earlier: ManifestEntry?
  ) throws -> Bool {
    let (archive, names) = (draft.archive, draft.names)
    switch entry.kind {
    case .directory: try archive.addMember(names.member(entry, .directory))
    case .symbolicLink:
      try archive.addMember(names.member(entry, .symbolicLink(target: entry.linkTarget ?? [])))
    case .file, .database, .rawDatabase:
      if let first = entry.hardLink {
        guard stored.contains(first) else { return false }
        try archive.addMember(names.member(entry, .hardLink(target: names.name(of: first))))
      } else if entry.extents.isEmpty {
        if try addChanged(&entry, old, since: earlier) { return false }
        let offset = try archive.beginMember(names.member(entry, .file(size: entry.size)))
        let blocks = try source.content(of: old, otherwise: Archive.nothingChanged) { try archive.write($0) }
        try archive.endMember()
        try draft.place(&entry, at: offset, blocks)
        return true
      }
    }
    return false
  }

  /// Adds only the blocks that the earlier content of the path does not have.
  ///
  /// - Returns: false when that is not possible, or would save little.
  private func addChanged(
    _ entry: inout ManifestEntry, _ old: ManifestEntry, since earlier: ManifestEntry?
  ) throws -> Bool {
    guard let earlier, let size = try source.blockSize(of: old),
      let known = try draft.blocks(of: earlier, like: entry, blockSize: size),
      let blocks = try source.manifest.blocks(of: old, blockSize: size)
    else { return false }
    return try draft.addChanged(&entry, blocks, since: earlier.extents, known) { ranges, runs in
      for (range, run) in zip(ranges, runs) { try copy(range, run, of: old, blocks) }
      return true
    } ?? false
  }

  /// Copies some blocks, and compares each with its hash.
  private func copy(
    _ range: Range<UInt64>, _ run: Range<Int>, of old: ManifestEntry, _ blocks: BlockHashes
  ) throws {
    let isStart = range.lowerBound == 0 && old.kind == .database
    var hasher = try BlockHasher(blockSize: blocks.blockSize, isDatabaseStart: isStart)
    try source.read(range, of: old) { bytes in
      try draft.archive.write(bytes)
      try hasher.update(bytes)
    }
    let found = try hasher.finish()
    guard found.count == run.count, zip(0..<found.count, run).allSatisfy({ found[$0] == blocks[$1] }) else {
      throw DrydockError(
        .damaged, "the content of \(old.path) is not what the manifest says; \(Archive.nothingChanged)",
        path: source.path)
    }
  }
}

extension Archive {
  /// Reads a range of an entry's content, which is not compared with its hash.
  fileprivate func read(
    _ range: Range<UInt64>, of entry: ManifestEntry, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    for piece in entry.extents.pieces(range) {
      try parts.first { $0.header.archive == piece.archive }?.reader.read(
        offset: piece.offset, length: piece.length, into: body)
    }
  }

  /// The size of the blocks that a content's hash is made of; nil if it is the hash of the whole content.
  fileprivate func blockSize(of entry: ManifestEntry) throws -> Int? {
    guard entry.kind == .database else {
      return entry.size > ContentHash.wholeLimit ? BlockHashes.fileBlock : nil
    }
    var header: [UInt8] = []
    try read(0..<min(entry.size, UInt64(DatabaseFormat.headerLength)), of: entry) {
      header.append(contentsOf: $0)
    }
    return DatabaseFormat.pageSize(ofHeader: header)
  }
}
