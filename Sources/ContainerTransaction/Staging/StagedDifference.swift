import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

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
      of: ChangedSide(self, isAfter: false), with: ChangedSide(self, isAfter: true), options: options
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
    let sources = Set(overlay.origins.values)
    difference.databases.removeAll { $0.change == .removed && sources.contains($0.path) }
    difference.files.removeAll { $0.change == .removed && sources.contains($0.path) }
    for index in difference.files.indices {
      difference.files[index].movedFrom = overlay.origins[difference.files[index].path]
    }
    for index in difference.databases.indices {
      let path = difference.databases[index].path
      guard let origin = overlay.origins[path] else { continue }
      difference.databases[index].movedFrom = origin
      guard let before = copies.before[path] else { continue }
      let compared = try DatabaseComparison(
        before: stage.full(before), after: stagedFile(of: path), rowLimit: rowLimit, redactor: redactor
      ).run()
      difference.databases[index].schema = compared.schema
      difference.databases[index].tables = compared.tables
    }
  }

  /// The path of a staged database's file, with all that it holds.
  fileprivate func stagedFile(of path: ContainerPath) throws -> String {
    guard case .inode(let inode) = overlay[path] else { throw missing(path) }
    return stage.full(try wholeDatabase(inode, at: path))
  }
}

/// The paths that a stage changes, as they were or as they will be.
private struct ChangedSide: ComparisonSide {
  private(set) var entries: [ComparedEntry] = []
  let omitted: [ContainerPath: String] = [:]
  private let staged: StagedContainer
  private let live: LiveReader
  private let isAfter: Bool

  init(_ staged: StagedContainer, isAfter: Bool) throws {
    self.staged = staged
    self.isAfter = isAfter
    live = LiveReader(staged: staged)
    entries = try staged.overlay.nodes.keys.sorted().compactMap { try entry($0) }
  }

  private func entry(_ path: ContainerPath) throws -> ComparedEntry? {
    let status = isAfter ? try staged.status(of: path) : try staged.live.status(path)
    guard let status else { return nil }
    // A database's sidecars are no paths of their own.
    if try isAfter ? staged.isSidecar(path) : staged.live.isSidecar(path) { return nil }
    var entry = ComparedEntry(path, try kind(of: path, status))
    if let metadata = isAfter ? try staged.metadata(of: path) : try staged.live.metadata(path) {
      try entry.describe(metadata)
      (entry.owner, entry.modified) = ([metadata.user, metadata.group], metadata.modified)
    }
    if entry.kind == .link {
      entry.linkTarget = isAfter ? try staged.linkTarget(path) : try staged.live.linkTarget(path)
    }
    if [.file, .settings, .vault].contains(entry.kind) { entry.size = status.size }
    return entry
  }

  private func kind(of path: ContainerPath, _ status: FileStatus) throws -> ComparedEntry.Kind {
    switch status.type {
    case .directory: return .directory
    case .symbolicLink: return .link
    case .other: return .other
    case .file:
      let isDatabase =
        isAfter ? try staged.isDatabase(path) : try staged.live.databaseUnit(path, status: status) != nil
      return isDatabase ? .database : staged.container.comparedKind(ofFile: path)
    }
  }

  func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    guard isAfter else { return try live.digest(of: path) }
    let place = staged.place(of: path)
    return try ContentDigest.of(place.path, in: place.directory, isDatabase: false)
  }

  func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    guard isAfter else { return try live.settings(of: path) }
    return try staged.settingsIfAny(in: staged.read(path))
  }

  func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard isAfter else { return try live.vault(of: path) }
    guard let size = try staged.status(of: path)?.size, size <= Vault.sizeLimit else { return nil }
    return .sealed(try staged.read(path))
  }

  /// Not asked for where the stage kept what a database was: that is compared at once.
  func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    if staged.copies.before[path] != nil { return .unknown }
    guard isAfter else { return try live.databaseDigest(of: path) }
    do {
      return .image(try staged.databaseDigest(path))
    } catch let error as DrydockError where error.code == .malformed {
      return .raw([:])
    }
  }

  func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws -> String {
    if isAfter { return try staged.stagedFile(of: path) }
    if let before = staged.copies.before[path] { return staged.stage.full(before) }
    return try live.databaseFile(of: path)
  }

  func forgetDatabase(_ path: ContainerPath) {
    if !isAfter { staged.forgetCapture(of: path) }
  }
}

