import ArchiveManifest
import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Decides what a restore does, path by path before anything is staged. Numbers in comments are those of
/// the rules in the guide "Rolling back and restoring".
struct RestorePlan {
  /// What it does; all else is only for deciding.
  private(set) var changes: RestoreChanges

  private let archive: Archive
  private let staged: StagedContainer
  private let options: RestoreOptions
  private let live: LivePaths
  private let recorded: RecordedPaths
  private let scope: RestoreScope
  /// Live paths that are preserved, and the directories above them.
  private var preserved: Set<ContainerPath> = []
  /// The last one of the report.
  private var reported: ContainerPath?
  private var neededDirectories: Set<ContainerPath> = []
  /// Why rules exclude what is preserved: directories with a flag, and tags of caches. Without them, the next restore would
  /// remove that.
  private var evidence: Set<ContainerPath> = []
  private var comparison: LiveComparison
  /// The vault's file in the archive when it cannot be read, and that is accepted.
  private var unreadVault: ManifestEntry?
  /// Hard links that are right, by the first name; and the first names that get another inode.
  private var rightLinks: [ContainerPath: [ManifestEntry]] = [:]
  private var movedFirsts: Set<ContainerPath> = []
  /// Directories outside of the scope that the container lacks.
  private var missing: [ContainerPath: ManifestEntry] = [:]

  init(_ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions) throws {
    self.archive = archive
    self.staged = staged
    var options = options
    // What only a missing archive names must not be removed.
    if archive.gap != nil { options.keepExtra = true }
    self.options = options
    changes = RestoreChanges(
      contents: RestoredContents(keepsSetID: options.keepsSetID),
      members: try archive.parts.map { try $0.expectedMembers() })
    live = try LivePaths(staged)
    recorded = try RecordedPaths(
      archive.manifest, layout: archive.header.layout, includesExcluded: options.includeExcluded)
    scope = try RestoreScope(options, recorded, live, staged.container, archive)
    comparison = try LiveComparison(live, staged, recorded, archive, options)
    let (stored, inScope) = (recorded.kinds, scope)
    try staged.requireDistinctNames(stored.paths.filter { inScope.contains($0) })
    try decideLive()
    staged.progress?.begin(.compare, totalFiles: recorded.kinds.count)
    try archive.entries { entry, place in
      try decide(entry, place)
      staged.progress?.add(bytes: entry.hardLink == nil ? entry.size : 0, files: 1)
    } own: {
      changes.members[$0].add($1)
    }
    if let entry = changes.vaultEntry { try decideVault(entry) }
    // A new inode gets all its names anew.
    for first in movedFirsts { changes.links += rightLinks[first] ?? [] }
    try addMissingDirectories()
    try refuseTypeConflicts()
  }

  /// The contents that are needed.
  var wanted: RestoredContents {
    var contents = changes.contents
    if let unreadVault { contents.append(changed: unreadVault, of: archive) }
    return contents
  }

  /// Whether the container had nothing before.
  var isIntoEmpty: Bool { live.isEmpty }

  /// Leaves the paths that need unreadable archives as they are in the container.
  mutating func leave(_ archives: [UnreadableArchive]) {
    changes.report.unreadable = archives.map { archive in
      var archive = archive
      archive.affected = withRawFiles(archive.affected)
      return archive
    }
    let left = Set(changes.report.unreadable.flatMap(\.affected))
    let externalData = recorded.externalData.intersection(left.map(DatabaseUnit.externalDataPath))
    changes.contents.removeAll(where: left.contains)
    changes.links.removeAll { left.contains($0.path) }
    changes.removals.removeAll { path in
      ([path] + path.ancestors).contains { left.contains($0) || externalData.contains($0) }
        || DatabaseUnit.main(ofSidecar: path).map(left.contains) ?? false
    }
    changes.others = PathList(changes.others.filter { !left.contains($0) })
    changes.report.removed = changes.removals.sorted()
  }

