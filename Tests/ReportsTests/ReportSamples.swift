@testable import DrydockTesting
import Foundation

/// Results made by hand, with all that reports have to cope with.
enum ReportSamples {
  static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  static let odd = "a & b <c> \"q\" 'x' ]]> ::error::\u{1}\u{FFFE}\u{1B}[31m 🥛"

  static var wrong: FixtureResult.Finding {
    var finding = FixtureResult.Finding(.golden, "another value", place: "Library/p.plist: theme")
    (finding.expected, finding.found, finding.migration) = ("\"light\"", "\"dark\"", "0002_rename_settings")
    (finding.file, finding.line) = ("/repo/Fixtures/v1/expected/6/defaults.yaml", 12)
    return finding
  }

  static func fixture(
    _ name: String, _ state: FixtureResult.State, _ findings: [FixtureResult.Finding] = []
  ) -> FixtureResult {
    FixtureResult(
      name: name, summary: "A fixture", directory: "/repo/Fixtures/\(name)", from: 1, to: 6, state: state,
      findings: findings, seconds: 0.1234)
  }

  /// One fixture of each kind, and one finding over all.
  static var everything: FixtureSuite.Report {
    var known = fixture(
      "known", .knownFailure, [FixtureResult.Finding(.rollback, "another mode", place: "Documents")])
    known.knownFailure = "issue 7: " + odd
    var failed = fixture("v1", .failed, [wrong, FixtureResult.Finding(.down, odd, place: odd)])
    (failed.kept, failed.notes) = ("/tmp/kept/v1", ["0004 is irreversible: \(odd)"])
    let broken = fixture(
      "odd  name \n\u{2}", .failed, [FixtureResult.Finding(.build, "script failed:\n::set-env::x\r\nline 3")])
    var unexercised = FixtureResult.Finding(.coverage, "step 2 changes no fixture")
    (unexercised.file, unexercised.line) = ("Migrations/0002_rename_settings.yaml", 5)
    return FixtureSuite.Report(
      fixtures: [fixture("v0", .passed), failed, broken, known, fixture("v9", .notRun)],
      findings: [unexercised], notes: [], seconds: 1234.5)
  }
}
