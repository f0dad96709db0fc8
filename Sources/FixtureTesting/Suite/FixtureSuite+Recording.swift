import FileSystem
import MigrationEngine

extension FixtureSuite {
  /// What became of the goldens of one fixture.
  package struct Recording: Sendable {
    /// The fixture's name.
    package var fixture: String
    /// Its goldens by version; empty when it has none to be.
    package var goldens: [RecordedGolden] = []
    /// Why nothing was recorded.
    package var problem: (any Error)?
  }

  /// Writes and updates the goldens of the fixtures, one fixture after the other; what was recorded before a problem stays.
  /// A fixture that must fail to migrate has no goldens, and neither has one that does.
  ///
  /// To check the fixtures with their new goldens, read them anew.
  ///
  /// - Parameter progress: told of each fixture that is done.
  /// - Throws: `DrydockError` when no device key can be made.
  package func record(progress: (Recording) -> Void = { _ in }) throws -> [Recording] {
    let runner = try FixtureRunner(catalog: catalog, configuration: configuration)
    return fixtures.filter(\.expectsSuccess).map { fixture in
      var recording = Recording(fixture: fixture.name)
      do { recording.goldens = try record(fixture, runner) } catch { recording.problem = error }
      progress(recording)
      return recording
    }
  }

  private func record(_ fixture: Fixture, _ runner: FixtureRunner) throws -> [RecordedGolden] {
    let recorder = GoldenRecorder(
      fixture, latest: catalog.latest, releases: releases, deviceKeys: runner.deviceKeys,
      redactor: runner.redactor)
    return try ScratchDirectory.withTemporary { scratch in
      let container = try runner.build(fixture, in: scratch.full("container"))
      // Versions are asked for from the lowest on: it is one container that is migrated on and on.
      return try recorder.record { version in
        // Of its own version it is as it was made, without even a history.
        if version > fixture.version { try runner.migrate(container, to: version) }
        return container
      }
    }
  }
}
