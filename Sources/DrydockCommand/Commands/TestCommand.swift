import ArgumentParser
import Drydock
import FixtureTesting
import Foundation

struct TestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Check the migrations on fixtures: containers of old versions, as text.",
    discussion: """
      Each fixture is built, migrated to the latest version and compared with its
      goldens and expectations; migrated again, which must change nothing; taken
      back by the down steps, and rolled back. No table may lose rows unannounced.
      Over all fixtures every step must have an effect, every release must have
      its fixtures, and migrated containers must be like fresh ones.

      A failure names the place, what was expected and found, and the first
      migration after which it differs. The exit code is 1 then, and 4 when
      fixtures or migrations cannot be understood. In GitHub Actions failures are
      shown at the lines of the files that say what is expected, too.

      --record writes the goldens of the latest version, shows what they say
      differently, and then checks; where CI is set it refuses.

      Examples:
        drydock test -m Migrations --fixtures Fixtures
        drydock test v1 v2 -m Migrations --keep Failed
        drydock test -m Migrations --junit report.xml --jobs 4
        drydock test 'Fixtures/v1' -m Migrations --record
        drydock test -m Migrations --filter 'v*'
      """)

  @OptionGroup var fixtures: FixtureOptions
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "Write the goldens of the latest version before, and show the difference.") var record = false
  @Option(help: ArgumentHelp("Save the containers of failures here.", valueName: "directory")) var keep:
    String?
  @Option(help: ArgumentHelp("Write the result as JUnit XML, too.", valueName: "file")) var junit: String?
  @Option(
    help: ArgumentHelp(
      "Check so many fixtures at the same time; by default as many as there are processors.",
      valueName: "number")) var jobs: Int?
  @Flag(help: "End with the first fixture that fails.") var failFast = false
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var passed: Bool
    var recorded: [RecordedGolden]?
    var fixtures: [FixtureResult]
    var findings: [FixtureFinding]
    var notes: [String]
    var seconds: Double

    init(_ result: SuiteResult, recorded: [RecordedGolden]?) {
      (passed, self.recorded, seconds) = (result.passed, recorded, result.seconds)
      (fixtures, findings, notes) = (result.fixtures, result.findings, result.notes)
    }
  }

  func validate() throws {
    if let jobs, jobs < 1 { throw ValidationError("--jobs \(jobs) would do nothing; give 1 or more") }
  }

  func run() throws {
    if record, let refusal = GoldenRecorder.refusal(in: ProcessInfo.processInfo.environment) {
      throw UsageError(message: refusal)
    }
    try refuseFile(keep)
    let configuration = try common.configuration()
    let found = try migrations.validation(configuration)
    if let first = found.problems.first {
      found.tell(found.problems.dropFirst())
      throw first
    }
    let reports = try PipelineReports(junit: junit)
    let options = options()
    var suite = try fixtures.suite(found.catalog, configuration, options)
    var recordings: [FixtureSuite.Recording]?
    if record {
      recordings = try suite.record { RecordingText.tell($0, isShown: !common.json) }
      if !common.json { RecordingText.end(recordings ?? []) }
      // With the goldens that there are now.
      suite = try fixtures.suite(found.catalog, configuration, options)
    }
    let text = SuiteText(suite, isShown: !common.json)
    let result = try suite.run { text.add($0) }
    try reports.write(result)
    if common.json {
      Output.json(Result(result, recorded: recordings?.flatMap(\.goldens)))
    } else {
      text.end(result)
    }
    let isRecorded = recordings?.allSatisfy { $0.problem == nil } != false
    if !result.passed || !isRecorded { throw ExitStatus.failed.code }
  }

  /// Before minutes of checks, not after.
  private func refuseFile(_ directory: String?) throws {
    var isDirectory: ObjCBool = false
    guard let directory, FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory),
      !isDirectory.boolValue
    else { return }
    throw UsageError(
      message: "--keep \(directory) is a file: give a directory, which is made when it is not there")
  }

  private func options() -> SuiteOptions {
    var options = SuiteOptions()
    options.filter = fixtures.filter
    options.jobs = jobs ?? ProcessInfo.processInfo.activeProcessorCount
    (options.failsFast, options.keep) = (failFast, keep)
    return options
  }
}
