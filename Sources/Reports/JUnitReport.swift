import BackupRepository
import DrydockTesting
import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// The result of a suite as JUnit XML, for the reports of build servers.
///
/// The first test suite has a case for each fixture; the second one a case for each check over all fixtures. A fixture
/// whose container could not be made is an error, every other finding a failure, and a known failure is skipped. The
/// document keeps to what Apache Ant and Jenkins both understand; a failure has one element with the text of all its
/// findings.
package struct JUnitReport: Sendable {
  private let result: FixtureSuite.Report
  private let time: Date
  private let root: String?

  package init(_ result: FixtureSuite.Report, time: Date = Date(), from root: String? = nil) {
    (self.result, self.time, self.root) = (result, time, root)
  }

  package var xml: Data {
    let suites = XMLElement(name: "testsuites")
    let notes = result.fixtures.flatMap { fixture in fixture.notes.map { "\(fixture.name): \($0)" } }
    suites.addChild(suite(0, "fixtures", result.fixtures.map(element), notes, seconds: result.seconds))
    // Their time is not measured separately.
    suites.addChild(suite(1, Self.together, elementsOverAll, result.notes, seconds: 0))
    let document = XMLDocument(rootElement: suites)
    (document.version, document.characterEncoding) = ("1.0", "UTF-8")
    return document.xmlData(options: [.nodePrettyPrint])
  }

  private static let together = "all fixtures together"

  private func suite(
    _ id: Int, _ name: String, _ cases: [XMLElement], _ notes: [String], seconds: Double
  ) -> XMLElement {
    let count = { (kind: String) in String(cases.count { !$0.elements(forName: kind).isEmpty }) }
    let suite = XMLElement(name: "testsuite")
    suite.set([
      ("name", name), ("package", "drydock"), ("id", String(id)), ("tests", String(cases.count)),
      ("failures", count("failure")), ("errors", count("error")), ("skipped", count("skipped")),
      ("time", Self.seconds(seconds)), ("hostname", "localhost"),
      // Ant's schema has no place for a time zone: it is UTC.
      ("timestamp", String(time.ISO8601Format().prefix(19))),
    ])
    suite.addChild(XMLElement(name: "properties"))
    for item in cases { suite.addChild(item) }
    suite.addChild(XMLElement(name: "system-out", stringValue: notes.joined(separator: "\n").inXML))
    suite.addChild(XMLElement(name: "system-err"))
    return suite
  }

  private func testCase(_ name: String, in suite: String, seconds: Double = 0) -> XMLElement {
    let element = XMLElement(name: "testcase")
    element.set([("name", name), ("classname", suite), ("time", Self.seconds(seconds))])
    return element
  }

  /// What is in a case that did not simply pass.
  ///
  /// - Parameters:
  ///   - kind: `failure`, `error` or `skipped`.
  ///   - message: the first finding's headline by default.
  private func outcome(
    _ kind: String, _ findings: [FixtureResult.Finding], message: String? = nil, type: String = "",
    kept: String? = nil
  ) -> XMLElement {
    let texts = findings.map { FindingText($0, from: root) }
    let lines = texts.flatMap(\.lines) + (kept.map { ["the containers are kept in \($0)"] } ?? [])
    let element = XMLElement(name: kind, stringValue: lines.joined(separator: "\n").inXML)
    element.set([
      ("message", message ?? texts.first?.headline ?? ""), ("type", findings.first?.check.rawValue ?? type),
    ])
    return element
  }

  private func element(_ fixture: FixtureResult) -> XMLElement {
    // A name is one line there, with single blanks.
    let name = fixture.name.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let element = testCase(name, in: "fixtures", seconds: fixture.seconds)
    switch fixture.state {
    case .passed: break
    case .notRun:
      let message = "not run: another fixture failed before"
      element.addChild(outcome("skipped", [], message: message, type: fixture.state.rawValue))
    case .knownFailure:
      let message = "known failure: \(fixture.knownFailure ?? "")"
      element.addChild(outcome("skipped", fixture.findings, message: message, kept: fixture.kept))
    case .failed:
      let kind = fixture.findings.first?.check == .build ? "error" : "failure"
      element.addChild(outcome(kind, fixture.findings, kept: fixture.kept))
    }
    return element
  }

  /// The checks over all fixtures; those that could not be made are skipped.
  private var elementsOverAll: [XMLElement] {
    var names: [(FixtureResult.Finding.Check, String)] = [
      (.coverage, "every step has an effect on some fixture"), (.release, "every release has its fixtures"),
      (.fresh, "migrated containers are like fresh ones"),
    ]
    for finding in result.findings where !names.contains(where: { $0.0 == finding.check }) {
      names.append((finding.check, finding.check.rawValue))
    }
    return names.map { check, name in
      let element = testCase(name, in: Self.together)
      let findings = result.findings.filter { $0.check == check }
      if !findings.isEmpty {
        element.addChild(outcome("failure", findings))
      } else if !result.notes.isEmpty {
        let message = result.notes.joined(separator: "; ")
        element.addChild(outcome("skipped", [], message: message, type: "not-run"))
      }
      return element
    }
  }

  private static func seconds(_ seconds: Double) -> String { String(format: "%.3f", max(0, seconds)) }
}

extension XMLElement {
  fileprivate func set(_ attributes: [(String, String)]) {
    for (name, value) in attributes {
      let attribute = XMLNode(kind: .attribute)
      (attribute.name, attribute.stringValue) = (name, value.inXML)
      addAttribute(attribute)
    }
  }
}

extension String {
  /// With what no XML document can hold written out.
  fileprivate var inXML: String {
    unicodeScalars.map { scalar in
      switch scalar.value {
      case 0x9, 0xA, 0xD, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...: String(scalar)
      default: "\\u{\(String(scalar.value, radix: 16))}"
      }
    }.joined()
  }
}
