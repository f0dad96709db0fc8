import AppContainer
import FileSystem

/// What an archive says of each path: stored, kept out by a rule, or not to be had.
struct RecordedPaths {
  /// The stored ones.
  private(set) var kinds: [ContainerPath: ManifestEntry.Kind] = [:]
  /// Where the external data of its databases is, if there is any.
  private(set) var externalData: Set<ContainerPath> = []
  private var excluded: [ContainerPath: Exclusion] = [:]
  /// Stored directories that are out of backups themselves: whatever of them is not stored was kept out.
  private var flagged: [ContainerPath: Exclusion] = [:]
  private var skippedPaths: [ContainerPath: SkippedPath.Reason] = [:]

  /// - Parameter includesExcluded: whether what was stored although a rule excluded it counts as stored.
  init(_ manifest: ManifestReader, layout: Layout, includesExcluded: Bool) throws {
    for path in try manifest.excluded() { excluded[path.path] = path.exclusion }
    for path in try manifest.skipped() { skippedPaths[path.path] = path.reason }
    kinds = try manifest.kinds()
    for never in layout.neverRestored {
      kinds = kinds.filter { $0.key != never && !$0.key.isInside(never) }
      excluded[never] = Exclusion(
        rule: .layout, origin: never, detail: "\(layout.rawValue) never restores \(never)")
    }
    if try !includesExcluded && manifest.storesExcluded() {
      // Of an excluded directory only the top is on record.
      let tops = excluded
      kinds = kinds.filter { path, _ in
        tops[path] == nil && !path.ancestors.contains { tops[$0] != nil }
      }
    }
    for (path, rule) in try manifest.flaggedDirectories() {
      flagged[path] = Exclusion(rule: rule, origin: path, detail: "\(path) was flagged")
    }
    for (path, kind) in kinds where kind == .database || kind == .rawDatabase {
      externalData.insert(DatabaseUnit.externalDataPath(of: path))
    }
  }

  /// The rule that kept a path out, or a directory above it; of a stored path, the rule that should have.
  func exclusion(of path: ContainerPath) -> Exclusion? {
    if let found = excluded[path] ?? path.ancestors.lazy.compactMap({ excluded[$0] }).first { return found }
    // An explicit include brings a path in below a flagged directory.
    return kinds[path] != nil ? nil : path.ancestors.lazy.compactMap { flagged[$0] }.first
  }

  /// Why a path, or the directory that it is in, could not be stored.
  func skipped(_ path: ContainerPath) -> SkippedPath.Reason? {
    skippedPaths[path] ?? path.ancestors.lazy.compactMap { skippedPaths[$0] }.first
  }
}

extension ScannedEntry {
  /// Whether it is a `-wal`, `-shm` or `-journal` of a database that is there.
  var isSidecar: Bool {
    if case .sidecar = kind { true } else { false }
  }

  /// Whether it is the main file of a database.
  var isDatabase: Bool {
    if case .database = kind { true } else { false }
  }
}
