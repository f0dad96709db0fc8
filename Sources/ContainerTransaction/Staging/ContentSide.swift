import AppContainer
import AppStores
import ContainerDiff
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// A container in one state, as a side of a comparison.
package struct ContentSide: ComparisonSide {
  private let staged: StagedContainer
  private let content: any ContainerContent
  /// Whether it is the live container; else only what a stage changes.
  private let isLive: Bool
  private let isWhole: Bool
  /// Copies of databases from before the change, which need not be captured.
  private let before: [ContainerPath: ContainerPath]
  /// The open directories of the live container.
  private let directories: LastDirectory

  /// The live container of a stage, in which databases are captured.
  ///
  /// - Parameter isWhole: false for what a backup contains. Else all but Drydock's own state; a directory that has only
  ///   Drydock's history in it does not count: Drydock made it.
  package init(live staged: StagedContainer, isWhole: Bool = false) {
    (self.staged, content, before) = (staged, staged.liveContainer, [:])
    (isLive, self.isWhole) = (true, isWhole)
    directories = LastDirectory(staged.live)
  }

  /// The paths that a stage changes, as they were or as they will be.
  fileprivate init(changedBy staged: StagedContainer, isAfter: Bool) {
    (self.staged, content) = (staged, isAfter ? staged : staged.liveContainer)
    (isLive, isWhole) = (false, false)
    before = isAfter ? [:] : staged.databasesBefore
    directories = LastDirectory(staged.live)
  }

  package func walk() throws -> SideWalk {
    guard isLive else { return walk(try changedEntries(), omitting: [:]) }
    return try isWhole ? wholeWalk() : liveWalk()
  }

  // MARK: The live container

  private func liveWalk() throws -> SideWalk {
    let container = staged.container
    var root = ComparedEntry(.root, .directory)
    if let metadata = try staged.live.metadata(.root) { try root.describe(metadata) }
    var scan = ContainerScan(staged.live, rules: ExclusionRules(container), entersExcluded: isWhole)
    var steps: [SideStep] = [.entry(root)]
    return {
      while steps.isEmpty {
        let next = try scan.nextEntry { path, _ in steps.append(.omitted(path, NotCompared.unreadable)) }
        guard let next else { return steps.isEmpty ? nil : steps.removeFirst() }
        steps += try self.steps(next)
      }
      return steps.removeFirst()
    }
  }

  private func steps(_ scanned: ScannedEntry) throws -> [SideStep] {
    let path = scanned.path
    if isWhole, isOwn(path) { return [] }
    if scanned.kind == .mount { return [.omitted(path, "another file system is mounted there")] }
    if let exclusion = scanned.exclusion, !isWhole { return [.omitted(path, exclusion.description)] }
    guard let kind = Self.kind(of: scanned, staged.container) else { return [] }
    if kind == .other { return [.entry(ComparedEntry(path, .other))] }
    var entry = ComparedEntry(path, kind)
    let (directory, name) = try directories.location(of: path)
    // Nil for what vanished since it was listed: another process has removed it.
    guard let metadata = try directory.metadata(name) else { return [] }
    try entry.describe(metadata, size: scanned.status.size)
    if kind == .link { entry.linkTarget = try directory.linkTarget(name) }
    return [.entry(entry)]
  }

  /// Whether a path is Drydock's own: the history of migrations with its directory, or a commit's state.
  private func isOwn(_ path: ContainerPath) -> Bool {
    staged.container.isHistory(path) || ([path] + path.ancestors).contains(where: staged.live.isState)
  }

  private func wholeWalk() throws -> SideWalk {
    var (found, left) = try listed(liveWalk())
    for path in staged.container.historyPath.parent.ancestors {
      guard !path.isRoot, let index = found.firstIndex(where: { $0.path == path }),
        found[index].kind == .directory, found[index].attributes?.isEmpty != false,
        !found.contains(where: { $0.path.isInside(path) }), !left.keys.contains(where: { $0.isInside(path) })
      else { continue }
      found.remove(at: index)
    }
    return walk(found, omitting: left)
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

  // MARK: What a stage changes

  private func changedEntries() throws -> [ComparedEntry] {
    try staged.stage.overlay.paths.compactMap { (path) -> ComparedEntry? in
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
      var entry = ComparedEntry(path, kind)
      guard let metadata = try content.metadata(of: path) else { return nil }
      try entry.describe(metadata, size: status.size)
      if kind == .link { entry.linkTarget = try content.linkTarget(path) }
      (entry.owner, entry.modified) = ([metadata.user, metadata.group], metadata.modified)
      return entry
    }
  }

  // MARK: Content

  /// Every byte is read: a size and a time can be the same by chance.
  package func digest(of entry: ComparedEntry) throws -> SHA256.Digest? {
    guard isLive else { return try content.fileDigest(entry.path) }
    let (directory, name) = try directories.location(of: entry.path)
    return try ContentHash.of(name, in: directory, isDatabase: false)
  }

  package func contents(of entry: ComparedEntry) throws -> [UInt8]? { try contents(of: entry.path) }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    let source = try Container.settingsSource(path) { try content.status(of: $0)?.type == .file }
    guard try content.status(of: source) != nil else { return nil }
    return try staged.settingsIfAny(in: contents(of: source), at: path)
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
    if staged.databasesBefore[path] != nil { return .unknown }
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
  {
    if let copy = before[path] { return staged.stage.directory.full(copy) }
    return staged.stage.directory.full(try content.databaseFile(of: path))
  }

  package func forgetDatabase(_ path: ContainerPath) {
    staged.liveContainer.removeDatabaseFile(of: path)
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
    // What went onto equal content is not in the difference: then its old place is.
    let listed =
      difference.databases.filter { $0.change != .removed }.map(\.path)
      + difference.files.filter { $0.change != .removed }.map(\.path)
    let sources = Set(listed.compactMap { origins[$0] })
    difference.databases.removeAll { $0.change == .removed && sources.contains($0.path) }
    difference.files.removeAll { $0.change == .removed && sources.contains($0.path) }
    for index in difference.files.indices {
      difference.files[index].movedFrom = origins[difference.files[index].path]
    }
    for index in difference.databases.indices {
      let path = difference.databases[index].path
      guard let origin = origins[path] else { continue }
      difference.databases[index].movedFrom = origin
      guard let before = databasesBefore[path] else { continue }
      let compared = try DatabaseComparison(
        before: stage.directory.full(before), after: stage.directory.full(databaseFile(of: path)),
        rowLimit: rowLimit, redactor: redactor
      ).run()
      difference.databases[index].schema = compared.schema
      difference.databases[index].tables = compared.tables
    }
  }
}
