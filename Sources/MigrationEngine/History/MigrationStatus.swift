import ContainerTransaction
import DrydockErrors

/// The migrations that a container has, those that are pending, and the conflicts between its history and the files.
public struct MigrationStatus: Sendable {
  /// What is known of a migration in a container.
  public enum State: String, Sendable, Codable {
    case pending
    case applied
    /// Applied, and its files are missing.
    case missing
    /// Applied, and its files were modified since.
    case edited
    /// Applied, and its files have another number now.
    case renumbered
    /// Not applied, although a later one was.
    case outOfOrder = "out of order"
    /// A version marker would mean it, and it was never released.
    case unknown
  }

  /// One migration of the files, the history, or both.
  public struct Entry: Sendable {
    /// The migration's number.
    public let number: Int
    /// Without the number.
    public let name: String
    /// Whether it was applied, and whether it still is what was applied.
    public let state: State
    package let record: MigrationRecord?
    /// Of another number when it is renumbered.
    package let migration: Migration?

    /// `0002_rename_settings`.
    public var identifier: String { Migration.padded(number) + "_" + name }

    /// Whether its `.down.sql` was added after it was applied: its other files are unchanged.
    var hasLaterDownFile: Bool {
      guard let record, record.origin == .applied, state == .applied else { return false }
      return migration?.lacksDown(record.checksum) == true
    }

    /// Whether its files are another migration's than the one that was applied: neither the name nor the content is the same.
    var isOfAnother: Bool {
      guard let record, let migration else { return false }
      return record.name != migration.name && !migration.hasContent(of: record)
    }

    /// Whether it is pending, and opens the vault.
    public var needsDeviceKey: Bool { state == .pending && migration?.vaultUse != nil }
  }

  package let catalog: MigrationCatalog
  package let detected: DetectedVersion
  /// All migrations by number.
  public let entries: [Entry]
  private let releaseProblems: [Releases.Problem]
  /// The comparison of the database with what another tool has recorded; nil when nothing of it is to be recorded.
  private var replayed: ReplayedSchema?
  /// What should be known before migrating.
  public var notes: [String] {
    [replayed?.note].compactMap(\.self)
      + entries.filter(\.hasLaterDownFile).map {
        "migration \($0.identifier) got its `.down.sql` after it was applied to this container"
      }
  }

  /// Detects a container's version, and compares it and its history with the migrations.
  ///
  /// - Parameter allowingOutOfOrder: whether a migration is run although a later one was applied.
  /// - Throws: as `DetectedVersion.detect`, when the version is unknown.
  package init(
    _ catalog: MigrationCatalog, of stage: StagedContainer, allowingOutOfOrder: Bool = false
  ) throws {
    self.init(
      catalog: catalog, detected: try DetectedVersion.detect(in: stage, tool: catalog.tool),
      allowingOutOfOrder: allowingOutOfOrder)
    guard !appliedExternally.isEmpty, problems.isEmpty else { return }
    replayed = try ReplayedSchema(
      catalog, applied: entries.filter { $0.state == .applied }.compactMap(\.migration),
      recorded: detected.appliedExternally.recorded, version: detected.version, of: stage)
  }

  /// Compares a container's version and history with the migrations.
  ///
  /// - Parameter checkingReleases: whether a migration that was modified since its release is a problem.
  package init(
    catalog: MigrationCatalog, detected: DetectedVersion, allowingOutOfOrder: Bool = false,
    checkingReleases: Bool = true
  ) {
    self.catalog = catalog
    self.detected = detected
    let numbers = Set(catalog.migrations.map(\.number)).union(detected.history.records.map(\.number))
    var released: Int?
    do {
      let releases = try Releases.read(catalog.directory)
      releaseProblems = checkingReleases ? releases.problems(in: catalog) : []
      released = detected.unconfirmedVersion.map { _ in releases.version }
    } catch {
      releaseProblems = [(nil, DrydockError(reading: error))]
    }
    let renumbered = Self.renumbered(detected.history, catalog)
    entries = numbers.sorted().map { [released] number in
      let migration = catalog.migration(number)
      let record = detected.history.record(number)
      if let record, let successor = renumbered[number] {
        return Entry(
          number: number, name: record.name, state: .renumbered, record: record, migration: successor)
      }
      return Entry(
        number: number, name: migration?.name ?? record?.name ?? "",
        state: Self.state(number, migration, record, detected, allowingOutOfOrder, released: released),
        record: record, migration: migration)
    }
  }

  /// The migrations whose content was applied under another number, by that number: after a merge one of two migrations gets
  /// the next free number.
  private static func renumbered(_ history: MigrationHistory, _ catalog: MigrationCatalog) -> [Int: Migration]
  {
    // Other tools keep their own record.
    if catalog.tool != nil { return [:] }
    var free = catalog.migrations.filter { migration in
      history.record(migration.number).map { $0.origin == .applied && !migration.hasContent(of: $0) } ?? true
    }
    var found: [Int: Migration] = [:]
    for record in history.records where record.origin == .applied {
      guard catalog.migration(record.number)?.hasContent(of: record) != true else { continue }
      let same = free.indices.filter { free[$0].hasContent(of: record) }
      guard let index = same.first(where: { free[$0].name == record.name }) ?? same.first else { continue }
      found[record.number] = free.remove(at: index)
    }
    return found
  }

