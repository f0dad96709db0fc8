import AppContainer

/// What an archive says of each path: stored, kept out by a rule, or not to be had.
struct RecordedPaths {
  /// The stored ones.
  private(set) var kinds: [ContainerPath: ManifestEntry.Kind] = [:]
  private var excluded: [ContainerPath: Exclusion] = [:]
  private var skippedPaths: [ContainerPath: SkippedPath.Reason] = [:]

  init(_ manifest: ManifestReader) throws {
    kinds = try manifest.kinds()
    for path in try manifest.excluded() { excluded[path.path] = path.exclusion }
    for path in try manifest.skipped() { skippedPaths[path.path] = path.reason }
  }

  /// The rule that kept a path out, or a directory above it.
  func exclusion(of path: ContainerPath) -> Exclusion? {
    excluded[path] ?? path.ancestors.lazy.compactMap { excluded[$0] }.first
  }

  /// Why a path, or the directory that it is in, could not be stored.
  func skipped(_ path: ContainerPath) -> SkippedPath.Reason? {
    skippedPaths[path] ?? path.ancestors.lazy.compactMap { skippedPaths[$0] }.first
  }
}

/// The part of a container that a restore acts, and mirrors, inside of.
struct RestoreScope {
  /// None means all.
  private let tops: [ContainerPath]

  /// - Throws: ``RepositoryError`` with code `missing` for a path that the archive does not have.
  init(_ paths: [ContainerPath], _ recorded: RecordedPaths) throws {
    var tops = paths
    for path in paths {
      switch recorded.kinds[path] {
      case nil:  // rule 7
        throw RepositoryError(
          .missing, "the archive does not have it; `drydock show` lists what it has", path: path.description)
      // Rule 1: a database goes with its sidecars and external data.
      case .database?, .rawDatabase?:
        tops.append(DatabaseUnit.externalDataPath(of: path))
        tops += DatabaseFormat.sidecarSuffixes.map(path.withSuffix)
      default: break
      }
    }
    self.tops = tops
  }

  func contains(_ path: ContainerPath) -> Bool {
    tops.isEmpty || tops.contains { path == $0 || path.isInside($0) }
  }

  /// Whether something of the scope is below a path.
  func isBelow(_ path: ContainerPath) -> Bool { tops.contains { $0.isInside(path) } }
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
