import ArgumentParser
import Drydock
import DrydockTesting
import Foundation
import Reports

struct TestCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Test the migrations on fixtures: containers of old versions.",
    discussion: """
      Each fixture is built, migrated, compared with its goldens and expectations, \
      migrated again, reverted by down steps, and rolled back. No data may be lost \
      unannounced; every step must have an effect in a fixture. A failure names the \
      place, what was expected and found, and the migration; the exit code is 1, or 4 \
      when fixtures or migrations are invalid.

      Examples:
        drydock test -m Migrations --fixtures Fixtures
        drydock test --record
        drydock test v1 v2 --save-failures Failed
        drydock test --junit report.xml --html report.html --jobs 4
      """)

  @OptionGroup var fixtures: FixtureOptions
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "Write the goldens of the latest version first, and show the difference.") var record = false
  @Option("Save the containers of failures here.", value: "directory") var saveFailures: String?
  @OptionGroup(title: OptionTitle.reports) var documents: ReportOptions
  @Flag(help: "List all findings of each cause, not only examples.") var details = false
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @Option("The number of fixtures to check in parallel (default: the number of processors).", value: "number")
  var jobs: Int?
  @Flag(help: "Stop at the first fixture that fails.") var failFast = false
  @OptionGroup(title: OptionTitle.batch) var job: JobOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func validate() throws {
    if let jobs, jobs < 1 { throw ValidationError("--jobs \(jobs) would do nothing; give 1 or more") }
    if record, let option = job.given {
      throw ValidationError("--record records all fixtures: leave \(option) out")
    }
  }

  func run() throws {
    try page.reporting("Migration tests", "The tests were not run") { try test() }
  }

  private func test() throws {
    if record, let refusal = GoldenRecorder.refusal(in: ProcessInfo.processInfo.environment) {
      throw UsageError(refusal)
    }
    try refuseFile(saveFailures)
    let configuration = try common.configuration()
    let found = try migrations.validation(configuration)
    let reports = try PipelineReports(documents.log, documents)
    if !found.problems.isEmpty { try reports.write(found) }
    try found.throwUnlessClean(asJSON: common.json)
    let job = try job.job("test")
    var log = try JobLog(self.job, job, of: .fixture)
    var options = options()
    options.shard = job.shard
    var suite = try fixtures.suite(found.catalog, configuration, options)
    var recorded: [FixtureSuite.Golden]?
    var isRecorded = true
    if record {
      var goldens: [FixtureSuite.Golden] = []
      // What is wrong with a fixture is reported as soon as it is known.
      let result = Swift.Result {
        try suite.record { fixture, result in
          switch result {
          case .success(let new):
            if !common.json { for golden in new { golden.write() } }
            goldens += new
          case .failure(let problem):
            let text = Failure(problem).text
            Output.error("fixture \(fixture.name): nothing recorded: \(text)".printable)
          }
        }
      }
      if case .failure = result { isRecorded = false }
      if !common.json { Output.line(Self.counts(goldens)) }
      recorded = goldens
      // With the goldens that there are now.
      suite = try fixtures.suite(found.catalog, configuration, options)
    }
    let text = SuiteText(suite, isShown: !common.json)
    let count = suite.fixtures.count
    let result = try showing.during { progress in
      progress?.begin(.test)
      var number = 1
      progress?.begin(item: number, of: count)
      return try suite.run {
        text.add($0)
        log.add($0)
        number = min(number + 1, count)
        progress?.begin(item: number, of: count)
      }
    }
    try reports.write(result)
    try page.write(
      Report(
        result, from: FileManager.default.currentDirectoryPath, examples: HTMLPage.shown,
        advised: { Advice.added(to: $0) }))
    if common.json {
      Output.json([
        "passed": result.passed, "recorded": recorded, "fixtures": result.fixtures,
        "findings": result.findings, "groups": result.groups, "notes": result.notes,
        "seconds": result.seconds,
      ])
    } else {
      text.end(result, showsAll: details, isRecorded: isRecorded)
    }
    let hasPassed = result.passed && isRecorded
    let hasWritten = log.end(hasPassed ? 0 : ExitStatus.failed.rawValue)
    if !hasPassed || !hasWritten { throw ExitStatus.failed.code }
  }

  /// How many goldens became what.
  private static func counts(_ goldens: [FixtureSuite.Golden]) -> String {
    let counts = [FixtureSuite.Golden.Change.written, .updated, .removed, .unchanged].compactMap { change in
      let number = goldens.count { $0.change == change }
      return number == 0 ? nil : "\(number) \(change.rawValue)"
    }
    let words = counts.isEmpty ? "" : ": " + counts.joined(separator: ", ")
    return NumberText.count(goldens.count, "golden") + words
  }

  /// Before minutes of checks, not after.
  private func refuseFile(_ directory: String?) throws {
    guard let directory, FollowedStatus.identity(directory) != nil, !FollowedStatus.isDirectory(directory)
    else { return }
    throw UsageError(
      "--save-failures \(directory) is a file: give a directory, which is made when it is not there")
  }

  private func options() -> FixtureSuite.Options {
    var options = FixtureSuite.Options()
    options.filter = fixtures.filter
    options.jobs = jobs ?? ProcessInfo.processInfo.activeProcessorCount
    (options.failsFast, options.keep) = (failFast, saveFailures)
    if details { options.rowLimit = .max }
    options.showsDifference = documents.markdown != nil || page.html != nil
    return options
  }
}

