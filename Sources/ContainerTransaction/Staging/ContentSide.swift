import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// A container in one state, as a side of a comparison.
package struct ContentSide: ComparisonSide {
  package private(set) var entries: [ComparedEntry] = []
  package private(set) var omitted: [ContainerPath: String] = [:]
  private let staged: StagedContainer
  private let content: any ContainerContent
  /// Copies of databases from before their first change, which need not be captured.
  private let kept: [ContainerPath: ContainerPath]

  package enum Extent: Sendable {
    /// What a backup contains; the rest is omitted.
    case backup
    /// All but Drydock's own state, also what is excluded from backups. A directory that has only Drydock's history in it
    /// does not count: Drydock made it.
    case whole
  }

  /// The live container of a stage, in which databases are captured.
  package init(live staged: StagedContainer, _ extent: Extent = .backup) throws {
    (self.staged, content, kept) = (staged, staged.liveContainer, [:])
    let isWhole = extent == .whole
    let container = staged.container
    var found = [ComparedEntry(.root, .directory)]
    var left: [ContainerPath: String] = [:]
    if let metadata = try staged.live.metadata(.root) { try found[0].describe(metadata) }
    var scan = ContainerScan(staged.live, rules: ExclusionRules(container), entersExcluded: isWhole)
    staged.progress?.begin(.list)
    while let step = try scan.next() {
      staged.progress?.add(files: 1)
      guard case .entry(let scanned) = step else {
        if case .unreadable(let path, _) = step { left[path] = OmissionReason.unreadable }
        continue
      }
      if isWhole, container.isState(scanned.path) { continue }
      if let exclusion = scanned.exclusion, !isWhole {
        left[scanned.path] = exclusion.description
      } else if let kind = Self.kind(of: scanned, container),
        let entry = try kind == .other ? ComparedEntry(scanned.path, .other) : entry(scanned.path, kind)
      {
        found.append(entry)
      }
      if scanned.kind == .mount { left[scanned.path] = "another file system is mounted there" }
    }
    for path in isWhole ? container.historyPath.parent.ancestors : [] {
      guard !path.isRoot, let index = found.firstIndex(where: { $0.path == path }),
        found[index].kind == .directory, found[index].attributes?.isEmpty != false,
        !found.contains(where: { $0.path.isInside(path) }), !left.keys.contains(where: { $0.isInside(path) })
      else { continue }
      found.remove(at: index)
    }
    (entries, omitted) = (found, left)
  }

  private static func kind(of scanned: ScannedEntry, _ container: Container) -> ComparedEntry.Kind? {
    switch scanned.kind {
    case .directory: .directory
    case .symbolicLink: .link
    case .file: container.comparedKind(ofFile: scanned.path)
    case .database: .database
    case .special: .other
    case .sidecar, .mount: nil
    }
  }

  /// The paths that a stage changes, as they were or as they will be.
  fileprivate init(changedBy staged: StagedContainer, isAfter: Bool) throws {
    (self.staged, content) = (staged, isAfter ? staged : staged.liveContainer)
    kept = isAfter ? [:] : staged.databases.before
    entries = try staged.stage.overlay.nodes.keys.sorted().compactMap { (path) -> ComparedEntry? in
      // A database's sidecars are a part of it.
      guard let status = try content.status(of: path), try !content.isSidecar(path) else { return nil }
      let kind: ComparedEntry.Kind
      switch status.type {
      case .directory: kind = .directory
      case .symbolicLink: kind = .link
      case .other: kind = .other
      case .file:
        kind = try content.isDatabase(path) ? .database : staged.container.comparedKind(ofFile: path)
      }
      guard var entry = try entry(path, kind), let metadata = try content.metadata(of: path) else {
        return nil
      }
      (entry.owner, entry.modified) = ([metadata.user, metadata.group], metadata.modified)
      return entry
    }
  }

  /// Nil for what vanished since it was listed: another process has removed it.
  private func entry(_ path: ContainerPath, _ kind: ComparedEntry.Kind) throws -> ComparedEntry? {
    var entry = ComparedEntry(path, kind)
    guard let metadata = try content.metadata(of: path) else { return nil }
    try entry.describe(metadata)
    if kind == .link { entry.linkTarget = try content.linkTarget(path) }
    if [.file, .settings, .vault].contains(kind) { entry.size = try content.status(of: path)?.size }
    return entry
  }

  /// Every byte is read: a size and a time can be the same by chance.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest? { try content.fileDigest(path) }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try staged.settingsIfAny(in: contents(of: path))
  }

  private func contents(of path: ContainerPath) throws -> [UInt8] {
    let location = content.location(of: path)
    return try location.directory.contents(location.path)
  }

  /// Nil for what is too large to be a vault.
  package func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard let size = try content.status(of: path)?.size, size <= Vault.sizeLimit else { return nil }
    return .sealed(try contents(of: path))
  }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    // What the stage has kept is compared at once.
    if staged.databases.before[path] != nil { return .unknown }
    do {
      return .image(try content.databaseDigest(path))
    } catch let error as DrydockError where error.code == .malformed {
      var digests: [String: SHA256.Digest] = [:]
      for suffix in [""] + DatabaseFormat.sidecarSuffixes
      where try content.status(of: path.withSuffix(suffix))?.type == .file {
        digests[suffix] = try content.fileDigest(path.withSuffix(suffix))
      }
      return .raw(digests)
    }
  }

  package func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws
    -> String
  { staged.stage.directory.full(try kept[path] ?? content.databaseFile(of: path)) }

  package func forgetDatabase(_ path: ContainerPath) {
    staged.liveContainer.removeDatabaseFile(of: path)
  }
}

