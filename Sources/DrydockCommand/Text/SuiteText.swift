import Drydock
import DrydockTesting
import Foundation
import Reports

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

  func add(_ result: FixtureResult) { if isShown { write(result) } }

  /// All are done: what is wrong over all fixtures, and the counts.
  func end(_ result: FixtureSuite.Report) {
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

  private func write(_ findings: [FixtureResult.Finding], indent: String) {
    for finding in findings {
      for line in FindingText(finding, from: directory).lines { Output.line(indent + Advice.added(to: line)) }
    }
  }

  /// Each once, with the fixtures that it is about: most are about the migrations, and the same for many.
  private func writeNotes(_ result: FixtureSuite.Report) {
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
      Output.line("note: \(shown)\(more): \(Advice.added(to: text))".printable)
    }
  }

  private static func seconds(_ seconds: Double) -> String { String(format: "%.2f s", seconds) }
}

/// What became of goldens, for people.
enum RecordingText {
  /// The goldens of one fixture that are other ones now, each with what it says differently; a problem goes to standard
  /// error in any case.
  static func report(
    _ fixture: Fixture, _ result: Result<[FixtureSuite.Golden], any Error>, isShown: Bool
  ) {
    if case .failure(let problem) = result {
      let failure = Failure(problem)
      Output.error("fixture \(fixture.name): nothing recorded: \(failure.text)".printable)
    }
    guard isShown, let goldens = try? result.get() else { return }
    for golden in goldens where golden.change != .unchanged {
      Output.line(
        "\(golden.change.rawValue) \(FindingText.path(golden.directory, from: directory))".printable)
      if let difference = golden.difference { DifferenceText().write(difference) }
    }
  }

  /// How many became what.
  static func end(_ goldens: [FixtureSuite.Golden]) {
    let counts = [FixtureSuite.Golden.Change.written, .updated, .removed, .unchanged].compactMap { change in
      let number = goldens.count { $0.change == change }
      return number == 0 ? nil : "\(number) \(change.rawValue)"
    }
    let words = counts.isEmpty ? "" : ": " + counts.joined(separator: ", ")
    Output.line(Output.count(goldens.count, "golden") + words)
  }

  private static var directory: String { FileManager.default.currentDirectoryPath }
}

/// What a build server gets of a result: a JUnit file, and in GitHub Actions annotations and a summary.
struct PipelineReports {
  private let junit: String?
  private let variables: [String: String]
  private let directory = FileManager.default.currentDirectoryPath

  /// - Parameter junit: the file that takes the report; its directory is made.
  /// - Throws: when it cannot be: before minutes of checks, not after.
  init(junit: String?, variables: [String: String] = ProcessInfo.processInfo.environment) throws {
    (self.junit, self.variables) = (junit, variables)
    guard let junit else { return }
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: junit, isDirectory: &isDirectory), isDirectory.boolValue {
      throw UsageError(message: "--junit \(junit) is a directory: give a file")
    }
    let folder = (junit as NSString).deletingLastPathComponent
    guard !folder.isEmpty else { return }
    try Self.writing(junit) {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
  }

  func write(_ result: FixtureSuite.Report) throws {
    if let junit {
      let xml = JUnitReport(result, from: directory).xml
      try Self.writing(junit) { try xml.write(to: URL(fileURLWithPath: junit), options: .atomic) }
    }
    guard variables["GITHUB_ACTIONS"] == "true" else { return }
    let workspace = variables["GITHUB_WORKSPACE"].flatMap { $0.isEmpty ? nil : $0 } ?? directory
    // The runner reads both streams; standard output may be a file of JSON.
    for line in GitHubAnnotations(result, workspace: workspace, directory: directory).lines {
      Output.message(line)
    }
    if let file = variables["GITHUB_STEP_SUMMARY"], !file.isEmpty { summarize(result, into: file) }
  }

  /// The summary is an extra: the test does not fail when it cannot be written.
  private func summarize(_ result: FixtureSuite.Report, into file: String) {
    do {
      if !FileManager.default.fileExists(atPath: file) { try Data().write(to: URL(fileURLWithPath: file)) }
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(MarkdownSummary(result, from: directory).text.utf8))
    } catch {
      Output.note("the summary for GitHub cannot be written: \(error.localizedDescription)")
    }
  }

  private static func writing(_ file: String, _ body: () throws -> Void) throws {
    do { try body() } catch {
      throw DrydockError(
        .io, "the report cannot be written: \(error.localizedDescription)", path: file, cause: error)
    }
  }
}
