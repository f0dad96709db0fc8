import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// What a restore does, decided path by path before anything is staged. The rules are the design's nine; their
/// numbers stand where they are decided.
struct RestorePlan {
  /// Entries whose content comes from the archive.
  private(set) var contents: [ManifestEntry] = []
  /// Further names that are linked to their first one, once its content is in place.
  private(set) var links: [ManifestEntry] = []
  /// Entries whose content is right and whose attributes are not.
  private(set) var attributes: [ManifestEntry] = []
  /// Directories of the archive, parents first.
  private(set) var directories: [ManifestEntry] = []
  /// Live paths that go, the deepest first.
  private(set) var removals: [ContainerPath] = []
  private(set) var report = RestoreReport()
  /// What becomes of the vault; nil when nothing is to be decided.
  private(set) var vault: VaultPlan?
  /// What must be in the tar around the contents.
  private(set) var members = MemberGaps()

  private let archive: Archive
  private let staged: StagedContainer
  private let options: RestoreOptions
  private let live: LiveContainer
  private let recorded: RecordedPaths
  private let scope: RestoreScope
  /// Live paths that stay, and the directories above them.
  private var spared: Set<ContainerPath> = []
  private var neededDirectories: Set<ContainerPath> = []
  /// Directories whose flag keeps something that stays out of backups: without it, the next restore would remove that.
  private var flaggedDirectories: Set<ContainerPath> = []
  private var comparison: LiveComparison
  /// The vault's file in the archive, when the container has another one.
  private var vaultEntry: ManifestEntry?
  /// Further names that are right, by the first one; and the first names that get another inode.
  private var rightLinks: [ContainerPath: [ManifestEntry]] = [:]
  private var movedFirsts: Set<ContainerPath> = []
  /// Directories outside of the scope that the container lacks.
  private var missing: [ContainerPath: ManifestEntry] = [:]
  private let groups: RestoredGroups

  init(_ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions) throws {
    self.archive = archive
    self.staged = staged
    self.options = options
    live = try LiveContainer(staged)
    recorded = try RecordedPaths(
      archive.manifest, layout: archive.header.layout, includesExcluded: options.includeExcluded)
    groups = RestoredGroups(archive.header, staged.container)
    scope = try RestoreScope(options, recorded, live, staged.container)
    comparison = LiveComparison(
      live, staged, recorded, archive.header, keepsSetID: options.keepsSetID)
    try decideLive()
    let id = try SnapshotID()
    try archive.manifest.entries { entry in
      try id.add(entry)
      members.add(entry)
      try decide(entry)
    }
    guard try id.finish().hex == archive.snapshot else {
      throw DrydockError(
        .damaged, "the manifest's entries do not give its snapshot id; use another archive",
        path: archive.path)
    }
    if let vaultEntry { try decideVault(vaultEntry) }
    // An inode gets all its names anew when it gets one.
    for first in movedFirsts { links += rightLinks[first] ?? [] }
    try addMissingDirectories()
    try refuseTypeConflicts()
  }

  /// Whether the content of every entry comes from the archive.
  var readsEverything: Bool {
    let read = contents.count { $0.size > 0 && $0.path != vaultEntry?.path }
    return read + (vaultEntry?.offset == nil ? 0 : 1) == members.gaps.count
  }

  // MARK: Live paths

  /// What of the live container stays although the archive does not have it, and what goes.
  private mutating func decideLive() throws {
    for (path, scanned) in live.paths.sorted(by: { $0.key < $1.key }) {
      if let reason = groups.sparing(path) {
        spare(path, scope.contains(path) ? reason : nil)
      } else if isStaleSidecar(path, scanned) {
        removals.append(path)  // rule 1
      } else if !scope.contains(path) || scanned.exclusion?.rule == .state {
        spare(path, nil)  // rule 7; and nobody needs to be told of Drydock's own
      } else if let reason = sparing(path, scanned) {
        spare(path, reason)
      } else if recorded.kinds[path] == nil, path == staged.container.vaultPath, scanned.kind == .file,
        !options.keepExtra
      {
        try decideExtraVault()
      } else if recorded.kinds[path] == nil && !scanned.isSidecar {
        options.keepExtra ? spare(path, nil) : removals.append(path)  // rule 6
      }
    }
    // Directories that hold something spared stay with it.
    removals = removals.filter { !neededDirectories.contains($0) }.sorted(by: >)
    report.removed = removals.sorted()
  }

