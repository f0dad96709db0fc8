import ContainerTransaction
import DrydockErrors

/// Corrects a container's history where the user confirms it.
package struct Repair: Sendable {
  /// Migrations that were modified after they were applied: their present files are recorded as applied.
  package var accept: [Int]
  /// Migrations whose files are missing: they are removed from the history.
  package var remove: [Int]

  /// Whether the records of migrations that have another number now get that number.
  package var renumber: Bool

  package init(accept: [Int] = [], remove: [Int] = [], renumber: Bool = false) {
    (self.accept, self.remove, self.renumber) = (accept, remove, renumber)
  }

  /// Rewrites the history, and the version markers when the version changes.
  ///
  /// - Returns: notes on what was done.
  /// - Throws: ``DrydockError`` `usage` for a migration in another state.
  package func run(_ catalog: MigrationCatalog, on stage: StagedContainer) throws -> [String] {
    let status = try MigrationStatus(catalog, of: stage)
    var history = status.detected.history
    var notes: [String] = []
    for number in accept.sorted() {
      let entry = try Self.entry(number, .edited, "accept", status)
      guard let migration = entry.migration, var record = entry.record else { continue }
      guard !entry.isOfAnother else {
        throw DrydockError(
          .usage,
          "\(entry.identifier) is another migration than \(record.name), which was applied: both its name and its "
            + "content differ; if it is the same one, restore its name and accept its content first")
      }
      let renamed = record.name == migration.name ? "" : " (it was named \(record.name))"
      (record.name, record.checksum) = (migration.name, migration.checksum)
      history.replace(record)
      notes.append("\(migration.identifier): its present files are recorded as applied\(renamed)")
    }
    for number in remove.sorted() {
      let entry = try Self.entry(number, .missing, "remove", status)
      history.remove(number)
      notes.append("\(entry.identifier): removed from the history")
    }
    if renumber { notes += try Self.renumber(&history, status) }
    try history.write(to: stage)
    if history.version != status.detected.version {
      notes += try stage.writeMarkers(version: history.version)
    }
    return notes
  }

  /// All at once: after a merge two migrations may have each other's number.
  private static func renumber(_ history: inout MigrationHistory, _ status: MigrationStatus) throws
    -> [String]
  {
    let entries = status.entries.filter { $0.state == .renumbered }
    if entries.isEmpty { throw DrydockError(.usage, "no applied migration has another number now") }
    for entry in entries { history.remove(entry.number) }
    return try entries.compactMap { entry in
      guard let migration = entry.migration, var record = entry.record else { return nil }
      if let other = history.record(migration.number) {
        throw DrydockError(
          .usage,
          "\(entry.identifier) cannot become \(migration.identifier): the history has that number for \(other.name); "
            + "restore the files of \(other.name) under another number")
      }
      record.formerly = record.formerly ?? record.number
      (record.number, record.name, record.checksum) = (migration.number, migration.name, migration.checksum)
      history.add(record)
      return "\(entry.identifier): recorded as \(migration.identifier)"
    }
  }

  private static func entry(
    _ number: Int, _ state: MigrationStatus.State, _ verb: String, _ status: MigrationStatus
  ) throws -> MigrationStatus.Entry {
    guard let entry = status.entries.first(where: { $0.number == number }) else {
      throw DrydockError(.usage, "there is no migration \(number), neither in the files nor in the history")
    }
    guard entry.state == state || (state == .edited && entry.hasLaterDownFile) else {
      throw DrydockError(
        .usage,
        "`\(verb)` is for migrations that are \(state.rawValue), and \(entry.identifier) is \(entry.state.rawValue)"
      )
    }
    return entry
  }
}

/// Sets the version of a container without running migrations.
package enum Baseline {
  /// Writes the history for a version, and updates the version markers. Existing records up to that version are kept, and
  /// later ones removed.
  ///
  /// - Returns: notes, such as on markers that could not be written.
  /// - Throws: ``DrydockError`` `usage` for a version that the migrations do not have.
  package static func set(
    _ version: Int, catalog: MigrationCatalog, on stage: StagedContainer, stamp: MigrationStamp
  ) throws -> [String] {
    guard catalog.hasVersion(version) else {
      throw DrydockError(
        .usage, "there is no version \(version): the migrations go from \(catalog.base) to \(catalog.latest)",
        path: catalog.directory)
    }
    // Baseline replaces a history that cannot be read.
    let old = try MigrationHistory.readable(stage) ?? MigrationHistory()
    var history = MigrationHistory()
    for migration in catalog.migrations where migration.number <= version {
      history.add(
        old.record(migration.number) ?? MigrationRecord(migration, origin: .baseline, stamp: stamp))
    }
    let lacking = try ReplayedSchema(
      catalog, applied: catalog.migrations.filter { $0.number <= version }, recorded: [], version: version,
      of: stage)
    var notes =
      lacking.map(\.lines).flatMap { $0.isEmpty ? nil : $0 }.map {
        ["the database lacks what its migrations make: " + $0.joined(separator: ", ")]
      } ?? []
    try history.write(to: stage)
    notes += try stage.updateToolRecord(history, catalog)
    notes += try stage.writeMarkers(version: version)
    if old.version > version {
      notes.append(
        "the history had version \(old.version): later migrations than \(version) will be run again")
    }
    return notes
  }
}
