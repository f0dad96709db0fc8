import ArchiveManifest
import AppContainer
import AppStores
import ArchiveFile
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Brings a container back to the state of a snapshot, in one transaction.
package enum Restore {
  /// The container at a path that an archive is to be restored to, existing or planned.
  ///
  /// - Parameters:
  ///   - opened: the container at the path, if the caller has opened it.
  ///   - instance: overrides the container's instance name.
  ///   - fromOther: takes another app's or instance's data.
  /// - Throws: `DrydockError` with code `mismatch` for another app's or instance's data.
  package static func target(
    _ path: String, opened: Container? = nil, for archive: Archive, configuration: ContainerConfiguration,
    instance: String? = nil, fromOther: Bool = false
  ) throws -> Container {
    let header = archive.header
    var planned = configuration
    planned.layout = configuration.layout ?? header.layout
    planned.app = configuration.app ?? header.app
    if opened == nil,
      let container = try Container.planned(
        at: path, configuration: planned, instance: instance ?? header.instance)
    {
      return container
    }
    let existing = try opened ?? Container(at: path, configuration: configuration, instance: instance)
    if try Directory(existing.root).names().isEmpty {
      return existing.assuming(
        layout: planned.layout ?? header.layout, app: planned.app ?? header.app,
        instance: instance ?? header.instance)
    }
    let isSame =
      ArchiveLabel(header).ownerKey == ArchiveLabel.ownerKey(existing.app, existing.instance)
    guard try fromOther || isSame || lastRestored(existing)?.utf8.elementsEqual(source(header).utf8) == true
    else {
      throw DrydockError(
        .mismatch,
        "the archive is of \(header.app.printable), instance \(header.instance.printable), and the container of "
          + "\(existing.app), instance \(existing.instance); restoring another one's data must be asked for",
        path: path)
    }
    return existing
  }

  /// Restores.
  ///
  /// - Parameter finishing: makes the result of the report, after whatever else is done to the staged container in the same
  ///   transaction: migrations.
  /// - Throws: `DrydockError`: `mismatch`, `notInArchive`, `conflict`, `damaged`, and what a transaction throws.
  ///   Nothing has changed then.
  package static func run<Value>(
    _ archive: Archive, _ container: Container, _ options: RestoreOptions = RestoreOptions(),
    finishing: (StagedContainer, RestoreReport) throws -> Value = { $1 }
  ) throws -> TransactionOutcome<Value> {
    let (summary, source) = (options.summary ?? summary(archive.header), source(archive.header))
    let change = { try stage(archive, $0, options, finishing) }
    return container.isPlanned
      ? try Transaction.create(
        container, .restore, summary: summary, source: source, options: options.transaction, body: change)
      : try Transaction.run(
        on: container, .restore, summary: summary, source: source, options: options.transaction, body: change)
  }

  /// Does what ``run(_:_:_:finishing:)`` does on a stage that is discarded; the archive's content is read and checked.
  package static func dryRun<Value>(
    _ archive: Archive, _ container: Container, _ options: RestoreOptions = RestoreOptions(),
    finishing: (StagedContainer, RestoreReport) throws -> Value = { $1 }
  ) throws -> DryRunOutcome<Value> {
    let staged =
      container.isPlanned
      ? try DiscardedStage(creating: container, options: options.transaction)
      : try DiscardedStage(on: container, options: options.transaction)
    return try staged.outcome(stage(archive, staged, options, finishing))
  }

  /// Only counts what a restore would do; of the archive the manifest alone is read.
  package static func plan(
    _ archive: Archive, _ container: Container, _ options: RestoreOptions = RestoreOptions()
  ) throws -> RestoreReport {
    try RestorePlan(archive, DiscardedStage(on: container, options: options.transaction), options).changes
      .finished()
  }

  package static func summary(_ header: Archive.Header) -> String {
    "restored \(header.archive.short) of \(header.time)"
  }

  private static func source(_ header: Archive.Header) -> String { "\(header.app) \(header.instance)" }

  /// Whose data the last restore brought here: Apple's metadata, which names an instance, is not part of a backup, so
  /// that a container made by a restore is named after its directory.
  static func lastRestored(_ container: Container) throws -> String? {
    try Transaction.log(container).last { entry in
      entry.kind == .restore && (entry.state == .undoable || entry.state == .committed)
    }?.source
  }

  private static func refuseMixedVersions(
    _ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions
  ) throws {
    let version = try options.readsVersion?(staged)
    guard archive.header.schemaVersion != version else { return }
    let name = { (version: Int?) in version.map { "schema version \($0)" } ?? "an unknown schema version" }
    throw DrydockError(  // rule 9
      .mismatch,
      "a part of an archive of \(name(archive.header.schemaVersion)) would be mixed into a container of "
        + "\(name(version)); restore all of it, or migrate it to that version",
      path: archive.path)
  }

  private static func stage<Value>(
    _ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions,
    _ finishing: (StagedContainer, RestoreReport) throws -> Value
  ) throws -> Value {
    // The archive's databases come back as they were, damaged ones too: their hashes are checked instead.
    (staged.checksResult, staged.removesStraySidecars) = (false, false)
    if options.isPartial { try refuseMixedVersions(archive, staged, options) }
    if !options.acceptsIncomplete { try archive.requireComplete() }
    try archive.checkExpansion()
    let changes = try changes(archive, staged, options)
    if !changes.report.removed.isEmpty { try options.confirmRemovals?(changes.report.removed) }
    for path in changes.removals where try staged.status(of: path) != nil {
      try staged.remove(path, withExternalData: false)
    }
    for entry in changes.directories where try staged.status(of: entry.path)?.type != .directory {
      try staged.putDirectory(at: entry.path, metadata: staged.attainable(entry.metadata, for: .directory))
    }
    try removeDirectories(at: changes.contents.paths, staged)
    try removeDirectories(at: (changes.symbolicLinks + changes.links).map(\.path), staged)
    // A restore that reads all contents also checks what comes after the last one, up to the manifest's own frames.
    // From a server that comes while the contents are read; of a few archives, because it takes memory.
    let complete = archive.parts.indices.filter { changes.readsAll(of: $0, archive) }
    for part in complete.prefix(4) {
      let reader = archive.parts[part].reader
      reader.ranges.fetchFrame(beforeThatOf: reader.manifest.offset)
    }
    do {
      try archive.put(changes, into: staged)
    } catch let error as DrydockError where error.meansDamage {
      let unreadable = try? archive.unreadable(
        among: changes.contents, links: changes.links, changes.members)
      throw error.naming(unreadable ?? [])
    }
    let keptValues = try mergeKeyValueStores(among: changes.contents.paths, staged)
    for part in complete {
      let reader = archive.parts[part].reader
      try MemberCheck(reader.ranges, changes.members[part]).checkRest(reader.manifest)
    }
    try changes.vault?.stage(staged)
    for entry in changes.links {
      if let first = entry.hardLink { try staged.putHardLink(at: entry.path, to: first) }
    }
    for entry in changes.attributes { try staged.setMetadata(entry.metadata, of: entry.path) }
    // Directories last: what was put into them changed their times.
    for entry in changes.directories {
      let present = try staged.metadata(of: entry.path)
      if !staged.changesNames(in: entry.path) && present == entry.metadata { continue }
      let metadata = try staged.attainable(entry.metadata, for: .directory)
      if staged.changesNames(in: entry.path) || present != metadata {
        try staged.putDirectory(at: entry.path, metadata: metadata)
      }
    }
    var report = changes.finished()
    report.bytesRead = archive.bytesRead
    report.keptValues = keptValues
    report.deviceSettings = changes.contents.paths.filter { isBound($0, in: staged) }
    return try finishing(staged, report)
  }

  /// Decides what is done. What only the decision needs is freed when this returns.
  private static func changes(
    _ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions
  ) throws -> RestoreChanges {
    var plan = try RestorePlan(archive, staged, options)
    guard options.acceptsIncomplete else { return plan.changes }
    let unreadable = try archive.unreadable(
      among: plan.wanted, links: plan.changes.links, plan.changes.members)
    if !unreadable.isEmpty && !plan.isIntoEmpty {
      try refuseMixedVersions(archive, staged, options)
    }
    plan.leave(unreadable)
    return plan.changes
  }

  /// Whether a file's settings can be read on the device only that wrote them: EncryptedSharedPreferences.
  private static func isBound(_ path: ContainerPath, in staged: StagedContainer) -> Bool {
    guard staged.container.isSettings(path) else { return false }
    do { _ = try staged.defaults(path) } catch let error as DrydockError {
      return error.code == .unsupported
    } catch {}
    return false
  }

  /// Merges restored iCloud key-value stores into the live ones: another device may have written newer values.
  ///
  /// - Returns: how many keys of each kept another value than the archive's.
  private static func mergeKeyValueStores(
    among paths: some Sequence<ContainerPath>, _ staged: StagedContainer
  ) throws -> [ContainerPath: Int] {
    var kept: [ContainerPath: Int] = [:]
    for path in paths where staged.container.isKeyValueStore(path) {
      guard try staged.live.status(path)?.type == .file,
        let live = try? SettingsFile(bytes: staged.live.contents(path), path: path.description),
        let archived = try? staged.defaults(path)
      else { continue }
      var result = live
      let count: Int
      (result.root, count) = KeyValueStore.merged(live: live.root, archived: archived.root)
      try staged.setDefaults(result, at: path)
      if count > 0 { kept[path] = count }
    }
    return kept
  }

  /// Removes directories where something else comes.
  private static func removeDirectories(
    at paths: some Sequence<ContainerPath>, _ staged: StagedContainer
  ) throws {
    for path in try staged.directories(among: paths) { try staged.remove(path) }
  }
}

