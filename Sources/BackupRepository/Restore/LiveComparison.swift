import ArchiveManifest
import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Finds the entries of an archive that the live container already has. Used once, in the order of the entries.
struct LiveComparison {
  enum Result {
    case same
    /// The same content, and another mode, owner, time or extended attributes.
    case otherAttributes
    case other
    /// The same but for set-id bits or capabilities that are not restored.
    case sameWithoutRights
  }

  private let live: LivePaths
  private let staged: StagedContainer
  private let directories: LastDirectory
  private let recorded: RecordedPaths
  private let manifest: Manifest
  /// What the archive's capture proves about live files; nil when all contents are to be compared.
  private let capture: CaptureTime?
  /// What commits know of live files; of none when all contents are to be compared.
  private let committed: CommittedFiles
  /// The inodes of live files that are taken for an entry.
  private var claimed: Set<FileIdentity> = []
  /// Entries that get a new inode.
  private var replaced = PathTable<Void>()
  private let keepsSetID: Bool

  init(
    _ live: LivePaths, _ staged: StagedContainer, _ recorded: RecordedPaths, _ archive: Archive,
    _ options: RestoreOptions
  ) throws {
    (self.live, self.staged, self.recorded) = (live, staged, recorded)
    directories = LastDirectory(staged.live)
    manifest = archive.manifest
    keepsSetID = options.keepsSetID
    committed = options.checksContents ? .none : CommittedFiles(of: staged.container)
    capture =
      options.checksContents
      ? nil
      : try CaptureTime(
        archive.header, of: staged.live, committed, settling: options.transaction.seams.settling)
  }

  mutating func compare(_ entry: ManifestEntry, _ present: ScannedEntry.Kind?) throws -> Result {
    // Another name of a file is compared with what is at its first one.
    if present == nil && entry.kind == .file { return .other }
    // An app may have put a link in a file's place since the scan, which is opened nowhere.
    guard let present, let status = try directories.status(of: entry.path),
      status.type == (present == .symbolicLink ? .symbolicLink : .file)
    else {
      replaced[entry.path] = ()
      return .other
    }
    let isUnchanged = capture?.isUnchanged(entry, status) ?? false
    guard try hasContent(of: entry, present, status, isUnchanged) else {
      replaced[entry.path] = ()
      return .other
    }
    // Attributes set a file's change time as its content does, but for those that are set within one tick of the clock.
    var (isSame, result) = (
      isUnchanged && entry.kind == .file && status.mode == entry.metadata.mode
        && (status.user, status.group) == (entry.metadata.user, entry.metadata.group), Result.same
    )
    if !isSame {
      let place = try directories.location(of: entry.path)
      let metadata = try place.directory.metadata(place.name, status)
      isSame = try isEqual(metadata, to: entry)
      if !isSame, !keepsSetID, entry.metadata.givesRights, try isEqual(metadata, to: entry.withoutRights()) {
        (isSame, result) = (true, .sameWithoutRights)
      }
    }
    if let first = entry.hardLink {
      // It gets the inode that its first name gets.
      return !isSame || replaced[first] != nil ? .other : result
    }
    if status.links > 1, !claimed.insert(status.identity).inserted {
      // Two files of the archive that are one now.
      replaced[entry.path] = ()
      return .other
    }
    if isSame { return result }
    replaced[entry.path] = ()
    // A staged copy of a live database does not have the bytes of a raw one.
    let isCopied = entry.kind != .rawDatabase && (entry.kind == .database || !present.isDatabase)
    return isCopied ? .otherAttributes : .other
  }

  /// Whether a path with metadata has that of the archive, as far as this user and file system can set it.
  private func isEqual(_ present: FileMetadata?, to entry: ManifestEntry) throws -> Bool {
    guard let present else { return false }
    let now = expected(present, of: entry)
    if now == expected(entry.metadata, of: entry) { return true }
    let type: FileType = entry.kind == .symbolicLink ? .symbolicLink : .file
    return try now == expected(staged.attainable(entry.metadata, for: type), of: entry)
  }

  /// A database's times move with every checkpoint.
  private func expected(_ metadata: FileMetadata, of entry: ManifestEntry) -> FileMetadata {
    var metadata = metadata
    if entry.kind == .database { metadata.modified = 0 }
    return metadata
  }

