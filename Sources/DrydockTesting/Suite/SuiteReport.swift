import Foundation

extension FixtureSuite {
  /// What the checks of all fixtures found.
  public struct Report: Sendable, Codable {
    /// In the order of their names.
    public var fixtures: [FixtureResult]
    /// What is wrong with the fixtures as a whole: steps without effect, releases without a fixture, migrated
    /// containers that are not like fresh ones.
    public var findings: [FixtureResult.Finding]
    /// What could not be checked over all fixtures, and why: some were filtered out.
    public var notes: [String]
    /// How long the run took.
    public var seconds: Double

    /// Whether nothing failed, except what is known to fail.
    public var passed: Bool {
      findings.isEmpty && fixtures.allSatisfy { $0.state == .passed || $0.state == .knownFailure }
    }
  }
}

/// What the checks of one fixture found.
public struct FixtureResult: Sendable, Codable {
  /// What became of a fixture.
  public enum State: String, Sendable, Codable {
    case passed, failed
    /// It fails, and `fixture.yaml` says so.
    case knownFailure = "known-failure"
    /// It was not run: another one failed before, with `--fail-fast`.
    case notRun = "not-run"
  }

  /// The fixture's name.
  public var name: String
  /// What it is, in its author's words.
  public var summary: String
  /// The fixture's directory.
  public var directory: String
  /// Its schema version, and the one that it was migrated to.
  public var from: Int, to: Int
  /// What became of it.
  public var state: State
  /// What is wrong; empty when it passed.
  public var findings: [FixtureResult.Finding]
  /// What could not be checked, and why.
  public var notes: [String] = []
  /// Why its failure is expected, if it is.
  public var knownFailure: String?
  /// How long it took.
  public var seconds: Double
  /// Where the containers of a failure are kept.
  public var kept: String?
  /// What the migrations change from the version ``base`` on, secrets hidden; nil unless it was asked for.
  public var difference: ContainerDifference?
  /// The last version before the latest that has a golden, or else the fixture's.
  public var base: Int?
}

package typealias Finding = FixtureResult.Finding

extension FixtureResult {
  /// One thing that is not as it must be: where, what was expected, what was found, and since which migration.
  public struct Finding: Sendable, Codable, Equatable {
    /// What is checked.
    public enum Check: String, Sendable, Codable, CaseIterable {
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
      /// A step lost values, and nothing announced it.
      case lostValues = "lost-values"
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
    public var check: Check
    /// Where in the container: a path, and the key, row or item in it, such as `…/database.sqlite: task, id 3: title`.
    public var place: String?
    /// What is wrong, in a sentence without the place; secrets are hidden.
    public var message: String
    /// What must be there; nil for nothing, or where the message says it all.
    public var expected: String?
    /// What there is instead.
    public var found: String?
    /// The first migration after which it differs, such as `0002_rename_settings`; nil when none made the difference.
    public var migration: String?
    /// The file that says what is expected, or the migration's, relative to nothing: as it was named.
    public var file: String?
    /// The line in it, from 1.
    public var line: Int?
    /// The number of rows that the finding is about: more than 1 where rows are counted, not listed.
    package var count = 1
    /// What the place is, such as `row` or `setting`.
    package var noun: String?
    /// The place without what identifies one of many rows or files, such as `…/database.sqlite: task.title`: findings
    /// are grouped by it.
    package var pattern: String?
    /// What is wrong as the findings of single rows say it, of a finding that counts the rest of the rows.
    package var kind: String?
    /// The migration's file, and the line of the step, which made the difference; nil when it is not known.
    package var cause: Cause?

    /// A place in a migration.
    package struct Cause: Sendable, Codable, Hashable {
      package var file: String
      package var line: Int?

      package init(file: String, line: Int? = nil) { (self.file, self.line) = (file, line) }
    }

    private enum CodingKeys: String, CodingKey {
      case check, place, message, expected, found, migration, file, line, count, cause
    }

    /// A finding with what every one has.
    package init(
      _ check: Check, _ message: String, place: String? = nil, expected: String? = nil, found: String? = nil,
      file: String? = nil, line: Int? = nil
    ) {
      (self.check, self.message, self.place) = (check, message, place)
      (self.expected, self.found, self.file, self.line) = (expected, found, file, line)
    }
  }
}

extension FixtureSuite.Report: CustomStringConvertible {
  /// The counts, and what is wrong, by cause, as `drydock test` prints it: the place, what was expected and found, the file and
  /// line, and examples where one cause shows several times.
  public var description: String {
    let directory = FileManager.default.currentDirectoryPath
    let found = groups.filter { !$0.isKnown }.flatMap { GroupText($0, from: directory).linesWithRest() }
    return ([counts] + found).joined(separator: "\n")
  }

  package func count(_ state: FixtureResult.State) -> Int { fixtures.count { $0.state == state } }

  /// The counts in words: `14 fixtures: 12 passed, 1 failed, 1 known failure`.
  public var counts: String {
    let states: [(FixtureResult.State, String, String)] = [
      (.passed, "passed", "passed"), (.failed, "failed", "failed"),
      (.knownFailure, "known failure", "known failures"), (.notRun, "not run", "not run"),
    ]
    let words = states.compactMap { state, one, many in
      let number = count(state)
      return number == 0 ? nil : "\(number) \(number == 1 ? one : many)"
    }
    let fixtures = fixtures.count.counted("fixture")
    return words.isEmpty ? fixtures : fixtures + ": " + words.joined(separator: ", ")
  }

  /// The counts and the verdict: `1 fixture: 1 passed; 2 cross-fixture findings: FAILED`.
  package var conclusion: String {
    counts + (findings.isEmpty ? "" : "; \(findings.count.counted("cross-fixture finding"))")
      + (passed ? "" : ": FAILED")
  }
}

extension FixtureResult.Finding: CustomStringConvertible {
  /// What is wrong, in lines.
  public var description: String { FindingText(self).lines.joined(separator: "\n") }
}
