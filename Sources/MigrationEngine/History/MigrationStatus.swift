import AppContainer
import ContainerTransaction
import DrydockErrors

/// What is to be done to a container, and what is wrong between it and the migrations.
public struct MigrationStatus: Sendable {
  /// Where a migration stands.
  public enum State: String, Sendable, Codable {
    /// It is still to be run.
    case pending
    /// The container has it.
    case applied
    /// The container has it, and its files are gone.
    case missing
    /// The container has it, and its files have changed since.
    case edited
    /// The container lacks it, but has a later one.
    case outOfOrder = "out of order"
    /// A version marker would stand for it, and it was never released: nobody knows whether the container has it.
    case unknown
  }

  /// One migration, of the files, the history, or both.
  public struct Entry: Sendable {
    /// Its number.
    public let number: Int
    /// Its name, without the number.
    public let name: String
    /// Where it stands.
    public let state: State
    /// What the history says of it.
    package let record: MigrationRecord?
    /// Its files.
    package let migration: Migration?

    /// `0002_rename_settings`.
    public var identifier: String { migration?.identifier ?? Migration.padded(number) + "_" + name }

    /// Whether the file for its way down was added after it was applied: nothing of what was run is another one.
    var hasLaterDownFile: Bool {
      guard let record, record.origin == .applied, state == .applied else { return false }
      return record.checksum != migration?.checksum
    }

    /// Whether it is still to be run, and opens the vault.
    public var needsDeviceKey: Bool { state == .pending && migration?.vaultUse != nil }
  }

  /// The migrations.
  package let catalog: MigrationCatalog
  /// The container's version.
  package let detected: DetectedVersion
  /// All migrations by number.
  public let entries: [Entry]
  /// What somebody who migrates may want to know, and that keeps nothing from being run.
  public var notes: [String] {
    entries.filter(\.hasLaterDownFile).map {
      "migration \($0.identifier) got its file for the way down after it was applied to this container"
    }
  }

  /// Finds out a container's version, and compares it and its history with the migrations.
  ///
  /// - Parameter allowingOutOfOrder: whether a migration is to be run although a later one was applied.
  /// - Throws: as `DetectedVersion.detect`, when nothing says which version it is.
  package init(
    _ catalog: MigrationCatalog, of stage: StagedContainer, allowingOutOfOrder: Bool = false
  ) throws {
    self.init(
      catalog: catalog, detected: try DetectedVersion.detect(in: stage, tool: catalog.tool),
      allowingOutOfOrder: allowingOutOfOrder)
  }

  /// Compares a container's version and history with the migrations; never fails, so that it can be shown.
  package init(catalog: MigrationCatalog, detected: DetectedVersion, allowingOutOfOrder: Bool = false) {
    self.catalog = catalog
    self.detected = detected
    let numbers = Set(catalog.migrations.map(\.number)).union(detected.history.records.map(\.number))
    let released = detected.firstContact.map { _ in (try? Releases.read(catalog.directory))?.version ?? 0 }
    entries = numbers.sorted().map { number in
      let migration = catalog.migration(number)
      let record = detected.history.record(number)
      return Entry(
        number: number, name: migration?.name ?? record?.name ?? "",
        state: Self.state(number, migration, record, detected, allowingOutOfOrder, released: released),
        record: record, migration: migration)
    }
  }

  private static func state(
    _ number: Int, _ migration: Migration?, _ record: MigrationRecord?, _ detected: DetectedVersion,
    _ allowingOutOfOrder: Bool, released: Int?
  ) -> State {
    switch (migration, record) {
    case (nil, _): return .missing
    case (let migration?, let record?):
      // What Drydock did not run itself has no checksum to hold on to.
      let isSame = migration.accepts(record.checksum) && record.name == migration.name
      return record.origin != .applied || isSame ? .applied : .edited
    case (_, nil):
      if number > detected.version { return .pending }
      if detected.elsewhere.contains(number) {
        return released.map { $0 < number } == true ? .unknown : .applied
      }
      return allowingOutOfOrder ? .pending : .outOfOrder
    }
  }

  /// The numbers that the app migrated itself, beyond the history: to be recorded.
  package var byTheApp: [Int] {
    catalog.numbers.filter { detected.history.record($0) == nil && detected.elsewhere.contains($0) }
  }

  /// The migrations that are still to be run.
  public var pending: [Migration] { entries.filter { $0.state == .pending }.compactMap(\.migration) }

  /// Everything that keeps migrations from being run, in the order of the numbers.
  public var problems: [DrydockError] {
    if let firstContact { return [firstContact] }
    // What a newer release has applied is no file that is gone: whoever took it out of the history would let that
    // release run it again.
    let known = entries.filter { $0.state != .missing || $0.number <= catalog.latest }
    return known.compactMap(Self.problem) + [newer].compactMap { $0 }
  }

  /// That the container is ahead of the migrations.
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

  /// A marker's number is believed on first contact only as far as there were migrations that could have run.
  private var firstContact: DrydockError? {
    guard let contact = detected.firstContact,
      let last = entries.last(where: { $0.state == .unknown })?.number
    else { return nil }
    let baseline =
      contact.number > last
      ? "" : "\n  if the app did what they do: `drydock baseline CONTAINER --to \(last)`"
    return DrydockError(
      .firstContact,
      "\(contact.marker) is \(contact.number), and would stand for migrations that were never released (up to \(last))\n"
        + "  if the number is from before Drydock: add `at: {0: \(contact.number)}` to its marker in drydock.yaml"
        + baseline, path: catalog.directory)
  }

  static func problem(_ entry: Entry) -> DrydockError? {
    let name = entry.identifier
    switch entry.state {
    case .pending, .applied, .unknown: return nil
    case .missing:
      return DrydockError(
        .missingMigration,
        "migration \(name) was applied to this container, and its files are gone: bring them back, or "
          + "take it out of the history with `drydock repair CONTAINER --remove \(entry.number)`")
    case .edited:
      let renamed = entry.record.map { $0.name != entry.name ? " (it was called \($0.name))" : "" } ?? ""
      return DrydockError(
        .edited,
        "migration \(name) was changed after it was applied to this container\(renamed): bring its files back, "
          + "and put the change into a new migration; or, when it makes no difference, `drydock repair CONTAINER --accept "
          + "\(entry.number)`", path: entry.migration?.file)
    case .outOfOrder:
      return DrydockError(
        .outOfOrder,
        "migration \(name) was never applied to this container, but a later one was: give it the next free number, or "
          + "run it now with `drydock migrate CONTAINER --allow-out-of-order`", path: entry.migration?.file)
    }
  }

  /// The migrations to run up to a version; to the latest without one.
  ///
  /// - Throws: ``DrydockError``: the first of ``problems``, or `usage` for a target that is behind the
  ///   container or beyond the migrations.
  public func pending(to target: Int?) throws -> [Migration] {
    if let problem = problems.first { throw problem }
    guard let target else { return pending }
    guard target >= detected.version || pending.contains(where: { $0.number <= target }) else {
      throw DrydockError(
        .usage,
        "the container has version \(detected.version) already, and `migrate` only goes forward: `drydock "
          + "rollback` undoes the last transaction")
    }
    guard target == detected.version || catalog.hasVersion(target) else {
      throw DrydockError(
        .usage, "there is no migration \(target): the last one is \(catalog.latest)", path: catalog.directory)
    }
    return pending.filter { $0.number <= target }
  }

  /// Opens the vault when a migration that is to be run needs that: whether the device key is at hand is known before
  /// anything is staged.
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
