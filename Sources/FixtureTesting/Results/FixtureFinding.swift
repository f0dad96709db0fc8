/// One thing that is not as it must be: where, what was expected, what was found, and since which migration.
package struct FixtureFinding: Sendable, Codable, Equatable {
  /// What was checked.
  package enum Check: String, Sendable, Codable, CaseIterable {
    /// The container could not be made, or has another version than the fixture says.
    case build
    /// Migrating failed, or did not end at the latest version.
    case migration
    /// The result is not its golden.
    case golden
    /// An expectation of `fixture.yaml` is not met.
    case expectation
    /// Migrating again changed something.
    case again
    /// Rolling back did not give back exactly what was.
    case rollback
    /// Going down by steps did not reach the same state.
    case down
    /// A table lost rows, and nothing announced it.
    case lostRows = "lost-rows"
    /// A killed migration left a container that is neither old nor new.
    case torture
    /// A step of a migration has no effect on any fixture.
    case coverage
    /// A release has no fixture.
    case release
    /// A migrated container is not like one that the app wrote itself.
    case fresh
    /// What was known to fail passes.
    case known
  }

  /// What was checked.
  package var check: Check
  /// Where in the container: a path, and the key, row or item in it, such as `…/database.sqlite: task, id 3: title`.
  package var place: String?
  /// What is wrong, in a sentence without the place; secrets are hidden.
  package var message: String
  /// What must be there; nil for nothing, or where the message says it all.
  package var expected: String?
  /// What is there.
  package var found: String?
  /// The first migration after which it differs, such as `0002_rename_settings`; nil when none made the difference.
  package var migration: String?
  /// The file that says what is expected, or the migration's, relative to nothing: as it was named.
  package var file: String?
  /// The line in it, from 1.
  package var line: Int?

  /// A finding with what every one has.
  package init(_ check: Check, _ message: String, place: String? = nil) {
    (self.check, self.message, self.place) = (check, message, place)
  }
}