/// A live container, as a side of a comparison: what a backup would take of it, or all that belongs to the app.
package struct LiveSide: ComparisonSide {
  /// How much of a container a side has.
  package enum Extent: Sendable {
    /// What a backup would take; what rules keep out is omitted.
    case backup
    /// All but Drydock's own state, also what rules keep out of backups. A directory that nothing but Drydock's history
    /// lies in does not count: it is there when Drydock was.
    case whole
  }

  package private(set) var entries: [ComparedEntry] = []
  /// See ``ComparisonSide``: what rules keep out of a backup, and what cannot be listed.
  package private(set) var omitted: [ContainerPath: String] = [:]
  private let reader: LiveReader

  /// Looks at a container; `Transaction.inspect` gives the stage, in which databases are captured.
  package init(_ staged: StagedContainer, _ extent: Extent = .backup) throws {
    reader = LiveReader(staged: staged)
    var found: [ComparedEntry] = []
    var left: [ContainerPath: String] = [:]
    var root = ComparedEntry(.root, .directory)
    if let metadata = try staged.live.metadata(.root) { try root.describe(metadata) }
    found.append(root)
    let isWhole = extent == .whole
    var scan = ContainerScan(
      staged.live, rules: ExclusionRules(staged.container), entersExcluded: isWhole)
    while let step = try scan.next() {
      guard case .entry(let scanned) = step else {
        if case .unreadable(let path, _) = step { left[path] = OmissionReason.unreadable }
        continue
      }
      if isWhole, staged.container.isState(scanned.path) { continue }
      if let exclusion = scanned.exclusion, !isWhole {
        left[scanned.path] = exclusion.description
      } else if let entry = try Self.entry(scanned, staged) {
        found.append(entry)
      }
      if scanned.kind == .mount { left[scanned.path] = "another file system is mounted there" }
    }
    if isWhole {
      for path in staged.container.historyPath.parent.ancestors {
        Self.removeHollow(path, from: &found, left)
      }
    }
    (entries, omitted) = (found, left)
  }

  private static func removeHollow(
    _ path: ContainerPath, from found: inout [ComparedEntry], _ left: [ContainerPath: String]
  ) {
    guard !path.isRoot, let index = found.firstIndex(where: { $0.path == path }),
      found[index].kind == .directory, found[index].attributes?.isEmpty != false,
      !found.contains(where: { $0.path.isInside(path) }), !left.keys.contains(where: { $0.isInside(path) })
    else { return }
    found.remove(at: index)
  }

  private static func entry(_ scanned: ScannedEntry, _ staged: StagedContainer) throws -> ComparedEntry? {
    let path = scanned.path
    let kind: ComparedEntry.Kind
    switch scanned.kind {
    case .directory: kind = .directory
    case .symbolicLink: kind = .link
    case .file: kind = staged.container.comparedKind(ofFile: path)
    case .database: kind = .database
    case .special: kind = .other
    case .sidecar, .mount: return nil
    }
    var entry = ComparedEntry(path, kind)
    // What vanished since the scan was removed by another process.
    guard kind != .other else { return entry }
    guard let metadata = try staged.live.metadata(path) else { return nil }
    try entry.describe(metadata)
    if kind == .link { entry.linkTarget = try staged.live.linkTarget(path) }
    if [.file, .settings, .vault].contains(kind) { entry.size = scanned.status.size }
    return entry
  }

  /// See ``ComparisonSide``. Every byte is read: a size and a time can be the same by chance.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest? { try reader.digest(of: path) }
  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try reader.settings(of: path)
  }
  package func vault(of path: ContainerPath) throws -> ComparedVault? { try reader.vault(of: path) }
  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    try reader.databaseDigest(of: path)
  }
  package func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws
    -> String
  {
    try reader.databaseFile(of: path)
  }
  package func forgetDatabase(_ path: ContainerPath) { reader.staged.forgetCapture(of: path) }
}

extension Container {
  /// Whether a path is Drydock's own: the history of migrations with its directory, or a commit's state.
  fileprivate func isState(_ path: ContainerPath) -> Bool {
    let places = [historyPath.parent, ContainerPath.stateDirectory]
    return places.contains { path == $0 || path.isInside($0) }
      || (path.inGroup?.path).map { $0 == places[1] || $0.isInside(places[1]) } == true
  }
}

/// Reads the live container below a stage.
struct LiveReader {
  let staged: StagedContainer

  func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    try ContentDigest.of(path, in: staged.live, isDatabase: false)
  }

  func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try staged.settingsIfAny(in: staged.live.contents(path))
  }

  /// Nil for what is too large to be a vault.
  func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard let size = try staged.live.status(path)?.size, size <= Vault.sizeLimit else { return nil }
    return .sealed(try staged.live.contents(path))
  }

  func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    do {
      return .image(try ContentDigest.of(staged.liveCapture(of: path), in: staged.stage, isDatabase: true))
    } catch let error as DrydockError where error.code == .malformed {
      return .raw(try rawDigests(of: path))
    }
  }

  func databaseFile(of path: ContainerPath) throws -> String {
    staged.stage.full(try staged.liveCapture(of: path))
  }

  private func rawDigests(of path: ContainerPath) throws -> [String: SHA256.Digest] {
    var digests: [String: SHA256.Digest] = [:]
    for suffix in [""] + DatabaseFormat.sidecarSuffixes
    where try staged.live.status(path.withSuffix(suffix))?.type == .file {
      digests[suffix] = try ContentDigest.of(path.withSuffix(suffix), in: staged.live, isDatabase: false)
    }
    return digests
  }
}

extension PropertyListFile {
  /// The settings in a file's bytes; nil when they are none.
  package static func settings(in bytes: [UInt8]) throws -> PropertyListDictionary? {
    do {
      return try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError where error.code == .malformed {
      return nil
    }
  }
}

extension StagedContainer {
  /// A captured copy of a live database, in the stage.
  func liveCapture(of path: ContainerPath) throws -> ContainerPath {
    if let captured = copies.live[path] { return captured }
    let captured = try databaseCopy(of: path)
    copies.live[path] = captured
    return captured
  }

  /// Gives the space of a captured copy back.
  func forgetCapture(of path: ContainerPath) {
    guard let captured = copies.live.removeValue(forKey: path) else { return }
    try? stage.removeDatabase(captured)
  }
}