extension Archive {
  /// Stages files and symbolic links, each content compared with its hash.
  fileprivate func put(_ changes: RestoreChanges, into staged: StagedContainer) throws {
    for entry in changes.symbolicLinks {
      guard let target = entry.linkTarget else { continue }
      try staged.putLink(at: entry.path, target: target, metadata: entry.metadata)
    }
    let source = ChainSource(self, changes.members)
    let (contents, progress) = (changes.contents, staged.progress)
    progress?.begin(.restore, totalBytes: contents.size, totalFiles: contents.places.count)
    let groups = ContentPlace.groups(contents.places, isRemote: source.isRemote)
    let databases = staged.lockedDatabases
    try staged.putFiles(contents.paths, groups, size: contents.size) { group in
      let borrowed = BorrowedReader(of: source)
      borrowed.reader.expect(contents, group)
      return { number in
        let reader = borrowed.reader
        let entry = try contents.entry(number, reader)
        return (
          entry.metadata, entry.digest, entry.size, isDatabase: entry.kind != .file,
          { target in
            let add = { (count: Int) in progress?.add(bytes: UInt64(count)) ?? () }
            let isReplaced =
              try databases[entry.path].map {
                try reader.replace(entry, in: target, since: $0, read: add)
              } ?? false
            if !isReplaced {
              try reader.read(entry) {
                try target.write($0)
                add($0.count)
              }
            }
            progress?.add(files: 1)
          }
        )
      }
    }
  }

