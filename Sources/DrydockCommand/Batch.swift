import ArgumentParser
import Drydock
import Foundation

/// The options of commands that work on one container, or on all of a directory.
struct ContainersOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      """
      The container: the directory with one app's data, or an .xcappdata bundle; to read it, also a .zip, .tar, .tar.gz \
      or .tar.zst of one.
      """, valueName: "container"))
  var path: String?

  @Option(
    help: ArgumentHelp(
      "Instead of one container: all containers in this directory, one by one.", valueName: "directory"))
  var all: String?

  @Option(
    help: ArgumentHelp(
      "With --all: the number of containers to work on in parallel; by default the number of processors, with `groups:` one.",
      valueName: "number"))
  var jobs: Int?

  @Option(
    name: .customLong("container"),
    help: ArgumentHelp(
      "Name of this instance; by default its container ID, or the directory's name.", valueName: "name"))
  var instance: String?

  @OptionGroup var wait: WaitOptions

  func validate() throws {
    switch (path, all) {
    case (nil, nil): throw ValidationError("give a container, or --all with a directory of containers")
    case (_?, _?): throw ValidationError("give one container, or --all with a directory of containers")
    case (nil, _?):
      if instance != nil { throw ValidationError("--container names one instance, and --all takes many") }
    case (_?, nil): if jobs != nil { throw ValidationError("--jobs goes with --all") }
    }
    if let jobs, jobs < 1 { throw ValidationError("--jobs \(jobs) would do nothing; give 1 or more") }
  }

  /// The one container that was given.
  var one: ContainerOptions {
    var options = ContainerOptions()
    (options.path, options.instance, options.wait) = (path ?? "", instance, wait)
    return options
  }

  /// The batch of containers that was asked for instead.
  func batch(_ configuration: ContainerConfiguration, asJSON: Bool) throws -> Batch? {
    guard let all else { return nil }
    // Containers beside each other share their groups, and who changes one locks them.
    let most = configuration.groups.isEmpty ? ProcessInfo.processInfo.activeProcessorCount : 1
    return Batch(
      directory: try ContainerDirectory(all, configuration: configuration), configuration: configuration,
      jobs: jobs ?? most, asJSON: asJSON)
  }

  /// As for one container.
  func open(_ configuration: ContainerConfiguration) throws -> Container { try one.open(configuration) }

  /// As for one container.
  func reading<T>(
    _ configuration: ContainerConfiguration, _ expansion: ExpansionOptions, _ body: (Container) throws -> T
  ) throws -> T { try one.reading(configuration, expansion, body) }

  /// How transactions are run.
  func transaction() throws -> TransactionOptions { try wait.transaction() }
}

/// Runs a command on every container of a directory, and goes on when one fails. Prints a row or a JSON line for each, in
/// the order of their names, and a summary.
struct Batch {
  let directory: ContainerDirectory
  let configuration: ContainerConfiguration
  let jobs: Int
  let asJSON: Bool

  /// Does the work on each container, and prints each result.
  ///
  /// - Parameter work: runs on several threads.
  /// - Returns: the summary, to be printed by ``finish(_:)``.
  func run(_ work: @escaping @Sendable (Container) throws -> BatchResult) -> BatchSummary {
    let (configuration, asJSON) = (configuration, asJSON)
    var rows = BatchReport(names: directory.containers.map(\.name), asJSON: asJSON)
    OrderedWork.run(directory.containers, jobs: jobs) { child in
      Done(child, asJSON: asJSON) { notes in
        let container = try Container(at: child.path, configuration: configuration)
        notes += try ContainerOptions.recovering(container)
        return try work(container)
      }
    } deliver: { child, done in
      rows.report(child, done)
    }
    rows.end()
    var summary = rows.summary
    summary.passedOver = directory.skipped
    return summary
  }

  /// Prints the summary, and throws the exit code where it is not 0.
  func finish(_ summary: BatchSummary) throws {
    if asJSON {
      Output.line(encoded: Output.encodedLine(summary))
    } else {
      let counts = BatchResult.State.allCases.filter { summary.summary[$0] > 0 }.map {
        "\(summary.summary[$0]) \($0.rawValue)"
      }
      Output.line(
        "\(Output.count(summary.summary.containers, "container")): \(counts.joined(separator: ", "))")
    }
    if !summary.passedOver.isEmpty {
      let shown = summary.passedOver.prefix(5).map(BatchReport.shown)
      let more = summary.passedOver.count > 5 ? " and \(summary.passedOver.count - 5) more" : ""
      Output.note(
        "drydock: note: skipped, because nothing shows that these are containers: "
          + "\(shown.joined(separator: ", "))\(more)")
    }
    if summary.exitCode != 0 { throw ExitCode(summary.exitCode) }
  }

  /// The result of one container until it is printed in its turn: only text.
  struct Done: Sendable {
    var state = BatchResult.State.failed
    var exitCode: Int32 = 0
    /// The row's text, or the line of JSON.
    var text = ""
    /// What went wrong: for the row, which has the container's name, and by itself.
    var reason = "", error: String?
    var notes: [String] = []
    var unseen: UnseenProcesses?

    fileprivate init(
      _ child: ContainerDirectory.Child, asJSON: Bool, _ work: (inout [String]) throws -> BatchResult
    ) {
      var line: BatchLine
      do {
        let result = try work(&notes)
        (state, text, exitCode) = (result.state, result.text, result.exit?.rawValue ?? 0)
        notes += result.notes
        unseen = result.unseen
        line = BatchLine(
          container: child.name, path: child.path, state: state, exitCode: exitCode, notes: notes)
        line.result = result.document.map { .init(value: $0) }
      } catch {
        let failure = Failure(error) ?? Failure(unforeseen: error)
        (exitCode, self.error) = (failure.status.rawValue, failure.text)
        let isAboutAll = failure.path == child.path || failure.path == realPath(child.path)
        reason = "exit \(exitCode): \(isAboutAll ? failure.message : failure.text)"
        line = BatchLine(
          container: child.name, path: child.path, state: state, exitCode: exitCode, notes: notes)
        line.error = failure.detail(status: failure.status)
      }
      if asJSON { text = Output.encodedLine(line) }
    }
  }
}

