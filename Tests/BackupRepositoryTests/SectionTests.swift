import AppContainer
import Formats
import TestSupport
import Testing

@testable import BackupRepository

/// `retention:` and `snapshot:` in `drydock.yaml`.
@Suite struct SectionTests {
  private func configuration(_ text: String) throws -> ContainerConfiguration {
    let document = try YAMLDocument(Array(text.utf8), file: "drydock.yaml")
    return try ContainerConfiguration(document, folder: "/x", sections: [.retention, .fullArchives])
  }

  @Test func everyRule() throws {
    let policy = try configuration(
      """
      retention:
        {last: 7, hourly: 24, daily: 14, weekly: 8, monthly: 12, yearly: 5, within: 1y2m90d3h, tags: [keep, "a, b", ""]}
      """
    ).retention
    var wanted = RetentionPolicy()
    (wanted.last, wanted.hourly, wanted.daily, wanted.weekly) = (7, 24, 14, 8)
    (wanted.monthly, wanted.yearly, wanted.within) = (12, 5, try RetentionPolicy.Period("1y2m90d3h"))
    wanted.tags = [["keep"], ["a", "b"], []]
    #expect(policy == wanted && !policy.isEmpty)
    let within = try #require(policy.within)
    #expect([within.years, within.months, within.days, within.hours] == [1, 2, 90, 3])
    #expect(try configuration("retention: {tags: keep}").retention.tags == [["keep"]])
  }

  @Test func noRule() throws {
    for text in ["app: a", "retention:", "retention: {}", "retention: {last: 0, tags: []}"] {
      #expect(try configuration(text).retention.isEmpty, "\(text)")
    }
  }

  @Test func fullArchives() throws {
    for text in ["app: a", "snapshot:", "snapshot: {}", "snapshot: {full-after: 30, full-above: 100%}"] {
      let rule = try configuration(text).fullArchives
      #expect(rule == FullArchiveRule() && rule.after == 30 && rule.above == 100, "\(text)")
    }
    let other = try configuration("snapshot: {full-after: 0, full-above: 250%}").fullArchives
    #expect(other.after == 0 && other.above == 250)
  }

  @Test(arguments: [
    ("retention: {lsat: 1}", "drydock.yaml:1:13: unknown key `lsat` in `retention`; did you mean `last`?"),
    ("retention: {last: -1}", "drydock.yaml:1:19: `last` is the number"),
    ("retention: {last: many}", "`last` is an integer"), ("retention: {within: 90}", "`within` is a text"),
    ("retention: {within: 90w}", "drydock.yaml:1:21: `90w` is not a period"),
    ("retention: {tags: {a: b}}", "a list of texts"), ("retention: 7", "is a mapping"),
    (
      "snapshot: {full-afer: 1}",
      "drydock.yaml:1:12: unknown key `full-afer` in `snapshot`; did you mean `full-after`?"
    ),
    ("snapshot: {full-after: -1}", "drydock.yaml:1:24: `full-after` is a number of incremental archives"),
    ("snapshot: {full-after: 501}", "from 0 to 500"),
    ("snapshot: {full-after: many}", "`full-after` is an integer"),
    ("snapshot: {full-above: 100}", "`full-above` is a text"),
    ("snapshot: {full-above: 0%}", "drydock.yaml:1:24: `full-above` is a percentage"),
    ("snapshot: {full-above: a lot}", "such as 100%"), ("snapshot: {full-above: 10001%}", "10000%"),
    ("snapshot: 30", "is a mapping"),
  ]) func mistakesHaveTheirPlace(_ text: String, _ words: String) {
    expectError(nil, words) { try configuration(text) }
  }
}