  /// Why a live path is left alone; nil when it is not.
  private func sparing(_ path: ContainerPath, _ scanned: ScannedEntry) -> String? {
    if let reason = groups.sparing(path) { return reason }
    if scanned.isSidecar { return nil }  // rule 1: it goes, or stays, with its database
    let isStored = recorded.kinds[path] != nil
    // Rule 2. What a rule keeps out is replaced on demand, but never removed for not being in the archive.
    if !options.overwriteExcluded || scanned.exclusion?.rule == .state
      || !(isStored || isReplacedFromAbove(path))
    {
      if let exclusion = scanned.exclusion { return exclusion.description }
      if let exclusion = recorded.exclusion(of: path) {
        return exclusion.description + " when the archive was made"
      }
    }
    if isStored { return nil }
    if let reason = recorded.skipped(path) {  // rule 4
      return "\(reason.rawValue) when the archive was made"
    }
    switch scanned.kind {
    case .mount: return "another file system is mounted here"
    case .special: return "a socket, FIFO or device"
    default: return nil
    }
  }

  /// Whether a file or link of the archive comes where a directory above is now.
  private func isReplacedFromAbove(_ path: ContainerPath) -> Bool {
    path.ancestors.contains { above in
      recorded.kinds[above].map { $0 != .directory && scope.contains(above) } ?? false
    }
  }

  /// Whether a file is a log or journal that a database, about to come back beside it, would take for its own.
  private func isStaleSidecar(_ path: ContainerPath, _ scanned: ScannedEntry) -> Bool {
    guard scanned.kind == .file, recorded.kinds[path] == nil, let main = DatabaseUnit.main(ofSidecar: path),
      let kind = recorded.kinds[main], kind == .database || kind == .rawDatabase, scope.contains(main)
    else { return false }
    guard let present = live.paths[main] else { return true }
    return sparing(main, present) == nil
  }

  private mutating func spare(_ path: ContainerPath, _ reason: String?) {
    spared.insert(path)
    for above in path.ancestors where !neededDirectories.insert(above).inserted { break }
    if let exclusion = live.paths[path]?.exclusion, exclusion.origin != path, exclusion.rule.isFlag {
      flaggedDirectories.insert(exclusion.origin)
    }
    guard let reason else { return }
    // One line for a directory tells of all below it.
    if let last = report.spared.last, path.isInside(last.path) { return }
    report.spared.append(.init(path: path, reason: reason))
  }

  // MARK: Entries of the archive

  private mutating func decide(_ entry: ManifestEntry) throws {
    guard recorded.kinds[entry.path] != nil else { return }  // rule 3: stored although excluded
    if let group = groups.missing(entry.path) {
      if scope.contains(entry.path), !report.missingGroups.contains(group) {
        report.missingGroups.append(group)
      }
      return
    }
    let present = live.paths[entry.path]
    guard scope.contains(entry.path) else {
      if entry.kind == .directory, present == nil, !entry.path.isRoot { missing[entry.path] = entry }
      return
    }
    if spared.contains(entry.path) || flaggedDirectories.contains(entry.path) { return }
    if present == nil, !entry.path.isRoot, live.exclusionAbove(entry.path) != nil {
      // Rule 3: a directory that is flagged now does not keep a stored path away.
      report.restoredUnderExcluded.append(entry.path)
    }
    if entry.kind == .directory {
      directories.append(try withheld(entry, hasContent: present?.kind == .directory || entry.path.isRoot))
      if !entry.path.isRoot, present?.kind != .directory { report.restored.append(entry.path) }
      return
    }
    let result = try comparison.compare(entry, present)
    if case .other = result, entry.path == staged.container.vaultPath {
      vaultEntry = try withheld(entry)
      return
    }
    switch result {
    case .same, .sameWithoutRights:
      if case .sameWithoutRights = result { report.withoutSetID.append(entry.path) }
      if let first = entry.hardLink { rightLinks[first, default: []].append(entry) }
      report.unchanged += 1
    case .otherAttributes:
      attributes.append(try withheld(entry, hasContent: true))
      report.restored.append(entry.path)
    case .other:
      try bringBack(try withheld(entry))
      report.restored.append(entry.path)
    }
  }

