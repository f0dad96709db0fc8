import Foundation
import TestSupport
import Testing

/// The guide on audits lists every rule with the texts of the program, and its session is one of the transcript's.
@Suite("The guide on audits")
struct AuditGuideTests {
  private static let folder = Sandbox.repository + "/Sources/Drydock/Drydock.docc"

  private func guide() throws -> String {
    try String(contentsOfFile: Self.folder + "/Auditing.md", encoding: .utf8)
  }

  @Test("Its table is what the program prints about its rules")
  func rules() throws {
    try Sandbox.with { sandbox in
      let rules = try sandbox.document("audit --rules")["rules"].list
      #expect(rules.count > 30)
      let wanted = rules.map { rule -> String in
        let text = { (key: String) in (rule[key].text ?? "").replacing("|", with: "\\|") }
        let title = rule["source"].text.map { "[\(text("title"))](\($0))" } ?? text("title")
        return "| `\(text("id"))` | \(text("severity")) | \(title): \(text("why")) | \(text("fix")) |"
      }
      let rows = try guide().split(separator: "\n").filter {
        $0.firstMatch(of: /^\| `[a-z-]+` \| (error|warning|note) \|/) != nil
      }
      #expect(rows.map(String.init) == wanted)
    }
  }

  @Test("Its session is in the transcript")
  func session() throws {
    let text = try guide()
    let start = try #require(text.firstRange(of: "```console\n"))
    let block = text[start.upperBound...]
    let session = Transcript(String(block[..<(try #require(block.firstRange(of: "```")).lowerBound)]))
    let recorded = Transcript(
      try String(contentsOfFile: TranscriptTests.folder + "/audit.txt", encoding: .utf8))
    #expect(!session.steps.isEmpty)
    for step in session.steps {
      let lines = step.output.filter { $0.trimmingCharacters(in: .whitespaces) != "…" }
        .map { $0.replacing("/srv/", with: "{HERE}/") }
      let found = recorded.steps.contains { candidate in
        var rest = candidate.output[...]
        return candidate.command == step.command
          && lines.allSatisfy { line in
            guard let index = rest.firstIndex(of: line) else { return false }
            rest = rest[(index + 1)...]
            return true
          }
      }
      #expect(found, "$ \(step.command)")
    }
  }
}
