import ContainerTransaction
import DrydockErrors

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
    var notes = try stage.settle(history, catalog)
    notes += try stage.writeMarkers(version: version)
    if old.version > version {
      notes.append("the history said version \(old.version): what is after \(version) will be run again")
    }
    return notes
  }
}
