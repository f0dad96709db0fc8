import AppContainer
import Drydock
import Foundation
import MigrationEngine
import TestSupport
import Testing

@testable import DrydockTesting
@testable import Reports

@Suite("The report in SARIF") struct SARIFTests {
  /// `Schemas/sarif-2.1.0.json` is the schema of the OASIS standard. To read it takes most of the time: give several logs at once.
  static func validate(_ logs: Data...) throws {
    let program = """
      import json, sys, jsonschema
      schema, *logs = (json.load(open(path)) for path in sys.argv[1:])
      jsonschema.Draft4Validator.check_schema(schema)
      errors = [error for log in logs for error in jsonschema.Draft4Validator(schema).iter_errors(log)]
      for error in errors: print(error.message, list(error.path))
      sys.exit(1 if errors else 0)
      """
    try TemporaryDirectory.with { directory in
      let files = logs.indices.map { directory("\($0).sarif") }
      for (log, file) in zip(logs, files) { try log.write(to: URL(fileURLWithPath: file)) }
      let schema = ReportSamples.repository + "/Tests/ReportsTests/Schemas/sarif-2.1.0.json"
      // The system's, which has the package; another one that is found first may not.
      let checked = try Command.run("/usr/bin/python3", ["-c", program, schema] + files)
      #expect(checked.succeeded, "\(checked)")
    }
  }

  private func log(_ report: FixtureSuite.Report) -> Data {
    SARIFLog(report, root: "/repo", directory: "/repo/app").json
  }

  static func results(_ json: Data) throws -> [[String: Any]] {
    let log = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
    let run = try #require((log["runs"] as? [[String: Any]])?.first)
    return try #require(run["results"] as? [[String: Any]])
  }

  static func uri(_ location: [String: Any]) -> String? {
    let physical = location["physicalLocation"] as? [String: Any]
    return (physical?["artifactLocation"] as? [String: Any])?["uri"] as? String
  }

  @Test("It is valid, whatever is in names, values and messages")
  func valid() throws {
    let fixtures = MarkdownTests.hostile.map { value in
      var finding = FixtureResult.Finding(.golden, value, place: value)
      (finding.file, finding.line, finding.cause) = (
        value, 0, FixtureResult.Finding.Cause(file: value, line: -1)
      )
      return ReportSamples.fixture(value, .failed, [finding])
    }
    func log(_ fixtures: [FixtureResult]) -> Data {
      self.log(FixtureSuite.Report(fixtures: fixtures, findings: [], notes: [], seconds: 0))
    }
    try Self.validate(self.log(ReportSamples.everything), log([]), log(fixtures))
  }

  @Test("A schema that nothing violates would prove nothing")
  func invalid() throws {
    let text = String(decoding: log(ReportSamples.everything), as: UTF8.self)
    for (right, wrong) in [("\"level\" : \"error\"", "\"level\" : \"fatal\""), ("\"2.1.0\"", "\"2.2\"")] {
      #expect(text.contains(right))
      withKnownIssue { try Self.validate(Data(text.replacing(right, with: wrong).utf8)) }
    }
  }