extension JobLog {
  /// Adds the result of a fixture.
  fileprivate mutating func add(_ fixture: FixtureResult) {
    var result = BatchResult(state: .unchanged, text: "", versions: (fixture.from, fixture.to))
    switch fixture.state {
    case .passed, .knownFailure: break
    case .notRun: (result.state, result.exit) = (.skipped, .incomplete)
    case .failed:
      let finding = fixture.findings.first
      (result.state, result.exit) = (.failed, .failed)
      result.failure = Failure(
        .failed, finding?.check.rawValue ?? "failed", finding?.message ?? "the fixture failed",
        finding?.place)
    }
    add(fixture.name, path: fixture.directory, result, seconds: fixture.seconds)
  }
}

struct FixtureOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Names of fixtures, or their directories; or one directory of fixtures (default: all).",
      valueName: "fixture"), completion: .directory) var names: [String] = []

  @Option(
    name: .customLong("fixtures"),
    "The directory of fixtures (default: `fixtures:` of drydock.yaml, or Fixtures).", value: "directory")
  var directory: String?

  @Option("Only those whose names match, such as 'v*'; repeatable.", value: "pattern")
  var filter: [String] = []

  /// The directory of fixtures.
  func directory(_ configuration: ContainerConfiguration) -> String {
    Self.directory(directory, configuration)
  }

  /// Captures a fixture, and keeps git from converting line ends where that makes the directory of fixtures.
  static func capturing<Report>(in directory: String, _ body: () throws -> Report) throws -> Report {
    let isNew = FollowedStatus.identity(directory) == nil
    let report = try body()
    if isNew {
      let text = "# Fixtures are compared byte by byte: git must not convert their line ends.\n* -text\n"
      try Directory(directory).create(".gitattributes", Array(text.utf8), mode: 0o644)
    }
    return report
  }

  /// The directory that an option names, or the default one.
  static func directory(_ option: String?, _ configuration: ContainerConfiguration) -> String {
    option ?? Environment["FIXTURES"] ?? configuration.fixtures
      ?? configuration.directory(named: "Fixtures")
  }

  func suite(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration, _ options: FixtureSuite.Options
  ) throws -> FixtureSuite {
    try CommonOptions.readingUserFile {
      if let whole = whole(configuration) {
        return try FixtureSuite(catalog, fixtures: whole, configuration: configuration, options: options)
      }
      return try FixtureSuite(
        catalog, fixtures: chosen(configuration), configuration: configuration, options: options)
    }
  }

  /// The directory of which all fixtures are meant.
  private func whole(_ configuration: ContainerConfiguration) -> String? {
    guard names.isEmpty else {
      return names.count == 1 && FollowedStatus.isDirectory(names[0]) && !isFixture(names[0])
        && find(names[0], configuration) == nil
        ? names[0] : nil
    }
    return directory(configuration)
  }

  /// Each once. Results are told by name: two of one name would be one.
  private func chosen(_ configuration: ContainerConfiguration) throws -> [Fixture] {
    var places: [String: String] = [:]
    var chosen: [Fixture] = []
    for name in names {
      guard let path = find(name, configuration) else {
        throw notFound(name, configuration)
      }
      let fixture = try Fixture.load(path)
      let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
      if let other = places.updateValue(place, forKey: fixture.name) {
        if other == place { continue }
        throw UsageError(
          "two fixtures are called \(fixture.name), \(other) and \(place): test them one after the other")
      }
      chosen.append(fixture)
    }
    return chosen
  }

  private func notFound(_ name: String, _ configuration: ContainerConfiguration) -> DrydockError {
    let known = (try? Fixture.all(in: directory(configuration)).map(\.name)) ?? []
    let near = NearestWord.to(name, among: known)
    // A wall of names would hide the mistake.
    let hint =
      near == nil && known.count > 20
      ? "there are \(known.count) others" : NearestWord.hint(for: name, among: known)
    return DrydockError(.notFound, "no fixture is named \(name); \(hint)")
  }

  /// A fixture's directory by its name in the directory of fixtures, or else by its path.
  private func find(_ name: String, _ configuration: ContainerConfiguration) -> String? {
    let places = name.contains("/") ? [] : [directory(configuration) + "/" + name]
    return (places + [name]).first(where: isFixture)
  }

  private func isFixture(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path + "/fixture.yaml")
  }
}