  private func hasContent(
    of entry: ManifestEntry, _ present: ScannedEntry.Kind, _ status: FileStatus, _ isUnchanged: Bool
  ) throws -> Bool {
    switch (entry.kind, present) {
    case (.symbolicLink, .symbolicLink): return try staged.linkTarget(entry.path) == entry.linkTarget
    case (.database, .database(let unit)):
      if try capture?.isUnchangedDatabase(entry, status, in: staged.live, manifest) == true { return true }
      if unit.sidecars.isEmpty, status.links == 1, let digest = entry.digest,
        committed.hasContent(digest, status)
      {
        return true
      }
      do {
        let hasPages = try staged.hasPages(entry.path) { try manifest.blocks(of: entry, blockSize: $0) }
        return try hasPages ?? (staged.digest(of: entry.path) == entry.digest)
      } catch let error as DrydockError where error.code == .malformed {
        // Damaged: it is to be restored.
        return false
      }
    // A file of the archive that has a database's log beside it now is not that file.
    case (.file, .database(let unit)) where !unit.sidecars.isEmpty: return false
    case (.rawDatabase, .database(let unit))
    where !unit.sidecars.allSatisfy { recorded.kinds[$0] == .rawDatabase }: return false
    // Its main file comes back, and the sidecars of the old one go with that.
    case (.rawDatabase, .sidecar(let main)) where replaced[main] != nil: return false
    case (.file, .file), (.file, .database), (.rawDatabase, .file), (.rawDatabase, .database),
      (.rawDatabase, .sidecar):
      return try hasBytes(of: entry, status, isUnchanged)
    default: return false
    }
  }

  private func hasBytes(of entry: ManifestEntry, _ status: FileStatus, _ isUnchanged: Bool) throws -> Bool {
    if let first = entry.hardLink, try staged.live.status(first)?.identity != status.identity { return false }
    guard status.size == entry.size else { return false }
    if isUnchanged { return true }
    if let digest = entry.digest, committed.hasContent(digest, status) { return true }
    return try ContentHash.of(entry.path, in: staged.live, isDatabase: false) == entry.digest
  }
}

/// The live container as a restore sees it: every path, also below excluded directories, in the order of the paths.
struct LivePaths {
  /// What most paths are; the others are in ``others``.
  private var types = PathTable<FileType>()
  private var others: [ContainerPath: ScannedEntry.Kind] = [:]
  private var exclusions: [ContainerPath: Exclusion] = [:]
  /// Where the external data of its databases is.
  private(set) var externalData: Set<ContainerPath> = []

  init(_ staged: StagedContainer) throws {
    var scan = ContainerScan(
      staged.live, rules: ExclusionRules(staged.container), entersExcluded: true, status: staged.fileSeen)
    while let entry = try scan.nextEntry() {
      switch entry.kind {
      case .file: types[entry.path] = .file
      case .directory: types[entry.path] = .directory
      case .symbolicLink: types[entry.path] = .symbolicLink
      case .database, .sidecar, .mount, .special:
        types[entry.path] = .other
        others[entry.path] = entry.kind
      }
      if let exclusion = entry.exclusion { exclusions[entry.path] = exclusion }
      if case .database(let unit) = entry.kind, let external = unit.externalData {
        externalData.insert(external)
      }
    }
  }

  var isEmpty: Bool { types.isEmpty }

  subscript(path: ContainerPath) -> ScannedEntry.Kind? { types[path].map { kind(path, $0) } }

  func forEach(_ body: (ContainerPath, ScannedEntry.Kind) throws -> Void) rethrows {
    for (path, type) in types { try body(path, kind(path, type)) }
  }

  private func kind(_ path: ContainerPath, _ type: FileType) -> ScannedEntry.Kind {
    switch type {
    case .file: .file
    case .directory: .directory
    case .symbolicLink: .symbolicLink
    case .other: others[path] ?? .special
    }
  }

  /// Why a backup excludes a path.
  func exclusion(of path: ContainerPath) -> Exclusion? { exclusions[path] }

  /// What excludes the nearest directory above that exists.
  func exclusionAbove(_ path: ContainerPath) -> Exclusion? {
    path.ancestors.first { types[$0] != nil }.flatMap { exclusions[$0] }
  }
}

extension ScannedEntry.Kind {
  /// Whether it is a `-wal`, `-shm` or `-journal` of a database that is there.
  var isSidecar: Bool {
    if case .sidecar = self { true } else { false }
  }

  var isDatabase: Bool {
    if case .database = self { true } else { false }
  }
}
