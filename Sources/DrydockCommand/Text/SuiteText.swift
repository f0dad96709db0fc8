import Drydock
import DrydockTesting
import Foundation
import Reports

/// The result of a suite for people: a row for each fixture as soon as it is done, and what is wrong, by cause.
struct SuiteText {
  private let width: Int
  private let isShown: Bool
  private let directory = FileManager.default.currentDirectoryPath

  /// - Parameter isShown: whether anything is printed at all.
  init(_ suite: FixtureSuite, isShown: Bool) {
    width = suite.fixtures.map(\.name.printable.count).max() ?? 0
    self.isShown = isShown
  }

  func add(_ result: FixtureResult) { if isShown { write(result) } }

  /// All are done: what is wrong, by cause, and the verdict.
  ///
  /// - Parameters:
  ///   - showsAll: whether all findings are listed, not only examples.
  ///   - isRecorded: whether all goldens could be recorded that were to be.
  func end(_ result: FixtureSuite.Report, showsAll: Bool, isRecorded: Bool) {
    let groups = result.groups
    write(groups.filter { !$0.isKnown }, showsAll: showsAll)
    if groups.contains(where: \.isKnown) {
      Output.line()
      Output.line("known failures")
      write(groups.filter(\.isKnown), showsAll: showsAll)
    }
    if !groups.isEmpty { Output.line() }
    for note in result.allNotes { Output.line("note: \(Advice.added(to: note))".printable) }
    let verdict = isRecorded || !result.passed ? "" : "; goldens could not be recorded: FAILED"
    let role: TextRole = result.passed && isRecorded ? .passed : .failed
    Output.line("\(result.conclusion)\(verdict) (\(NumberText.seconds(result.seconds)))", role)
  }

  private func write(_ fixture: FixtureResult) {
    let name = fixture.name.printable.padding(toLength: width, withPad: " ", startingAt: 0)
    let time = NumberText.seconds(fixture.seconds)
    let versions = "version \(fixture.from) → \(fixture.to) (\(time))"
    switch fixture.state {
    case .passed: Output.line("  \(name)  passed         \(versions)", .passed)
    case .failed: Output.line("  \(name)  failed         \(versions): \(fixture.summary.printable)", .failed)
    case .knownFailure:
      Output.line(
        "  \(name)  known failure  \(versions): \((fixture.knownFailure ?? "").printable)", .changed)
    case .notRun: Output.line("  \(name)  not run")
    }
    if let kept = fixture.kept { Output.line("      kept in \(kept)") }
  }

  private func write(_ groups: [FindingGroup], showsAll: Bool) {
    for group in groups {
      let lines = GroupText(group, from: directory).linesWithRest(
        examples: showsAll ? Int.max : GroupText.examples, hint: showsAll ? "" : " (--details lists them)")
      Output.line()
      for line in lines { Output.line(Advice.added(to: line)) }
    }
  }
}