  /// Paths, with all files of a database that SQLite could not open: its log fits its own main file only.
  private func withRawFiles(_ paths: [ContainerPath]) -> [ContainerPath] {
    let main = { (path: ContainerPath) in DatabaseUnit.main(ofSidecar: path) ?? path }
    let mains = Set(paths.filter { recorded.kinds[$0] == .rawDatabase }.map(main))
    let raw = changes.contents.paths.filter { recorded.kinds[$0] == .rawDatabase && mains.contains(main($0)) }
    return Set(paths + raw).sorted()
  }

  /// Which live paths that the archive does not have are preserved, and which removed.
  private mutating func decideLive() throws {
    // What is only read: a method of a value that is being changed, or on the right of `||`, gets a copy of all of it.
    let plan = self
    try plan.live.forEach { path, kind in
      if let reason = plan.scope.preservingGroup(path) {
        preserve(path, plan.scope.contains(path) ? reason : nil)
      } else if plan.isStaleSidecar(path, kind) {
        changes.removals.append(path)  // rule 1
      } else if !plan.scope.contains(path) {
        preserve(path, nil)  // rule 7
      } else if plan.live.exclusion(of: path)?.rule == .state {
        preserve(path, nil)  // it is not reported
      } else if let reason = plan.preserving(path, kind) {
        preserve(path, reason)
      } else if plan.recorded.kinds[path] != nil || kind.isSidecar {
        return
      } else if path == plan.staged.container.vaultPath, kind == .file, !plan.options.keepExtra {
        try decideExtraVault()
      } else {
        plan.options.keepExtra ? preserve(path, nil) : changes.removals.append(path)  // rule 6
      }
    }
    // Directories of something preserved are preserved too.
    changes.removals = changes.removals.filter {
      !neededDirectories.contains($0) && !evidence.contains($0)
    }.sorted(by: >)
    changes.report.removed = changes.removals.sorted()
  }

  /// Why a live path is preserved; nil when it is not.
  private func preserving(_ path: ContainerPath, _ kind: ScannedEntry.Kind) -> String? {
    if kind.isSidecar { return nil }  // rule 1: it follows its database
    let (isStored, exclusion) = (recorded.kinds[path] != nil, live.exclusion(of: path))
    var isReplaced = isStored
    if options.overwriteExcluded, !isStored { isReplaced = isReplacedFromAbove(path) }
    // Rule 2. An excluded path is replaced on demand, but never removed because the archive does not have it.
    if !options.overwriteExcluded || exclusion?.rule == .state || !isReplaced {
      if let exclusion { return exclusion.description }
      if let exclusion = recorded.exclusion(of: path) {
        return exclusion.description + " when the archive was made"
      }
    }
    if isStored { return nil }
    if let reason = recorded.skipped(path) {  // rule 4
      return "\(reason.rawValue) when the archive was made"
    }
    switch kind {
    case .mount: return "another file system is mounted here"
    case .special: return "a socket, FIFO or device"
    default: return nil
    }
  }

  /// Whether a file or link of the archive replaces a directory above.
  private func isReplacedFromAbove(_ path: ContainerPath) -> Bool {
    path.ancestors.contains { above in
      recorded.kinds[above].map { $0 != .directory && scope.contains(above) } ?? false
    }
  }

  /// Whether a file is a log or journal that SQLite would use as the restored database's own.
  private func isStaleSidecar(_ path: ContainerPath, _ kind: ScannedEntry.Kind) -> Bool {
    guard kind == .file, recorded.kinds[path] == nil, let main = DatabaseUnit.main(ofSidecar: path),
      let stored = recorded.kinds[main], stored == .database || stored == .rawDatabase, scope.contains(main)
    else { return false }
    guard let present = live[main] else { return true }
    return preserving(main, present) == nil
  }