extension Container {
  /// Whether a path is Drydock's own: the history of migrations with its directory, or a commit's state.
  fileprivate func isState(_ path: ContainerPath) -> Bool {
    let own = [historyPath.parent, ContainerPath.stateDirectory]
    return own.contains { path == $0 || path.isInside($0) }
      || (path.inGroup?.path).map { $0 == own[1] || $0.isInside(own[1]) } == true
  }
}

extension StagedContainer {
  /// What the stage changes.
  ///
  /// - Parameter rowLimit: how many rows of a table are listed, of each kind.
  package func difference(rowLimit: Int = 0) throws -> ContainerDifference {
    var options = ComparisonOptions()
    options.rowLimit = rowLimit
    options.deviceKeys = deviceKeys
    options.redactor = redactor
    var difference = try Comparison(
      of: ContentSide(changedBy: self, isAfter: false), with: ContentSide(changedBy: self, isAfter: true),
      options: options
    ).difference
    try reportMoves(in: &difference, rowLimit)
    hideMovedSecrets(in: &difference)
    return difference
  }

  /// A setting that moves into the vault is a secret under any name, and however short.
  private func hideMovedSecrets(in difference: inout ContainerDifference) {
    for secret in movedSecrets {
      let key = redactor.shown(name: secret.key)
      for index in difference.settings.indices
      where difference.settings[index].file == secret.path && difference.settings[index].key.isExactly(key) {
        let shown = secret.shown(by: redactor)
        difference.settings[index].before = difference.settings[index].before.map { _ in shown }
        difference.settings[index].after = difference.settings[index].after.map { _ in shown }
      }
    }
  }

  /// What moved is not removed, and is compared with what it was.
  private func reportMoves(in difference: inout ContainerDifference, _ rowLimit: Int) throws {
    let origins = stage.overlay.origins
    let sources = Set(origins.values)
    difference.databases.removeAll { $0.change == .removed && sources.contains($0.path) }
    difference.files.removeAll { $0.change == .removed && sources.contains($0.path) }
    for index in difference.files.indices {
      difference.files[index].movedFrom = origins[difference.files[index].path]
    }
    for index in difference.databases.indices {
      let path = difference.databases[index].path
      guard let origin = origins[path] else { continue }
      difference.databases[index].movedFrom = origin
      guard let before = databases.before[path] else { continue }
      let compared = try DatabaseComparison(
        before: stage.directory.full(before), after: stage.directory.full(databaseFile(of: path)),
        rowLimit: rowLimit, redactor: redactor
      ).run()
      difference.databases[index].schema = compared.schema
      difference.databases[index].tables = compared.tables
    }
  }
}
