import Drydock
import FixtureTesting
import Foundation

/// The result of a suite for people: a row for each fixture as soon as it is done, and what is wrong over all.
struct SuiteText {
  private let width: Int
  private let isShown: Bool
  private let directory = FileManager.default.currentDirectoryPath

  /// - Parameter isShown: whether anything is printed at all.
  init(_ suite: FixtureSuite, isShown: Bool) {
    width = suite.fixtures.map(\.name.printable.count).max() ?? 0
    self.isShown = isShown
  }

  /// A fixture is done.
  func add(_ result: FixtureResult) { if isShown { write(result) } }

  /// All are done: what is wrong over all fixtures, and the counts.
  func end(_ result: SuiteResult) {
    if !result.findings.isEmpty {
      Output.line("all fixtures together")
      write(result.findings, indent: "  ")
    }
    writeNotes(result)
    Output.line("\(result.counts) (\(Self.seconds(result.seconds)))")
  }

  private func write(_ fixture: FixtureResult) {
    let name = fixture.name.printable.padding(toLength: width, withPad: " ", startingAt: 0)
    let time = Self.seconds(fixture.seconds)
    let versions = "version \(fixture.from) → \(fixture.to) (\(time))"
    switch fixture.state {
    case .passed: Output.line("  \(name)  passed         \(versions)")
    case .failed: Output.line("  \(name)  failed         \(versions): \(fixture.summary.printable)")
    case .knownFailure:
      Output.line("  \(name)  known failure  \(versions): \((fixture.knownFailure ?? "").printable)")
    case .notRun: Output.line("  \(name)  not run")
    }
    write(fixture.findings, indent: "      ")
    if let kept = fixture.kept { Output.line("      kept in \(kept)") }
  }

  private func write(_ findings: [FixtureFinding], indent: String) {
    for finding in findings {
      for line in FindingText(finding, from: directory).lines { Output.line(indent + line) }
    }
  }

  /// Each once, with the fixtures that it is about: most are about the migrations, and the same for many.
  private func writeNotes(_ result: SuiteResult) {
    for note in result.notes { Output.line("note: \(note.printable)") }
    var texts: [String] = []
    var names: [String: [String]] = [:]
    for fixture in result.fixtures {
      for note in fixture.notes {
        if names[note] == nil { texts.append(note) }
        names[note, default: []].append(fixture.name)
      }
    }
    for text in texts {
      let about = names[text] ?? []
      let shown = about.prefix(3).joined(separator: ", ")
      let more = about.count > 3 ? " and \(about.count - 3) more" : ""
      Output.line("note: \(shown)\(more): \(text)".printable)
    }
  }

  private static func seconds(_ seconds: Double) -> String { String(format: "%.2f s", seconds) }
}