/// What a command did to one container of a batch.
struct BatchResult: Sendable {
  /// The container's state, for the summary.
  enum State: String, Encodable, CaseIterable {
    /// The command changed it.
    case changed
    /// The command would change it.
    case pending
    /// There was nothing to do.
    case unchanged
    /// It is unchanged, for the reported reason.
    case failed
  }

  /// See ``State``.
  var state: State
  /// What was done, in a few words.
  var text: String
  /// What the command prints for one container with `--json`; nil for one that is past what was asked for.
  var document: (any Encodable & Sendable)?
  /// What the command would exit with for this container; nil for 0.
  var exit: ExitStatus?
  /// Notes, for standard error.
  var notes: [String] = []
  /// Processes that may have had the container open without being seen.
  var unseen: UnseenProcesses?
}

/// One line of the report with `--json`.
struct BatchLine: Encodable {
  /// The container's name in the directory, and its path.
  var container: String, path: String
  /// See ``BatchResult/State``.
  var state: BatchResult.State
  /// What the command would exit with for this container.
  var exitCode: Int32
  /// Notes, which also go to standard error.
  var notes: [String]
  /// What the command prints for one container.
  var result: Document?
  /// Why it failed.
  var error: Failure.Detail?

  /// A document of any command.
  struct Document: Encodable {
    let value: any Encodable & Sendable
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
  }
}

/// The last line of the report with `--json`.
struct BatchSummary: Encodable {
  struct Counts: Encodable {
    var containers = 0, changed = 0, pending = 0, unchanged = 0, failed = 0

    subscript(_ state: BatchResult.State) -> Int {
      get {
        switch state {
        case .changed: changed
        case .pending: pending
        case .unchanged: unchanged
        case .failed: failed
        }
      }
      set {
        switch state {
        case .changed: changed = newValue
        case .pending: pending = newValue
        case .unchanged: unchanged = newValue
        case .failed: failed = newValue
        }
      }
    }
  }

  var summary = Counts()
  /// What the program exits with.
  var exitCode: Int32 = 0
  /// What else is in the directory.
  var passedOver: [String] = []
  /// As for one container, over all of them.
  var exposed: [ExposedSecret] = [], notSearched: [String] = []

  /// The exit code of a batch: the one that all share; `pending` when the others succeeded; that of the first when all
  /// failed; else `incomplete`.
  static func exitCode(of codes: [Int32]) -> Int32 {
    let (kinds, good) = (Set(codes), Set([0, ExitStatus.pending.rawValue]))
    if kinds.count > 1, kinds.isSubset(of: good) { return ExitStatus.pending.rawValue }
    if kinds.count <= 1 || kinds.isDisjoint(with: good) { return codes.first ?? 0 }
    return ExitStatus.incomplete.rawValue
  }
}

/// Prints the results of a batch as they come, and counts them.
struct BatchReport {
  private(set) var summary = BatchSummary()
  private let nameWidth: Int
  /// The exit codes that there were, in the order of their first container.
  private var codes: [Int32] = []
  /// How often each note came, without the container's path in it.
  private var counts: [String: Int] = [:]
  private static let stateWidth = BatchResult.State.allCases.map(\.rawValue.count).max() ?? 0
  private static let notesShown = 3
  /// Whether unseen processes were reported, which are the same for all containers.
  private var hasReportedUnseen = false

  private let asJSON: Bool

  init(names: [String], asJSON: Bool) {
    self.asJSON = asJSON
    nameWidth = names.map { Self.shown($0).count }.max() ?? 0
  }

  /// A name for people, on one line.
  static func shown(_ name: String) -> String { ContainerPath.printable(Array(name.utf8)) }

  mutating func report(_ child: ContainerDirectory.Child, _ done: Batch.Done) {
    summary.summary.containers += 1
    summary.summary[done.state] += 1
    if !codes.contains(done.exitCode) { codes.append(done.exitCode) }
    summary.exitCode = BatchSummary.exitCode(of: codes)
    for note in done.notes { report(note, of: child) }
    if let unseen = done.unseen, !hasReportedUnseen {
      Output.note("drydock: note: \(unseen.note)")
      hasReportedUnseen = true
    }
    if asJSON {
      Output.line(encoded: done.text)
      if let error = done.error { Output.note("drydock: error: \(error)") }
    } else {
      let cells = [
        Self.padded(Self.shown(child.name), nameWidth), Self.padded(done.state.rawValue, Self.stateWidth),
        (done.error == nil ? done.text : done.reason).split(separator: "\n")
          .map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "; "),
      ]
      Output.line("  " + cells.joined(separator: "  "))
    }
  }

  /// A note that every container has is printed only for the first ones.
  private mutating func report(_ note: String, of child: ContainerDirectory.Child) {
    let kind = note.replacing(realPath(child.path) ?? child.path, with: "")
    counts[kind, default: 0] += 1
    if counts[kind, default: 0] <= Self.notesShown { Output.note("\(note) (\(Self.shown(child.name)))") }
  }

  /// Reports how many notes were not shown.
  func end() {
    let more = counts.values.reduce(0) { $0 + max(0, $1 - Self.notesShown) }
    if more > 0 {
      Output.note("drydock: note: and \(more) more notes like these; --json lists them for each container")
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
