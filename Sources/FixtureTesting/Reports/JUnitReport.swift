import BackupRepository
import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// The result of a suite as JUnit XML, for the reports of build servers.
///
/// The first test suite has a case for each fixture; the second one a case for each check over all fixtures. A fixture whose
/// container could not be made is an error, every other finding a failure, and a known failure is skipped. The document
/// keeps to what Apache Ant and Jenkins both understand; a failure has one element with the text of all its findings.
package struct JUnitReport: Sendable {
  private let result: SuiteResult
  private let time: Date
  private let root: String?

  /// - Parameters:
  ///   - time: When the suite was run.
  ///   - root: The directory that files are named from, an absolute path; nil to name them as they are.
  package init(_ result: SuiteResult, time: Date = Date(), from root: String? = nil) {
    (self.result, self.time, self.root) = (result, time, root)
  }

  package var xml: Data {
    let suites = XMLElement(name: "testsuites")
    let notes = result.fixtures.flatMap { fixture in fixture.notes.map { "\(fixture.name): \($0)" } }
    suites.addChild(suite(0, "fixtures", result.fixtures.map(Case.init), notes, seconds: result.seconds))
    // Their time is not measured separately.
    suites.addChild(suite(1, "all fixtures together", Case.overAll(result), result.notes, seconds: 0))
    let document = XMLDocument(rootElement: suites)
    (document.version, document.characterEncoding) = ("1.0", "UTF-8")
    return document.xmlData(options: [.nodePrettyPrint])
  }

  private func suite(
    _ id: Int, _ name: String, _ cases: [Case], _ notes: [String], seconds: Double
  ) -> XMLElement {
    let suite = XMLElement(name: "testsuite")
    let count = { (kind: Case.Outcome.Kind) in String(cases.count { $0.outcome?.kind == kind }) }
    suite.set([
      ("name", name), ("package", "drydock"), ("id", String(id)), ("tests", String(cases.count)),
      ("failures", count(.failure)), ("errors", count(.error)), ("skipped", count(.skipped)),
      ("time", Self.seconds(seconds)), ("hostname", "localhost"),
      // Ant's schema has no place for a time zone: it is UTC.
      ("timestamp", String(time.ISO8601Format().prefix(19))),
    ])
    suite.addChild(XMLElement(name: "properties"))
    for item in cases { suite.addChild(element(item, of: name)) }
    suite.addChild(XMLElement(name: "system-out", stringValue: notes.joined(separator: "\n").inXML))
    suite.addChild(XMLElement(name: "system-err"))
    return suite
  }

  private func element(_ item: Case, of suite: String) -> XMLElement {
    let element = XMLElement(name: "testcase")
    element.set([("name", item.name), ("classname", suite), ("time", Self.seconds(item.seconds))])
    guard let outcome = item.outcome else { return element }
    let lines = outcome.findings.flatMap { FindingText($0, from: root).lines } + outcome.remarks
    let first = outcome.findings.first.map { FindingText($0, from: root).headline }
    let child = XMLElement(name: outcome.kind.rawValue, stringValue: lines.joined(separator: "\n").inXML)
    child.set([
      ("message", outcome.message ?? first ?? ""),
      ("type", outcome.findings.first?.check.rawValue ?? outcome.type),
    ])
    element.addChild(child)
    return element
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
    let isAllowed = { (scalar: Unicode.Scalar) in
      switch scalar.value {
      case 0x9, 0xA, 0xD, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...: true
      default: false
      }
    }
    guard !unicodeScalars.allSatisfy(isAllowed) else { return self }
    return unicodeScalars.map { isAllowed($0) ? String($0) : "\\u{\(String($0.value, radix: 16))}" }.joined()
  }
}

extension JUnitReport {
  /// A test case: a fixture, or a check over all of them.
  struct Case {
    /// What a case has in it that did not simply pass.
    struct Outcome {
      enum Kind: String {
        case failure, error, skipped
      }

      var kind: Kind
      /// In place of the first finding's headline.
      var message: String? = nil
      /// The `type` where there are no findings.
      var type = ""
      var findings: [FixtureFinding] = []
      /// Lines behind the findings.
      var remarks: [String] = []
    }

    var name: String
    var seconds = 0.0
    var outcome: Outcome?
  }
}

extension JUnitReport.Case {
  init(_ fixture: FixtureResult) {
    // A name is one line there, with single blanks.
    name = fixture.name.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    seconds = fixture.seconds
    let remarks = fixture.kept.map { ["the containers are kept in \($0)"] } ?? []
    switch fixture.state {
    case .passed: outcome = nil
    case .notRun:
      outcome = Outcome(
        kind: .skipped, message: "not run: another fixture failed before", type: fixture.state.rawValue)
    case .knownFailure:
      outcome = Outcome(
        kind: .skipped, message: "known failure: \(fixture.knownFailure ?? "")", findings: fixture.findings,
        remarks: remarks)
    case .failed:
      let kind: Outcome.Kind = fixture.findings.first?.check == .build ? .error : .failure
      outcome = Outcome(kind: kind, findings: fixture.findings, remarks: remarks)
    }
  }

  /// The checks over all fixtures; those that could not be made are skipped.
  static func overAll(_ result: SuiteResult) -> [JUnitReport.Case] {
    var names: [(FixtureFinding.Check, String)] = [
      (.coverage, "every step has an effect on some fixture"), (.release, "every release has its fixtures"),
      (.fresh, "migrated containers are like fresh ones"),
    ]
    for finding in result.findings where !names.contains(where: { $0.0 == finding.check }) {
      names.append((finding.check, finding.check.rawValue))
    }
    return names.map { check, name in
      let findings = result.findings.filter { $0.check == check }
      if !findings.isEmpty { return Self(name: name, outcome: Outcome(kind: .failure, findings: findings)) }
      if result.notes.isEmpty { return Self(name: name, outcome: nil) }
      return Self(
        name: name,
        outcome: Outcome(kind: .skipped, message: result.notes.joined(separator: "; "), type: "not-run"))
    }
  }
}