  @Test("A result is at the step of the migration, with the files of the fixtures as related places")
  func places() throws {
    var finding = ReportSamples.wrong
    finding.cause = FixtureResult.Finding.Cause(file: "Migrations/0002 ä#%:[x].yaml", line: 4)
    let names = ["v1", "v2"]
    let report = FixtureSuite.Report(
      fixtures: names.map { ReportSamples.fixture($0, .failed, [finding]) }, findings: [], notes: [],
      seconds: 0)
    let results = try Self.results(log(report))
    #expect(results.count == 1)
    let result = try #require(results.first)
    #expect(result["ruleId"] as? String == "test/golden" && result["level"] as? String == "error")
    let location = try #require((result["locations"] as? [[String: Any]])?.first)
    #expect(Self.uri(location) == "app/Migrations/0002%20%C3%A4%23%25%3A%5Bx%5D.yaml")
    let region = (location["physicalLocation"] as? [String: Any])?["region"] as? [String: Int]
    #expect(region == ["startLine": 4])
    let related = try #require(result["relatedLocations"] as? [[String: Any]])
    #expect(related.map(Self.uri) == Array(repeating: "Fixtures/v1/expected/6/defaults.yaml", count: 2))
    #expect(
      result["partialFingerprints"] as? [String: String] == [
        "drydock/v1": "golden | 0002_rename_settings | Library/p.plist: theme"
      ])
  }

  @Test("A known failure is a suppressed note, and a file outside of the repository has its absolute URI")
  func known() throws {
    var finding = FixtureResult.Finding(.golden, "see [here](https://example.com) and {0}")
    finding.file = "/elsewhere/a b.yaml"
    var known = ReportSamples.fixture("v1", .knownFailure, [finding])
    known.knownFailure = "issue 7"
    let report = FixtureSuite.Report(fixtures: [known], findings: [], notes: [], seconds: 0)
    let result = try #require(try Self.results(log(report)).first)
    #expect(result["level"] as? String == "note")
    let reasons = (result["suppressions"] as? [[String: Any]])?.map { $0["justification"] as? String }
    #expect(reasons == ["known failure: issue 7"])
    #expect((result["locations"] as? [[String: Any]])?.map(Self.uri) == ["file:///elsewhere/a%20b.yaml"])
    let message = (result["message"] as? [String: Any])?["text"] as? String ?? ""
    #expect(message.contains("[here] (https://example.com) and {{0}}"), "\(message)")
  }

  @Test("Problems of migration files have their line and column")
  func validation() throws {
    try TemporaryDirectory.with { directory in
      try Data("steps:\n  - defaults.renam: {}\n  - sql: {database: a, up: 'SELEC 1'}\n".utf8)
        .write(to: URL(fileURLWithPath: directory("0001_a.yaml")))
      let found = try MigrationValidation.run(directory(""), ContainerConfiguration())
      let json = SARIFLog(found, root: directory(""), directory: "/").json
      try Self.validate(json)
      let results = try Self.results(json)
      #expect(results.map { $0["ruleId"] as? String } == ["validate/catalog", "validate/sql"])
      let regions = results.map { result in
        let location = (result["locations"] as? [[String: Any]])?.first
        return (location?["physicalLocation"] as? [String: Any])?["region"] as? [String: Int]
      }
      #expect(regions.map { $0?["startLine"] } == [2, 3] && regions[0]?["startColumn"] == 5)
    }
  }

  private func report(_ findings: [[String: Any]]) throws -> AuditReport {
    let document: [String: Any] = [
      "root": "/repo/Notes", "app": "a", "instance": "i", "layout": "ios", "findings": findings,
      "off": [["rule": "wal-large", "reason": "r", "findings": 1]], "limits": [], "notChecked": [],
      "unreadable": [],
    ]
    return try JSONDecoder().decode(AuditReport.self, from: JSONSerialization.data(withJSONObject: document))
  }

  private func finding(
    _ rule: String, _ path: String?, item: String? = nil, _ message: String = "m", severity: String = "error"
  ) -> [String: Any] {
    var finding: [String: Any] = [
      "rule": rule, "severity": severity, "message": message, "count": 2, "unit": "row", "examples": ["x"],
      "fix": "repair it",
    ]
    finding["path"] = path
    finding["item"] = item
    return finding
  }

  private func auditLog(_ findings: [[String: Any]]) throws -> Data {
    SARIFLog(try report(findings), root: "/repo", directory: "/repo/app").json
  }

  @Test("That of an audit is valid, whatever is in names")
  func validAudit() throws {
    let odd = MarkdownTests.hostile + [ReportSamples.odd]
    let findings = odd.map { finding("secret-in-log", $0, item: $0, $0) }
    try Self.validate(auditLog(findings + [finding("version-contradiction", nil)]), auditLog([]))
  }

  @Test("A finding is at its file, in the container or in the app, with its rule's level")
  func placesOfAudit() throws {
    let json = try auditLog([
      finding("secret-in-database", "Documents/a b.sqlite", item: "t.c"),
      finding("usage-description-empty", "Notes.app/Info.plist", severity: "note"),
      finding("large-included-directory", ".", severity: "warning"),
    ])
    let results = try Self.results(json)
    #expect(results.map { $0["level"] as? String } == ["error", "note", "warning"])
    #expect(
      results.map { $0["ruleId"] as? String } == [
        "audit/secret-in-database", "audit/usage-description-empty", "audit/large-included-directory",
      ])
    let uris = results.map { (($0["locations"] as? [[String: Any]])?.first).flatMap(Self.uri) }
    #expect(uris == ["Notes/Documents/a%20b.sqlite", "app/Notes.app/Info.plist", "Notes"])
    let prints = results.compactMap { ($0["partialFingerprints"] as? [String: String])?["drydock/v1"] }
    #expect(Set(prints).count == 3)
    #expect(results.first?["ruleIndex"] as? Int != nil)
  }
}
