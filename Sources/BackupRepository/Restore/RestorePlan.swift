import AppContainer
import ContainerTransaction

/// What a restore does, decided path by path before anything is staged. The rules are the design's nine; their
/// numbers stand where they are decided.
struct RestorePlan {
  /// Entries whose content comes from the archive.
  private(set) var contents: [ManifestEntry] = []
  /// Entries whose content is right and whose attributes are not.
  private(set) var attributes: [ManifestEntry] = []
  /// Directories of the archive, parents first.
  private(set) var directories: [ManifestEntry] = []
  /// Live paths that go, the deepest first.
  private(set) var removals: [ContainerPath] = []
  private(set) var report = RestoreReport()

  private let archive: Archive
  private let staged: StagedContainer
  private let options: RestoreOptions
  private let live: LiveContainer
  private let recorded: [ContainerPath: Exclusion]
  private let skipped: [ContainerPath: SkippedPath.Reason]
  /// Paths of the archive in the scope.
  private var stored: Set<ContainerPath> = []
  /// Live paths that stay, and the directories above them.
  private var spared: Set<ContainerPath> = []
  private var neededDirectories: Set<ContainerPath> = []

  init(_ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions) throws {
    self.archive = archive
    self.staged = staged
    self.options = options
    live = try LiveContainer(staged)
    recorded = Dictionary(
      try archive.manifest.excluded().map { ($0.path, $0.exclusion) }, uniquingKeysWith: { first, _ in first }
    )
    skipped = Dictionary(
      try archive.manifest.skipped().map { ($0.path, $0.reason) }, uniquingKeysWith: { first, _ in first })
    try archive.manifest.entries { entry in
      if inScope(entry.path) { stored.insert(entry.path) }
    }
    for path in options.scope where !stored.contains(path) {
      throw RepositoryError(  // rule 7
        .missing, "the archive does not have it; `drydock show` lists what it has", path: path.description)
    }
    try decideLive()
    try archive.manifest.entries { entry in
      if inScope(entry.path) { try decide(entry) }
    }
    try refuseTypeConflicts()
  }

  private func inScope(_ path: ContainerPath) -> Bool {
    options.scope.isEmpty || options.scope.contains { path == $0 || path.isInside($0) }
  }

  // MARK: Live paths

  /// What of the live container stays although the archive does not have it, and what goes.
  private mutating func decideLive() throws {
    for (path, scanned) in live.paths.sorted(by: { $0.key < $1.key }) where inScope(path) {
      if let reason = sparing(path, scanned) {
        spare(path, reason)
      } else if !stored.contains(path) && !isSidecar(scanned) {
        options.keepExtra ? spare(path, nil) : removals.append(path)  // rule 6
      }
    }
    // Directories that hold something spared stay with it.
    removals = removals.filter { !neededDirectories.contains($0) }.sorted(by: >)
    report.removed = removals.sorted()
  }

  /// Why a live path is left alone; nil when it is not.
  private func sparing(_ path: ContainerPath, _ scanned: ScannedEntry) -> String? {
    if case .sidecar = scanned.kind { return nil }  // rule 1: it goes, or stays, with its database
    if !options.overwriteExcluded {  // rule 2
      if let exclusion = scanned.exclusion { return exclusion.description }
      if let exclusion = recordedExclusion(path) {
        return exclusion.description + " when the archive was made"
      }
    }
    if stored.contains(path) { return nil }
    if let reason = skipped[path] { return "\(reason.rawValue) when the archive was made" }  // rule 4
    switch scanned.kind {
    case .mount: return "another file system is mounted here"
    case .special: return "a socket, FIFO or device"
    default: return nil
    }
  }

  private func isSidecar(_ scanned: ScannedEntry) -> Bool {
    if case .sidecar = scanned.kind { true } else { false }
  }

  private func recordedExclusion(_ path: ContainerPath) -> Exclusion? {
    if let own = recorded[path] { return own }
    return path.ancestors.lazy.compactMap { recorded[$0] }.first
  }

  private mutating func spare(_ path: ContainerPath, _ reason: String?) {
    spared.insert(path)
    for above in path.ancestors where !neededDirectories.insert(above).inserted { break }
    guard let reason else { return }
    // One line for a directory tells of all below it.
    if let last = report.spared.last, path.isInside(last.path) { return }
    report.spared.append(.init(path: path, reason: reason))
  }

  // MARK: Entries of the archive

  private mutating func decide(_ entry: ManifestEntry) throws {
    if spared.contains(entry.path) { return }
    let present = live.paths[entry.path]
    if present == nil, !entry.path.isRoot, live.exclusionAbove(entry.path) != nil {
      // Rule 3: a directory that is flagged now does not keep a stored path away.
      report.restoredUnderExcluded.append(entry.path)
    }
    if entry.kind == .directory {
      directories.append(entry)
      if present == nil && !entry.path.isRoot { report.restored.append(entry.path) }
      return
    }
    guard let present, try isSame(entry, present) else {
      contents.append(entry)
      report.restored.append(entry.path)
      return
    }
    // A database whose content is right is left alone: its times move with every checkpoint.
    if try entry.kind != .database && staged.metadata(of: entry.path) != entry.metadata {
      attributes.append(entry)
      report.restored.append(entry.path)
    } else {
      report.unchanged += 1
    }
  }

  private func isSame(_ entry: ManifestEntry, _ present: ScannedEntry) throws -> Bool {
    switch (entry.kind, present.kind) {
    case (.symbolicLink, .symbolicLink): return try staged.linkTarget(entry.path) == entry.linkTarget
    case (.database, .database): return try staged.liveDigest(of: entry.path) == entry.digest
    case (.rawDatabase, .database(let unit)) where !unit.sidecars.isEmpty: return false
    case (.file, .file), (.rawDatabase, .file), (.file, .database), (.rawDatabase, .database):
      if let first = entry.hardLink, live.paths[first]?.status.identity != present.status.identity {
        return false
      }
      let isUntouched =
        present.status.identity == entry.identity && present.status.changed == entry.changed
        && present.status.modified == entry.metadata.modified && present.status.size == entry.size
      if isUntouched { return true }
      guard present.status.size == entry.size else { return false }
      return try ContentDigest.of(entry.path, in: staged.live, isDatabase: false) == entry.digest
    default: return false
    }
  }

  /// Rule 5: a file must not take the place of a directory in which something is spared, nor the other way round.
  private func refuseTypeConflicts() throws {
    for entry in contents where neededDirectories.contains(entry.path) {
      let example = spared.filter { $0.isInside(entry.path) }.min()
      throw RepositoryError(
        .conflict,
        "the archive has a \(entry.kind.rawValue) where the container has a directory with \(example?.description ?? "paths") "
          + "that must be spared; move that away, or give --overwrite-excluded", path: entry.path.description)
    }
    for entry in contents + directories {
      guard
        let blocked = entry.path.ancestors.first(where: {
          spared.contains($0) && live.paths[$0]?.kind != .directory
        })
      else { continue }
      throw RepositoryError(
        .conflict,
        "the container has something that must be spared where the archive has a directory; move it "
          + "away, or give --overwrite-excluded", path: blocked.description)
    }
  }
}
