/// What the checks of all fixtures found.
package struct SuiteResult: Sendable, Codable {
  package var fixtures: [FixtureResult]
  /// What is wrong with the fixtures as a whole: steps without effect, releases without a fixture, migrated
  /// containers that are not like fresh ones.
  package var findings: [FixtureFinding]
  /// What could not be checked over all fixtures, and why: some were filtered out.
  package var notes: [String]
  package var seconds: Double

  /// Whether nothing failed that is not known to.
  package var passed: Bool {
    findings.isEmpty && fixtures.allSatisfy { $0.state == .passed || $0.state == .knownFailure }
  }
}

/// What the checks of one fixture found.
package struct FixtureResult: Sendable, Codable {
  package enum State: String, Sendable, Codable {
    case passed, failed
    /// It fails, and `fixture.yaml` says so.
    case knownFailure = "known-failure"
    /// It was not run: another one failed before, with `--fail-fast`.
    case notRun = "not-run"
  }

  package var name: String
  /// What it is, in its author's words.
  package var summary: String
  package var directory: String
  /// Its schema version, and the one that it was migrated to.
  package var from: Int, to: Int
  package var state: State
  /// What is wrong; empty when it passed.
  package var findings: [FixtureFinding]
  /// What could not be checked, and why.
  package var notes: [String] = []
  package var knownFailure: String?
  package var seconds: Double
  /// Where the containers of a failure are kept.
  package var kept: String?
}

/// One thing that is not as it must be: where, what was expected, what was found, and since which migration.
package struct FixtureFinding: Sendable, Codable, Equatable {
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
    /// A step of a migration has no effect on any fixture.
    case coverage
    /// A release has no fixture.
    case release
    /// A migrated container is not like one that the app wrote itself.
    case fresh
    /// What was known to fail passes.
    case known
  }

  package var check: Check
  /// Where in the container: a path, and the key, row or item in it, such as `…/database.sqlite: task, id 3: title`.
  package var place: String?
  /// What is wrong, in a sentence without the place; secrets are hidden.
  package var message: String
  /// What must be there; nil for nothing, or where the message says it all.
  package var expected: String?
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

extension SuiteResult {
  package func count(_ state: FixtureResult.State) -> Int { fixtures.count { $0.state == state } }

  /// The counts in words: `14 fixtures: 12 passed, 1 failed, 1 known failure`.
  package var counts: String {
    let states: [(FixtureResult.State, String, String)] = [
      (.passed, "passed", "passed"), (.failed, "failed", "failed"),
      (.knownFailure, "known failure", "known failures"), (.notRun, "not run", "not run"),
    ]
    let words = states.compactMap { state, one, many in
      let number = count(state)
      return number == 0 ? nil : "\(number) \(number == 1 ? one : many)"
    }
    let fixtures = "\(self.fixtures.count) \(self.fixtures.count == 1 ? "fixture" : "fixtures")"
    return words.isEmpty ? fixtures : fixtures + ": " + words.joined(separator: ", ")
  }
}