  private static func state(
    _ number: Int, _ migration: Migration?, _ record: MigrationRecord?, _ detected: DetectedVersion,
    _ allowingOutOfOrder: Bool, released: Int?
  ) -> State {
    switch (migration, record) {
    case (nil, _): return .missing
    case (let migration?, let record?):
      // Only migrations that Drydock ran have a reliable checksum.
      let isSame = migration.accepts(record.checksum) && record.name == migration.name
      return record.origin != .applied || isSame ? .applied : .edited
    case (_, nil):
      if number > detected.version { return .pending }
      if detected.appliedExternally.contains(number) {
        return released.map { $0 < number } == true ? .unknown : .applied
      }
      return allowingOutOfOrder ? .pending : .outOfOrder
    }
  }

  /// The numbers that were applied externally, beyond the history: to be recorded.
  package var appliedExternally: [Int] {
    catalog.numbers.filter { detected.history.record($0) == nil && detected.appliedExternally.contains($0) }
  }

  /// The migrations that are still to be run, in order.
  public var pending: [Migration] { entries.filter { $0.state == .pending }.compactMap(\.migration) }

  /// The errors that prevent migrations from being run, in the order of the numbers.
  public var problems: [DrydockError] {
    if let unconfirmedVersion { return [unconfirmedVersion] }
    if let lacking = replayed?.problem(detected.source.description) { return [lacking] }
    // A migration of a newer release is not missing: without its record that release would run it again.
    let known = entries.filter { $0.state != .missing || $0.number <= catalog.latest }
    let found = known.compactMap { entry in Self.problem(entry).map { (entry.number, $0) } }
    // What was edited after it was applied is reported once.
    let others = releaseProblems.filter { problem in !found.contains { $0.0 == problem.number } }
    return found.map(\.1) + others.map(\.error) + [newer].compactMap { $0 }
  }

  /// The error when the container is ahead of the migrations.
  var newer: DrydockError? {
    let latest = catalog.latest
    guard max(detected.version, detected.history.version) > latest else { return nil }
    let by: String
    if let record = detected.history.records.last, record.number > latest {
      by = "\(Migration.padded(record.number))_\(record.name) by \(record.tool)"
    } else {
      by = "\(detected.version) by \(detected.source)"
    }
    return DrydockError(
      .newer,
      "this container was migrated by a newer release (\(by)), and the migrations end with \(latest): use those of the "
        + "newer release", path: catalog.directory)
  }

  /// The error when a marker of a container without a history means migrations that were never released.
  private var unconfirmedVersion: DrydockError? {
    guard let marked = detected.unconfirmedVersion,
      let last = entries.last(where: { $0.state == .unknown })?.number
    else { return nil }
    let baseline =
      marked.number > last
      ? "" : "\n  if the app did what they do: set the version to \(last)"
    return DrydockError(
      .unconfirmedVersion,
      "\(marked.marker) is \(marked.number), and would mean migrations that were never released (up to \(last))\n"
        + "  if the number is from before Drydock: add `at: {0: \(marked.number)}` to its marker in drydock.yaml"
        + baseline, path: catalog.directory)
  }

  static func problem(_ entry: Entry) -> DrydockError? {
    let name = entry.identifier
    switch entry.state {
    case .pending, .applied, .unknown: return nil
    case .missing:
      return DrydockError(
        .missingMigration,
        "migration \(name) was applied to this container, and its files are missing: restore them, or "
          + "remove number \(entry.number) from the history")
    case .renumbered:
      return DrydockError(
        .edited,
        "migration \(name) was applied to this container, and is \(entry.migration?.identifier ?? "") now: renumber it "
          + "in the history", path: entry.migration?.file)
    case .edited where entry.isOfAnother:
      return DrydockError(
        .edited,
        "migration \(name) has the number of \(entry.record?.name ?? ""), which was applied to this container: give "
          + "it the next free number, and restore the files of the other one", path: entry.migration?.file)
    case .edited:
      let renamed = entry.record.map { $0.name != entry.name ? " (it was named \($0.name))" : "" } ?? ""
      return DrydockError(
        .edited,
        "migration \(name) was modified after it was applied to this container\(renamed): restore its files, "
          + "and put the change into a new migration; or, when it makes no difference, accept number "
          + "\(entry.number) as it is", path: entry.migration?.file)
    case .outOfOrder:
      return DrydockError(
        .outOfOrder,
        "migration \(name) was never applied to this container, but a later one was: give it the next free number, or "
          + "allow it to run out of order", path: entry.migration?.file)
    }
  }

  /// The pending migrations up to a version; up to the latest without one.
  ///
  /// - Throws: ``DrydockError``: the first of ``problems``, or `usage` for a target before the container's version or
  ///   after the last migration.
  public func pending(to target: Int?) throws -> [Migration] {
    if let problem = problems.first { throw problem }
    guard let target else { return pending }
    guard target >= detected.version || pending.contains(where: { $0.number <= target }) else {
      throw DrydockError(
        .usage,
        "the container has version \(detected.version): migrations cannot go back")
    }
    guard target == detected.version || catalog.hasVersion(target) else {
      throw DrydockError(
        .usage, "migration \(target) does not exist: the last one is \(catalog.latest)",
        path: catalog.directory)
    }
    return pending.filter { $0.number <= target }
  }

  /// Opens the vault when a pending migration needs it, so that a missing device key is reported before anything is
  /// staged.
  ///
  /// - Throws: as ``pending(to:)``; `DrydockError`: `vaultLocked` without the key or with a wrong one, `badVault`.
  package func requireKeys(to target: Int? = nil, for stage: StagedContainer) throws {
    for migration in try pending(to: target) {
      guard let use = migration.vaultUse else { continue }
      try stage.requireDeviceKeys("\(use) of the migration \(migration.identifier)")
      _ = try stage.vault()
      return
    }
  }
}