  private mutating func preserve(_ path: ContainerPath, _ reason: String?) {
    preserved.insert(path)
    for above in path.ancestors where !neededDirectories.insert(above).inserted { break }
    if let exclusion = live.exclusion(of: path), exclusion.origin != path {
      if exclusion.rule.isFlag { evidence.insert(exclusion.origin) }
      if exclusion.rule == .cacheTag {
        evidence.insert(exclusion.origin.appending(name: Exclusion.cacheTag.bytes))
      }
    }
    guard let reason else { return }
    // A directory covers the paths below it.
    if let reported, path.isInside(reported) { return }
    changes.report.preserved[path] = reason
    reported = path
  }

  private mutating func decide(_ entry: ManifestEntry, _ place: (part: Int, row: Int64)) throws {
    guard recorded.kinds[entry.path] != nil else { return }  // rule 3: stored although excluded
    if let group = scope.missingGroup(entry.path) {
      if scope.contains(entry.path), !changes.report.missingGroups.contains(group) {
        changes.report.missingGroups.append(group)
      }
      return
    }
    let present = live[entry.path]
    guard scope.contains(entry.path) else {
      if entry.kind == .directory, present == nil, !entry.path.isRoot { missing[entry.path] = entry }
      return
    }
    if preserved.contains(entry.path) || evidence.contains(entry.path) { return }
    if present == nil, !entry.path.isRoot, live.exclusionAbove(entry.path) != nil {
      // Rule 3: a stored path comes back also below a directory that is flagged now.
      changes.report.restoredUnderExcluded.append(entry.path)
    }
    if entry.kind == .directory {
      changes.directories.append(
        try withheld(entry, hasContent: present == .directory || entry.path.isRoot))
      if !entry.path.isRoot, present != .directory { changes.others.append(entry.path) }
      return
    }
    // What was a hard link to something that is not restored, and has another inode by now, is compared as a separate file.
    let isSeparate =
      try entry.hardLink.map { first in
        try !isRestored(first)
          && staged.live.status(first)?.identity != staged.live.status(entry.path)?.identity
      } ?? false
    let result = try comparison.compare(isSeparate ? own(entry) : entry, present)
    if case .other = result, entry.path == staged.container.vaultPath {
      changes.vaultEntry = try own(withheld(entry))
      return
    }
    switch result {
    case .same, .sameWithoutRights:
      if case .sameWithoutRights = result { changes.report.withoutSetID.append(entry.path) }
      if let first = entry.hardLink { rightLinks[first, default: []].append(entry) }
      changes.report.unchanged += 1
    case .otherAttributes:
      changes.attributes.append(try withheld(entry, hasContent: true))
      changes.others.append(entry.path)
    case .other: try bringBack(try withheld(entry), place)
    }
  }

  /// The entry without the rights that its file may not get; adds it to the report.
  ///
  /// - Parameter hasContent: whether the container has the same content there, which keeps its rights.
  private mutating func withheld(_ entry: ManifestEntry, hasContent: Bool = false) throws -> ManifestEntry {
    guard !options.keepsSetID, entry.metadata.givesRights else { return entry }
    let result = entry.withoutRights(
      keepingThoseOf: hasContent ? try staged.metadata(of: entry.path) : nil)
    if result.metadata != entry.metadata { changes.report.withoutSetID.append(entry.path) }
    return result
  }

  /// A missing directory outside of the scope is restored when something in it is.
  private mutating func addMissingDirectories() throws {
    for path in missing.isEmpty ? [] : restoredPaths + changes.directories.map(\.path) {
      for above in path.ancestors {
        guard let directory = missing.removeValue(forKey: above) else { continue }
        changes.directories.append(try withheld(directory))
        changes.others.append(above)
      }
    }
    changes.directories.sort { $0.path < $1.path }
    changes.others.sort()
    changes.report.withoutSetID.sort()
  }

  /// The paths of what comes from the archive, but for directories.
  private var restoredPaths: [ContainerPath] {
    Array(changes.contents.paths) + (changes.symbolicLinks + changes.links).map(\.path)
  }