  /// Reads one content into memory, compared with its hash.
  func contents(of entry: ManifestEntry, _ members: [ExpectedMembers]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try ChainSource(self, members).reader().read(entry) { bytes.append(contentsOf: $0) }
    return bytes
  }
}

// MARK: Options and report

/// What a restore replaces, and how.
public struct RestoreOptions: Sendable {
  /// The paths to act, and mirror, inside of; none means all.
  public var scope: [ContainerPath] = []
  /// The stores to act, and mirror, inside of; none means all.
  public var stores: Set<ContainerStore> = []
  /// Leaves what the archive does not have.
  public var keepExtra = false
  /// Replaces what a rule excludes in the container.
  public var overwriteExcluded = false
  /// Brings back what was stored although a rule excluded it.
  public var includeExcluded = false
  /// Brings back synchronizable items of the vault, which overwrite those on the owner's other devices.
  public var includesSynchronizable = false
  /// Brings back set-user-id and set-group-id bits, and capabilities, which give other rights to whoever runs a file.
  public var keepsSetID = false
  /// Restores what can be read when archives of the chain are missing or damaged. The paths that need them stay as they are
  /// in the container; nothing is removed that only a missing archive could name.
  public var acceptsIncomplete = false
  /// Compares every live content with its hash, also where the status proves that it has not changed since the snapshot.
  public var checksContents = false
  /// Accepts another app's or instance's data.
  public var fromOther = false
  /// Called with the paths that the restore is about to remove, if there are any; what it throws ends the restore, and
  /// nothing has changed. The container stays locked until it returns, so that what is removed is what it was called with.
  package var confirmRemovals: (@Sendable ([ContainerPath]) throws -> Void)?
  /// Reads the container's schema version, as far as it is known, for a partial restore.
  package var readsVersion: (@Sendable (StagedContainer) throws -> Int?)?
  /// The transaction's line in the log; by default which archive was restored.
  package var summary: String?
  /// How the transaction is run; its device keys open the vault.
  public var transaction = TransactionOptions()
  /// Brings all readable items of the vault, for a private copy that is to be migrated.
  var copiesVault = false
  /// Where the vault's items came from, when the archive is such a copy: they return under the rules of that one.
  var vaultOrigin: VaultOrigin?

  /// All of an archive, without what rules exclude.
  public init() {}

  package var isPartial: Bool { !scope.isEmpty || !stores.isEmpty }
}

/// What a restore did.
public struct RestoreReport: Sendable {
  /// Paths that came back, with content from the archive or with their attributes.
  public var restored = PathList()
  /// Paths that the archive does not have and that were removed.
  public var removed: [ContainerPath] = []
  /// Live paths that were preserved, and why: a rule excludes them, or the archive could not store them.
  package var preserved: [ContainerPath: String] = [:]
  /// Paths that came back although a directory above is excluded now.
  package var restoredUnderExcluded: [ContainerPath] = []
  /// Paths that have set-id bits or capabilities in the archive, which were not restored.
  package var withoutSetID: [ContainerPath] = []
  /// The number of paths that were right already.
  public var unchanged = 0
  /// What was done with the vault's items; nil when it was right already, out of scope, or nowhere.
  public var vault: RestoreReport.Vault?
  /// Where the vault's items came from, for a restore of a copy of the archive.
  var vaultOrigin: VaultOrigin?
  /// Groups of the archive that the container does not have, so that nothing of them came back.
  public var missingGroups: [String] = []
  /// Archives that could not be read, with the paths that were not restored for it.
  public var unreadable: [UnreadableArchive] = []
  /// iCloud key-value stores of which keys kept their live values, and how many.
  package var keptValues: [ContainerPath: Int] = [:]
  /// Restored settings files that only the device can read that wrote them.
  package var deviceSettings: [ContainerPath] = []
  package var bytesRead: UInt64 = 0

  package init() {}

  /// Whether something that should have come back did not.
  public var isIncomplete: Bool {
    !missingGroups.isEmpty || !unreadable.isEmpty || vault.map { !$0.notRestored.isEmpty } ?? false
  }
}
