import Foundation
import TestSupport
import Testing

/// The program lists every rule with its texts, and the session of the guide is one of the transcript's.
@Suite("The guide on audits")
struct AuditGuideTests {
  private static let folder = Sandbox.repository + "/Sources/Drydock/Drydock.docc"

  private func guide() throws -> String {
    try String(contentsOfFile: Self.folder + "/Inspecting.md", encoding: .utf8)
  }

  @Test("The program prints every rule with all its texts")
  func rules() throws {
    try Sandbox.with { sandbox in
      let rules = try sandbox.document("audit --rules")["rules"].list
      #expect(rules.count > 30 && Set(rules.map { $0["id"].text }).count == rules.count)
      for rule in rules {
        for key in ["id", "severity", "title", "why", "fix"] {
          #expect(rule[key].text?.isEmpty == false, "\(rule) has no \(key)")
        }
      }
    }
  }

  @Test("Its session is in the transcript")
  func session() throws {
    let text = try guide()
    let heading = try #require(text.firstRange(of: "\n## Auditing\n"))
    let start = try #require(text[heading.upperBound...].firstRange(of: "```console\n"))
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