  private mutating func bringBack(_ entry: ManifestEntry, _ place: (part: Int, row: Int64)) throws {
    if entry.kind == .symbolicLink { return appendLink(entry) }
    guard let first = entry.hardLink else { return changes.contents.append(entry, place, of: archive) }
    if isRestored(first) {
      movedFirsts.insert(first)
      changes.links.append(entry)
      changes.others.append(entry.path)
    } else {
      changes.contents.append(changed: try own(entry), of: archive)
    }
  }

  private mutating func appendLink(_ entry: ManifestEntry) {
    changes.symbolicLinks.append(entry)
    changes.others.append(entry.path)
  }

  /// Whether a path gets what the archive has there; a vault may come back changed.
  private func isRestored(_ path: ContainerPath) -> Bool {
    recorded.kinds[path] != nil && scope.contains(path) && !preserved.contains(path)
      && path != staged.container.vaultPath
  }

  /// A hard link to a file that this restore preserves becomes a separate file with the archive's content.
  private func own(_ entry: ManifestEntry) throws -> ManifestEntry {
    try archive.manifest.withContent(entry)
  }

  /// Rule 8: the vault is restored item by item.
  private mutating func decideVault(_ entry: ManifestEntry) throws {
    let isVault = entry.kind == .file && entry.size <= Vault.sizeLimit
    let sealed: [UInt8]?
    do {
      sealed = isVault ? try archive.contents(of: entry, changes.members) : nil
    } catch let error as DrydockError where options.acceptsIncomplete && error.meansDamage {
      unreadVault = entry
      return
    }
    let plan = try VaultPlan(sealed, of: archive, into: staged, options)
    switch plan.action {
    case .put:
      entry.kind == .symbolicLink
        ? appendLink(entry) : changes.contents.append(changed: entry, of: archive)
    case .write, .remove: changes.others.append(entry.path)
    case .nothing: if plan.report.notRestored.isEmpty { changes.report.unchanged += 1 }
    }
    (changes.vault, changes.report.vault, changes.report.vaultOrigin) = (plan, plan.report, plan.origin)
  }

  /// Rule 6, for a vault that the archive lacks.
  private mutating func decideExtraVault() throws {
    let path = staged.container.vaultPath
    let plan = try VaultPlan(lackingIn: staged)
    switch plan.action {
    case .remove: changes.removals.append(path)
    case .write:
      preserve(path, nil)
      changes.others.append(path)
    case .nothing, .put: preserve(path, nil)
    }
    (changes.vault, changes.report.vault) = (plan, plan.report)
  }

  /// Rule 5: a file must not take the place of a directory in which something is preserved, nor the other way round.
  private func refuseTypeConflicts() throws {
    let remedy =
      options.isPartial
      ? "restore all of it" : options.keepExtra ? "do not keep extra paths" : "overwrite excluded paths"
    let advice = "move that away, or " + remedy
    // Nothing is in the way then.
    if preserved.isEmpty { return }
    for path in restoredPaths where neededDirectories.contains(path) {
      let example = preserved.filter { $0.isInside(path) }.min()
      throw DrydockError(
        .conflict,
        "the archive has a \(recorded.kinds[path]?.rawValue ?? "file") where the container has a directory with "
          + "preserved content (\(example?.description ?? "paths")); \(advice)", path: path.description)
    }
    for path in restoredPaths + changes.directories.map(\.path) {
      guard
        let blocked = path.ancestors.first(where: {
          preserved.contains($0) && live[$0] != .directory
        })
      else { continue }
      throw DrydockError(
        .conflict,
        "the container has a preserved path where the archive has a directory; \(advice)",
        path: blocked.description)
    }
  }
}

extension ManifestEntry {
  /// The entry with ``FileMetadata/withoutRights(keepingThoseOf:)``; a link has none.
  func withoutRights(keepingThoseOf present: FileMetadata? = nil) -> ManifestEntry {
    guard kind != .symbolicLink, metadata.givesRights else { return self }
    var entry = self
    entry.metadata = metadata.withoutRights(keepingThoseOf: present)
    return entry
  }
}
