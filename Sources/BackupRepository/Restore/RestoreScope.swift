import ArchiveManifest
import AppContainer
import AppStores
import DrydockErrors
import FileSystem

/// The part of a container that a restore acts, and mirrors, inside of: some paths, some stores, or both.
struct RestoreScope {
  private let tops: [ContainerPath]
  private let stores: Set<ContainerStore>
  private let recorded: RecordedPaths
  private let live: LivePaths
  private let container: Container
  /// The groups that the archive has, and those of the container: a restore acts in those that both have.
  private let storedGroups, presentGroups: Set<String>

  /// - Throws: `DrydockError` with code `notInArchive` for a path that the archive does not have.
  init(
    _ options: RestoreOptions, _ recorded: RecordedPaths, _ live: LivePaths, _ container: Container,
    _ archive: Archive
  ) throws {
    var tops = options.scope
    for path in options.scope {
      switch recorded.kinds[path] {
      case nil:  // rule 7
        let reason =
          archive.gap == nil
          ? "the archive does not have this path"
          : "no archive of the chain that can be read lists this path"
        throw DrydockError(.notInArchive, reason, path: path.description)
      // Rule 1: a database goes with its sidecars and external data.
      case .database?, .rawDatabase?:
        tops.append(DatabaseUnit.externalDataPath(of: path))
        tops += DatabaseFormat.sidecarSuffixes.map(path.withSuffix)
      // A previous version that stays would replace what is restored.
      default: if let backup = path.preferencesBackup { tops.append(backup) }
      }
    }
    (self.tops, stores, self.recorded, self.live, self.container) = (
      tops, options.stores, recorded, live, container
    )
    storedGroups = Set(archive.header.groups ?? [])
    presentGroups = Set(container.groups.map(\.id))
  }

  func contains(_ path: ContainerPath) -> Bool {
    // Most restores have none of both.
    if tops.isEmpty, stores.isEmpty { return true }
    return isInTops(path) && isInStores(path)
  }

  private func isInTops(_ path: ContainerPath) -> Bool {
    tops.isEmpty || tops.contains { path == $0 || path.isInside($0) }
  }

  private func isInStores(_ path: ContainerPath) -> Bool {
    stores.isEmpty || stores.contains(store(of: path))
  }

  /// By the archive's kind of a path; of a path that it does not have, by the present kind.
  private func store(of path: ContainerPath) -> ContainerStore {
    if path == container.vaultPath { return .vault }
    if isDatabase(path) || DatabaseUnit.main(ofSidecar: path).map(isDatabase) ?? false
      || isExternalData(path) || path.ancestors.contains(where: isExternalData)
    {
      return .databases
    }
    let isFile = recorded.kinds[path].map { $0 == .file } ?? (live[path] == .file)
    return isFile && container.isSettings(path.ofPreferencesBackup ?? path) ? .defaults : .files
  }

  private func isDatabase(_ path: ContainerPath) -> Bool {
    if let kind = recorded.kinds[path] { return kind == .database || kind == .rawDatabase }
    return live[path].map { $0.isDatabase || $0.isSidecar } ?? false
  }

  /// Whether a path is the folder of external data of a database, `.<name>_SUPPORT`.
  private func isExternalData(_ path: ContainerPath) -> Bool {
    let name = path.nameString
    guard name.hasPrefix("."), name.hasSuffix("_SUPPORT") else { return false }
    return recorded.externalData.contains(path) || live.externalData.contains(path)
  }

  // MARK: Groups

  /// Why a live path is preserved: the archive was made without its group.
  func preservingGroup(_ path: ContainerPath) -> String? {
    guard let id = path.inGroup?.id, presentGroups.contains(id), !storedGroups.contains(id) else {
      return nil
    }
    return "the archive was made without the group \(id)"
  }

  /// The group of an entry that the container does not have: its id, or `.groups` for a directory of that name from a
  /// container without groups. Nil for all other entries.
  func missingGroup(_ path: ContainerPath) -> String? {
    guard path == .groups || path.isInside(.groups) else { return nil }
    guard let id = path.inGroup?.id, storedGroups.contains(id) else {
      return container.configuration.groups.isEmpty ? nil : ContainerPath.groups.description
    }
    return presentGroups.contains(id) ? nil : id
  }
}

/// An archive's record of each path: stored, excluded by a rule, or not readable.
struct RecordedPaths {
  private(set) var kinds: PathTable<ManifestEntry.Kind>
  /// Where the external data of its databases is, if there is any.
  private(set) var externalData: Set<ContainerPath> = []
  private var excluded: [ContainerPath: Exclusion] = [:]
  /// Stored directories whose own flag excludes them: what is not stored below them was excluded.
  private var flagged: [ContainerPath: Exclusion] = [:]
  private var skippedPaths: [ContainerPath: SkippedPath.Reason] = [:]

  /// - Parameter includesExcluded: whether what was stored although a rule excluded it counts as stored.
  init(_ manifest: Manifest, layout: ContainerLayout, includesExcluded: Bool) throws {
    let flags: [ContainerPath: Exclusion.Rule]
    (kinds, flags) = try manifest.kinds()
    for path in try manifest.excluded() { excluded[path.path] = path.exclusion }
    for path in try manifest.skipped() { skippedPaths[path.path] = path.reason }
    for never in layout.neverRestored {
      excluded[never] = Exclusion(
        rule: .layout, origin: never, detail: "\(layout.rawValue) never restores \(never)")
    }
    // Only the top of an excluded directory is recorded.
    let tops =
      try !includesExcluded && manifest.storesExcluded()
      ? Set(excluded.keys) : Set(layout.neverRestored)
    if !tops.isEmpty {
      var kept = PathTable<ManifestEntry.Kind>()
      for (path, kind) in kinds where !tops.contains(path) && !path.ancestors.contains(where: tops.contains) {
        kept[path] = kind
      }
      kinds = kept
    }
    for (path, rule) in flags {
      flagged[path] = Exclusion(rule: rule, origin: path, detail: "\(path) was flagged")
    }
    for (path, kind) in kinds where kind == .database || kind == .rawDatabase {
      externalData.insert(DatabaseUnit.externalDataPath(of: path))
    }
  }

  /// The rule that excludes a path, or a directory above it.
  func exclusion(of path: ContainerPath) -> Exclusion? {
    let ancestors = path.ancestors
    if let found = excluded[path] { return found }
    for above in ancestors { if let found = excluded[above] { return found } }
    // An explicit include brings a path in below a flagged directory.
    if flagged.isEmpty || kinds[path] != nil { return nil }
    return ancestors.lazy.compactMap { flagged[$0] }.first
  }

  /// Why a path, or the directory that it is in, could not be stored.
  func skipped(_ path: ContainerPath) -> SkippedPath.Reason? {
    skippedPaths[path] ?? path.ancestors.lazy.compactMap { skippedPaths[$0] }.first
  }
}
