@testable import DrydockTesting
import Foundation
@testable import Reports
import TestSupport
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("The report in JUnit XML") struct JUnitReportTests {
  private let all = FixtureSuite.Report(fixtures: [], findings: [], notes: [], seconds: 0)

  /// `Schemas/junit-10.xsd` is the schema of Jenkins' xUnit plug-in.
  private func validate(_ result: FixtureSuite.Report) throws {
    try TemporaryDirectory.with { directory in
      try JUnitReport(result).xml.write(to: URL(fileURLWithPath: directory("report.xml")))
      let schema = ReportSamples.repository + "/Tests/ReportsTests/Schemas/junit-10.xsd"
      let checked = try Command.run(
        Tools.system("xmllint"), ["--noout", "--schema", schema, directory("report.xml")])
      #expect(checked.succeeded, "\(checked)")
    }
  }

  @Test("It is valid, whatever stands in names, values and messages")
  func valid() throws {
    try validate(ReportSamples.everything)
    try validate(all)
    var filtered = all
    filtered.notes = ["fixtures were filtered out"]
    try validate(filtered)
  }

  /// Apache Ant's schema asks for more: these attributes, this order, one element at most in a case, names without
  /// line breaks.
  @Test("It has all that Apache Ant asks for, in its order")
  func ant() throws {
    for suite in try suites(ReportSamples.everything) {
      let attributes = Set((suite.attributes ?? []).compactMap(\.name))
      let wanted: Set = [
        "name", "package", "id", "tests", "failures", "errors", "skipped", "time", "hostname", "timestamp",
      ]
      #expect(attributes == wanted)
      #expect(suite.text("timestamp").wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) != nil)
      var names = (suite.children ?? []).compactMap(\.name)
      names.removeAll { $0 == "testcase" }
      #expect(names == ["properties", "system-out", "system-err"])
      #expect(suite.children?.first?.name == "properties")
      for item in suite.elements(forName: "testcase") {
        #expect((item.children ?? []).count <= 1)
        #expect(!item.text("name").contains(/\s\s|\n/) && item.text("time").contains(/^\d+\.\d{3}$/))
      }
    }
  }

  @Test("A case reports its fixture's state, with all findings as text")
  func cases() throws {
    let suites = try suites(ReportSamples.everything)
    #expect(suites.map { $0.text("name") } == ["fixtures", "all fixtures together"])
    let numbers = ["tests", "failures", "errors", "skipped"].map { suites[0].text($0) }
    #expect(numbers == ["5", "1", "1", "2"])
    let cases = suites[0].elements(forName: "testcase")
    #expect(
      cases.map { ($0.children?.first?.name ?? "passed") }
        == ["passed", "failure", "error", "skipped", "skipped"])
    let failure = try #require(cases[1].children?.first as? XMLElement)
    #expect(failure.text("message") == "golden: Library/p.plist: theme: another value")
    #expect(failure.text("type") == "golden")
    let text = failure.stringValue ?? ""
    for part in [
      "expected  \"light\"\n", "found     \"dark\"\n", "first after 0002_rename_settings\n",
      "/repo/Fixtures/v1/expected/6/defaults.yaml:12\n", "a & b <c> \"q\" 'x' ]]> ::error::\\u{1}\\u{fffe}",
      "the containers are kept in /tmp/kept/v1",
    ] { #expect(text.contains(part), "\(part) is not in:\n\(text)") }
    let known = try #require(cases[3].children?.first as? XMLElement)
    #expect(known.text("message").hasPrefix("known failure: issue 7: a & b"))
    #expect(suites[0].elements(forName: "system-out").first?.stringValue?.contains("v1: 0004 is irr") == true)
    let overAll = suites[1].elements(forName: "testcase")
    #expect(overAll.map { ($0.children?.first?.name ?? "passed") } == ["failure", "passed", "passed"])
  }

  @Test("What could not be checked is skipped, with the reason")
  func notChecked() throws {
    var filtered = all
    filtered.notes = ["fixtures were filtered out"]
    let cases = try suites(filtered)[1].elements(forName: "testcase")
    let skipped = cases.compactMap { $0.children?.first as? XMLElement }
    #expect(skipped.count == 3 && skipped.allSatisfy { $0.text("message") == "fixtures were filtered out" })
  }

  private func suites(_ result: FixtureSuite.Report) throws -> [XMLElement] {
    let root = try XMLDocument(data: JUnitReport(result).xml).rootElement()
    return try #require(root).elements(forName: "testsuite")
  }
}

extension XMLElement {
  fileprivate func text(_ attribute: String) -> String {
    self.attribute(forName: attribute)?.stringValue ?? ""
  }
}
