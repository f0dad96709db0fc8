import AppContainer
import ContainerTransaction

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
    public let record: MigrationRecord?
    /// Its files.
    public let migration: Migration?

    /// `0002_rename_settings`.
    public var identifier: String { migration?.identifier ?? Migration.padded(number) + "_" + name }

    /// Whether it is still to be run, and opens the vault.
    public var needsDeviceKey: Bool { state == .pending && migration?.vaultUse != nil }
  }

  /// The migrations.
  public let catalog: MigrationCatalog
  /// The container's version.
  public let detected: DetectedVersion
  /// All migrations by number.
  public let entries: [Entry]

  /// Compares a container's version and history with the migrations; never fails, so that it can be shown.
  public init(catalog: MigrationCatalog, detected: DetectedVersion) {
    self.catalog = catalog
    self.detected = detected
    let numbers = Set(catalog.migrations.map(\.number)).union(detected.history.records.map(\.number))
    entries = numbers.sorted().map { number in
      let migration = catalog.migration(number)
      let record = detected.history.record(number)
      return Entry(
        number: number, name: migration?.name ?? record?.name ?? "",
        state: Self.state(number, migration, record, detected), record: record, migration: migration)
    }
  }

  private static func state(
    _ number: Int, _ migration: Migration?, _ record: MigrationRecord?, _ detected: DetectedVersion
  ) -> State {
    switch (migration, record) {
    case (nil, _): return .missing
    case (let migration?, let record?):
      // What Drydock did not run itself has no checksum to hold on to.
      let isSame = record.checksum == migration.checksum && record.name == migration.name
      return record.origin != .applied || isSame ? .applied : .edited
    case (_, nil):
      if number > detected.version { return .pending }
      return detected.elsewhere.contains(number) ? .applied : .outOfOrder
    }
  }

  /// The numbers that the app migrated itself, beyond the history: to be recorded.
  public var byTheApp: [Int] {
    catalog.numbers.filter { detected.history.record($0) == nil && detected.elsewhere.contains($0) }
  }

  /// The migrations that are still to be run.
  public var pending: [Migration] { entries.filter { $0.state == .pending }.compactMap(\.migration) }

  /// Everything that keeps migrations from being run, in the order of the numbers.
  public var problems: [MigrationError] {
    var problems = entries.compactMap(Self.problem)
    if detected.version > catalog.latest, !problems.contains(where: { $0.code == .missing }) {
      problems.append(
        MigrationError(
          .unknownVersion,
          "the container has version \(detected.version) (\(detected.source)), and the migrations end with "
            + "\(catalog.latest): use the migrations of the newer app", path: catalog.directory))
    }
    return problems
  }

  static func problem(_ entry: Entry) -> MigrationError? {
    let name = entry.identifier
    switch entry.state {
    case .pending, .applied: return nil
    case .missing:
      return MigrationError(
        .missing,
        "migration \(name) was applied to this container, and its files are gone: bring them back, or "
          + "take it out of the history with `drydock repair CONTAINER --remove \(entry.number)`")
    case .edited:
      let renamed = entry.record.map { $0.name != entry.name ? " (it was called \($0.name))" : "" } ?? ""
      return MigrationError(
        .edited,
        "migration \(name) was changed after it was applied to this container\(renamed): bring its files back, "
          + "and put the change into a new migration; or, when it makes no difference, `drydock repair CONTAINER --accept "
          + "\(entry.number)`", path: entry.migration?.file)
    case .outOfOrder:
      return MigrationError(
        .outOfOrder,
        "migration \(name) was never applied to this container, but a later one was: give it the next free number",
        path: entry.migration?.file)
    }
  }

  /// The migrations to run up to a version; to the latest without one.
  ///
  /// - Throws: ``MigrationError``: the first of ``problems``, or `usage` for a target that is behind the
  ///   container or beyond the migrations.
  public func pending(to target: Int?) throws -> [Migration] {
    if let problem = problems.first { throw problem }
    guard let target else { return pending }
    guard target >= detected.version else {
      throw MigrationError(
        .usage,
        "the container has version \(detected.version) already, and `migrate` only goes forward: `drydock "
          + "rollback` undoes the last transaction")
    }
    guard target == detected.version || catalog.hasVersion(target) else {
      throw MigrationError(
        .usage, "there is no migration \(target): the last one is \(catalog.latest)", path: catalog.directory)
    }
    return pending.filter { $0.number <= target }
  }

  /// Opens the vault when a migration that is to be run needs that: whether the device key is at hand is known before
  /// anything is staged.
  ///
  /// - Throws: as ``pending(to:)``; `ContainerError`: `vaultLocked` without the key or with a wrong one, `badVault`.
  public func requireKeys(to target: Int? = nil, for stage: StagedContainer) throws {
    for migration in try pending(to: target) {
      guard let use = migration.vaultUse else { continue }
      try stage.requireDeviceKeys("\(use) of the migration \(migration.identifier)")
      _ = try stage.vault()
      return
    }
  }
}
