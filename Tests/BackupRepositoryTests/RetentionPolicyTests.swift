import AppContainer
import DrydockErrors
import Formats
import Testing

@testable import BackupRepository

/// `retention:` in `drydock.yaml`.
@Suite struct RetentionPolicyTests {
  private func policy(_ text: String) throws -> RetentionPolicy {
    let document = try YAMLDocument(Array(text.utf8), file: "drydock.yaml")
    return try ContainerConfiguration(document, folder: "/x", sections: [.retention]).retention
  }

  @Test func everyRule() throws {
    let policy = try policy(
      """
      retention:
        {last: 7, hourly: 24, daily: 14, weekly: 8, monthly: 12, yearly: 5, within: 1y2m90d3h, tags: [keep, "a, b", ""]}
      """)
    var wanted = RetentionPolicy()
    (wanted.last, wanted.hourly, wanted.daily, wanted.weekly) = (7, 24, 14, 8)
    (wanted.monthly, wanted.yearly, wanted.within) = (12, 5, try RetentionPolicy.Period("1y2m90d3h"))
    wanted.tags = [["keep"], ["a", "b"], []]
    #expect(policy == wanted && !policy.isEmpty)
    let within = try #require(policy.within)
    #expect([within.years, within.months, within.days, within.hours] == [1, 2, 90, 3])
  }

  @Test func noRule() throws {
    for text in ["app: a", "retention:", "retention: {}", "retention: {last: 0, tags: []}"] {
      #expect(try policy(text).isEmpty, "\(text)")
    }
    #expect(try policy("retention: {tags: keep}").tags == [["keep"]])
  }

  @Test func mistakesHaveTheirPlace() throws {
    for (text, words) in [
      ("{lsat: 1}", "drydock.yaml:1:13: unknown key `lsat` in `retention`; did you mean `last`?"),
      ("{last: -1}", "drydock.yaml:1:19: `last` is the number"), ("{last: many}", "`last` is an integer"),
      ("{within: 90}", "`within` is a text"), ("{within: 90w}", "drydock.yaml:1:21: `90w` is not a period"),
      ("{tags: {a: b}}", "a list of texts"), ("7", "is a mapping"),
    ] {
      do {
        _ = try policy("retention: \(text)")
        Issue.record("\(text) was accepted")
      } catch let error as DrydockError {
        #expect(error.message.contains(words), "\(text): \(error.message)")
      }
    }
  }
}