  /// The entry without the rights that its file may not get, noted in the report.
  ///
  /// - Parameter hasContent: whether the container has the same content there, whose rights are its own.
  private mutating func withheld(_ entry: ManifestEntry, hasContent: Bool = false) throws -> ManifestEntry {
    guard !options.keepsSetID, entry.metadata.givesRights else { return entry }
    let result = entry.withoutRights(
      keepingThoseOf: hasContent ? try staged.metadata(of: entry.path) : nil)
    if result.metadata != entry.metadata { report.withoutSetID.append(entry.path) }
    return result
  }

  /// A directory outside of the scope that is missing comes back as it was when something in it does.
  private mutating func addMissingDirectories() throws {
    for entry in contents + links + directories where !missing.isEmpty {
      for above in entry.path.ancestors {
        guard let directory = missing.removeValue(forKey: above) else { continue }
        directories.append(try withheld(directory))
        report.restored.append(above)
      }
    }
    directories.sort { $0.path < $1.path }
    report.restored.sort()
    report.withoutSetID.sort()
  }

  private mutating func bringBack(_ entry: ManifestEntry) throws {
    guard let first = entry.hardLink else { return contents.append(entry) }
    // A vault may not come back as it was.
    let isReplaced = scope.contains(first) && !spared.contains(first) && first != staged.container.vaultPath
    if recorded.kinds[first] != nil && isReplaced {
      movedFirsts.insert(first)
      links.append(entry)
    } else {
      contents.append(try own(entry))
    }
  }

  /// Of a file that this restore leaves alone: the archive's content, as a file of its own.
  private func own(_ entry: ManifestEntry) throws -> ManifestEntry {
    guard let first = entry.hardLink else { return entry }
    var own = entry
    own.hardLink = nil
    own.offset = try archive.manifest.entry(first)?.offset
    return own
  }

  // MARK: The vault

  /// Rule 8: the vault comes back item by item.
  private mutating func decideVault(_ entry: ManifestEntry) throws {
    let own = try own(entry)
    let isVault = entry.kind == .file && entry.size <= Vault.sizeLimit
    let sealed = isVault ? try RestoredContents(archive, members).read(own) : nil
    let (plan, origin) = try VaultPlan.make(sealed, archive, staged, options)
    switch plan.action {
    case .put:
      contents.append(own)
      report.restored.append(entry.path)
    case .write, .remove: report.restored.append(entry.path)
    case .nothing: if plan.report.leftBehind.isEmpty { report.unchanged += 1 }
    }
    (vault, report.vault, report.vaultOrigin) = (plan, plan.report, origin)
  }

  /// Rule 6, for a vault that the archive lacks.
  private mutating func decideExtraVault() throws {
    let path = staged.container.vaultPath
    let plan = VaultPlan(lackingFor: try LiveVault(staged))
    switch plan.action {
    case .remove: removals.append(path)
    case .write:
      spare(path, nil)
      report.restored.append(path)
    case .nothing, .put: spare(path, nil)
    }
    (vault, report.vault) = (plan, plan.report)
  }

  /// Rule 5: a file must not take the place of a directory in which something is spared, nor the other way round.
  private func refuseTypeConflicts() throws {
    let remedy =
      options.isPartial
      ? "restore all of it" : options.keepExtra ? "leave --keep-extra out" : "give --overwrite-excluded"
    let advice = "move that away, or " + remedy
    for entry in contents + links where neededDirectories.contains(entry.path) {
      let example = spared.filter { $0.isInside(entry.path) }.min()
      throw DrydockError(
        .conflict,
        "the archive has a \(entry.kind.rawValue) where the container has a directory with "
          + "\(example?.description ?? "paths") that must be spared; \(advice)", path: entry.path.description)
    }
    for entry in contents + links + directories {
      guard
        let blocked = entry.path.ancestors.first(where: {
          spared.contains($0) && live.paths[$0]?.kind != .directory
        })
      else { continue }
      throw DrydockError(
        .conflict,
        "the container has something that must be spared where the archive has a directory; \(advice)",
        path: blocked.description)
    }
  }
}
