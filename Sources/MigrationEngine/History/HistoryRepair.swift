import ContainerTransaction
import DrydockErrors

/// Brings a container's history in line with the migrations, where a person has looked and says so.
package struct Repair: Sendable {
  /// Numbers of migrations that were edited after they were applied: as they are now counts as what was applied.
  package var accept: [Int]
  /// Numbers of migrations whose files are gone: the container is not said to have them any more.
  package var remove: [Int]

  /// A repair of the migrations that are named.
  package init(accept: [Int] = [], remove: [Int] = []) {
    (self.accept, self.remove) = (accept, remove)
  }

  /// Rewrites the history, and the version markers when the version becomes another. Nothing else is touched.
  ///
  /// - Returns: what was done, and remarks.
  /// - Throws: ``DrydockError`` `usage` for a migration that is not in the state that is named.
  package func run(_ catalog: MigrationCatalog, on stage: StagedContainer) throws -> [String] {
    let status = try MigrationStatus(catalog, of: stage)
    var history = status.detected.history
    var notes: [String] = []
    for number in accept.sorted() {
      let entry = try Self.entry(number, .edited, "accept", status)
      guard let migration = entry.migration, var record = entry.record else { continue }
      (record.name, record.checksum) = (migration.name, migration.checksum)
      history.replace(record)
      notes.append("\(migration.identifier): its files as they are now count as what was applied")
    }
    for number in remove.sorted() {
      let entry = try Self.entry(number, .missing, "remove", status)
      history.remove(number)
      notes.append("\(entry.identifier): no longer in the history")
    }
    try history.write(to: stage)
    if history.version != status.detected.version {
      notes += try stage.writeMarkers(version: history.version)
    }
    return notes
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
        "`--\(verb)` is for migrations that are \(state.rawValue), and \(entry.identifier) is \(entry.state.rawValue)"
      )
    }
    return entry
  }
}

/// Says which version a container has, without running anything.
package enum Baseline {
  /// Writes the history for a version, and brings the version markers in line with it. Records that are there
  /// already are kept up to that version; later ones go.
  ///
  /// - Returns: remarks, such as markers that could not be written.
  /// - Throws: ``DrydockError`` `usage` for a version that the migrations do not have.
  package static func set(
    _ version: Int, catalog: MigrationCatalog, on stage: StagedContainer, stamp: MigrationStamp
  ) throws -> [String] {
    guard catalog.hasVersion(version) else {
      throw DrydockError(
        .usage, "there is no version \(version): the migrations go from 0 to \(catalog.latest)",
        path: catalog.directory)
    }
    // A history that cannot be read is what baseline is the way out of.
    let old = try MigrationHistory.readable(stage) ?? MigrationHistory()
    var history = MigrationHistory()
    for migration in catalog.migrations where migration.number <= version {
      history.add(
        old.record(migration.number) ?? MigrationRecord(migration, origin: .baseline, stamp: stamp))
    }
    try history.write(to: stage)
    var notes = try stage.updateToolRecord(history, catalog)
    notes += try stage.writeMarkers(version: version)
    if old.version > version {
      notes.append("the history said version \(old.version): what is after \(version) will be run again")
    }
    return notes
  }
}
