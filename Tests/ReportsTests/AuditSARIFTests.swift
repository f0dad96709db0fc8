import Drydock
import Foundation
import Reports
import Testing

@Suite("An audit in SARIF")
struct AuditSARIFTests {
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

  private func log(_ findings: [[String: Any]]) throws -> Data {
    SARIFLog(try report(findings), root: "/repo", directory: "/repo/app").json
  }

  @Test("It is valid, whatever is in names")
  func valid() throws {
    let odd = MarkdownTests.hostile + [ReportSamples.odd]
    let findings = odd.map { finding("secret-in-log", $0, item: $0, $0) }
    try SARIFTests.validate(log(findings + [finding("version-contradiction", nil)]), log([]))
  }

  @Test("A finding is at its file, in the container or in the app, with its rule's level")
  func places() throws {
    let json = try log([
      finding("secret-in-database", "Documents/a b.sqlite", item: "t.c"),
      finding("usage-description-empty", "Notes.app/Info.plist", severity: "note"),
      finding("large-included-directory", ".", severity: "warning"),
    ])
    let results = try SARIFTests.results(json)
    #expect(results.map { $0["level"] as? String } == ["error", "note", "warning"])
    #expect(
      results.map { $0["ruleId"] as? String } == [
        "audit/secret-in-database", "audit/usage-description-empty", "audit/large-included-directory",
      ])
    let uris = results.map { (($0["locations"] as? [[String: Any]])?.first).flatMap(SARIFTests.uri) }
    #expect(uris == ["Notes/Documents/a%20b.sqlite", "app/Notes.app/Info.plist", "Notes"])
    let prints = results.compactMap { ($0["partialFingerprints"] as? [String: String])?["drydock/v1"] }
    #expect(Set(prints).count == 3)
    #expect(results.first?["ruleIndex"] as? Int != nil)
  }
}
