import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Brings a container back to the state of a snapshot, in one transaction.
package enum Restore {
  /// Where an archive goes.
  package enum Target: Sendable {
    /// An existing container.
    case existing(Container)
    /// A place where nothing is yet.
    case absent(Container)

    /// The container, existing or planned.
    package var container: Container {
      switch self {
      case .existing(let container), .absent(let container): container
      }
    }
  }

  /// Looks at the place that an archive is to go to.
  ///
  /// - Parameters:
  ///   - instance: overrides the container's instance name.
  ///   - fromOther: takes another app's or instance's data.
  /// - Throws: ``DrydockError`` with code `mismatch` for another app's or instance's data.
  package static func target(
    _ path: String, for archive: Archive, configuration: Configuration, instance: String? = nil,
    fromOther: Bool = false
  ) throws -> Target {
    let header = archive.header
    var planned = configuration
    planned.layout = configuration.layout ?? header.layout
    planned.app = configuration.app ?? header.app
    if let container = try Container.planned(
      at: path, configuration: planned, instance: instance ?? header.instance)
    {
      return .absent(container)
    }
    let existing = try Container(at: path, configuration: configuration, instance: instance)
    if try Directory(existing.root).names().isEmpty {
      return .existing(try Container(at: path, configuration: planned, instance: instance ?? header.instance))
    }
    let isSame = existing.app == header.app && existing.instance == header.instance
    guard try fromOther || isSame || lastRestored(existing) == source(header) else {
      throw DrydockError(
        .mismatch,
        "the archive is of \(header.app.printable), instance \(header.instance.printable), and the container of "
          + "\(existing.app), instance \(existing.instance); give --from-other when that is what you want",
        path: path)
    }
    return .existing(existing)
  }

  /// Whose data an archive has.
  private static func source(_ header: ArchiveHeader) -> String { "\(header.app) \(header.instance)" }

  /// Whose data the last restore brought here: what names an instance (Apple's metadata) is not part of a backup, so
  /// that a container made by a restore goes by its directory's name.
  private static func lastRestored(_ container: Container) throws -> String? {
    try Transaction.log(container).last { entry in
      entry.kind == .restore && (entry.state == .undoable || entry.state == .committed)
    }?.source
  }

  /// Restores.
  ///
  /// - Parameter finishing: what else is done to the staged result, in the same transaction: migrations.
  /// - Throws: ``DrydockError``: `mismatch`, `missing`, `conflict`, `damaged`; `DrydockError`,
  ///   `DrydockError`, `DrydockError`. Nothing has changed then.
  package static func run(
    _ archive: Archive, _ target: Target, _ options: RestoreOptions = RestoreOptions(),
    finishing: (StagedContainer) throws -> Void = { _ in }
  ) throws -> TransactionOutcome<RestoreReport> {
    try refusePartialOfOtherVersion(archive, options)
    let summary = options.summary ?? summary(archive.header)
    var transaction = options.transaction
    // The archive's databases come back as they were, damaged ones too: their hashes are checked instead.
    transaction.checksResult = false
    transaction.source = source(archive.header)
    switch target {
    case .existing(let container):
      return try Transaction.run(on: container, .restore, summary: summary, options: transaction) {
        try stage(archive, $0, options, finishing)
      }
    case .absent(let container):
      return try Transaction.create(container, .restore, summary: summary, options: transaction) {
        try stage(archive, $0, options, finishing)
      }
    }
  }

  /// What the log says of a restore.
  package static func summary(_ header: ArchiveHeader) -> String {
    "restored \(header.archive.short) of \(header.time)"
  }

  /// Does what ``run(_:_:_:finishing:)`` does on a stage that is thrown away; the archive's content is read and checked.
  package static func dryRun(
    _ archive: Archive, _ target: Target, _ options: RestoreOptions = RestoreOptions(),
    finishing: (StagedContainer) throws -> Void = { _ in }
  ) throws -> DryRunOutcome<RestoreReport> {
    try refusePartialOfOtherVersion(archive, options)
    var transaction = options.transaction
    transaction.checksResult = false
    switch target {
    case .existing(let container):
      return try Transaction.dryRun(on: container, options: transaction) {
        try stage(archive, $0, options, finishing)
      }
    case .absent(let container):
      return try Transaction.dryCreate(container, options: transaction) {
        try stage(archive, $0, options, finishing)
      }
    }
  }

  /// Only counts what a restore would do, for a question before it; nothing is read from the archive but its
  /// manifest.
  package static func plan(
    _ archive: Archive, _ target: Target, _ options: RestoreOptions = RestoreOptions()
  ) throws -> RestoreReport {
    guard case .existing(let container) = target else { return RestoreReport() }
    return try Transaction.inspect(container, options: options.transaction) {
      try RestorePlan(archive, $0, options).report
    }
  }

  private static func refusePartialOfOtherVersion(_ archive: Archive, _ options: RestoreOptions) throws {
    guard options.isPartial, archive.header.schemaVersion != options.schemaVersion else { return }
    let name = { (version: Int?) in version.map { "schema version \($0)" } ?? "an unknown schema version" }
    throw DrydockError(  // rule 9
      .mismatch,
      "a part of an archive of \(name(archive.header.schemaVersion)) would be mixed into a container of "
        + "\(name(options.schemaVersion)); restore all of it, or give --migrate", path: archive.path)
  }

  // MARK: Staging

  private static func stage(
    _ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions,
    _ finishing: (StagedContainer) throws -> Void
  ) throws -> RestoreReport {
    try archive.checkExpansion()
    let plan = try RestorePlan(archive, staged, options)
    for path in plan.removals where try staged.status(of: path) != nil {
      try staged.remove(path, withExternalData: false)
    }
    for entry in plan.directories where try staged.status(of: entry.path)?.type != .directory {
      try staged.putDirectory(at: entry.path, metadata: staged.attainable(entry.metadata, for: .directory))
    }
    for entry in plan.contents + plan.links {
      if let present = try staged.status(of: entry.path), present.type == .directory {
        try staged.remove(entry.path)
      }
    }
    let contents = try RestoredContents(archive, plan.members)
    try contents.put(plan.contents, staged)
    // Who reads all contents looks behind the last one, too.
    if plan.readsEverything { try contents.checkEnd() }
    try plan.vault?.stage(staged)
    for entry in plan.links {
      if let first = entry.hardLink { try staged.putHardLink(at: entry.path, to: first) }
    }
    for entry in plan.attributes { try staged.setMetadata(entry.metadata, of: entry.path) }
    // Directories last: what was put into them moved their times.
    for entry in plan.directories {
      let present = try staged.metadata(of: entry.path)
      if !staged.changesNames(in: entry.path) && present == entry.metadata { continue }
      let metadata = try staged.attainable(entry.metadata, for: .directory)
      if staged.changesNames(in: entry.path) || present != metadata {
        try staged.putDirectory(at: entry.path, metadata: metadata)
      }
    }
    var report = plan.report
    report.bytesRead = archive.bytesRead
    try finishing(staged)
    return report
  }
}
