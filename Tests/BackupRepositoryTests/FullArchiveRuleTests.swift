import AppContainer
import DrydockErrors
import Formats
import Testing

@testable import BackupRepository

/// `snapshot:` in `drydock.yaml`.
@Suite struct FullArchiveRuleTests {
  private func rule(_ text: String) throws -> FullArchiveRule {
    let document = try YAMLDocument(Array(text.utf8), file: "drydock.yaml")
    return try ContainerConfiguration(document, folder: "/x", sections: [.fullArchives])
      .fullArchives
  }

  @Test func values() throws {
    for text in ["app: a", "snapshot:", "snapshot: {}", "snapshot: {full-after: 30, full-above: 100%}"] {
      #expect(
        try rule(text) == FullArchiveRule() && rule(text).after == 30 && rule(text).above == 100, "\(text)")
    }
    let other = try rule("snapshot: {full-after: 0, full-above: 250%}")
    #expect(other.after == 0 && other.above == 250)
  }

  @Test func mistakesHaveTheirPlace() throws {
    for (text, words) in [
      (
        "{full-afer: 1}",
        "drydock.yaml:1:12: unknown key `full-afer` in `snapshot`; did you mean `full-after`?"
      ),
      ("{full-after: -1}", "drydock.yaml:1:24: `full-after` is a number of incremental archives"),
      ("{full-after: 501}", "from 0 to 500"), ("{full-after: many}", "`full-after` is an integer"),
      ("{full-above: 100}", "`full-above` is a text"),
      ("{full-above: 0%}", "drydock.yaml:1:24: `full-above` is a percentage"),
      ("{full-above: a lot}", "such as 100%"), ("{full-above: 10001%}", "10000%"), ("30", "is a mapping"),
    ] {
      do {
        _ = try rule("snapshot: \(text)")
        Issue.record("\(text) was accepted")
      } catch let error as DrydockError {
        #expect(error.message.contains(words), "\(text): \(error.message)")
      }
    }
  }
}
