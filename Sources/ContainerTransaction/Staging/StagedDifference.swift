import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

extension StagedContainer {
  /// What the stage changes.
  ///
  /// - Parameter rowLimit: how many rows of a table are told, of each kind.
  package func difference(rowLimit: Int = 0) throws -> ContainerDifference {
    var options = ComparisonOptions()
    options.rowLimit = rowLimit
    options.deviceKeys = deviceKeys
    options.redactor = redactor
    var difference = try Comparison(
      of: ChangedSide(self, isAfter: false), with: ChangedSide(self, isAfter: true), options: options
    ).difference
    try tellMoves(in: &difference, rowLimit)
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

  /// What moved is no removal, and is compared with what it was.
  private func tellMoves(in difference: inout ContainerDifference, _ rowLimit: Int) throws {
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
      guard let before = befores[path] else { continue }
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
    if staged.befores[path] != nil { return .unknown }
    guard isAfter else { return try live.databaseDigest(of: path) }
    do {
      return .image(try staged.databaseDigest(path))
    } catch let error as DrydockError where error.code == .malformed {
      return .raw([:])
    }
  }

  func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws -> String {
    if isAfter { return try staged.stagedFile(of: path) }
    if let before = staged.befores[path] { return staged.stage.full(before) }
    return try live.databaseFile(of: path)
  }

  func forgetDatabase(_ path: ContainerPath) {
    if !isAfter { staged.forgetCapture(of: path) }
  }
}
