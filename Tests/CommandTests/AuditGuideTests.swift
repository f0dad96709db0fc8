import Foundation
import TestSupport
import Testing

@Suite("The guide on audits")
struct AuditGuideTests {
  @Test("Its session is in the transcript")
  func session() throws {
    let text = try String(
      contentsOfFile: Sandbox.repository + "/Sources/Drydock/Drydock.docc/Inspecting.md", encoding: .utf8)
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
