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
      """, valueName: "container"), completion: .file())
  var path: String?

  @Option(
    help: ArgumentHelp(
      "Instead of one container: all containers in this directory.", valueName: "directory"),
    completion: .directory)
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
  /// - Parameters:
  ///   - progress: counts the containers.
  ///   - work: runs on several threads.
  /// - Returns: the summary, to be printed by ``finish(_:)``.
  func run(
    _ progress: WorkProgress? = nil, _ work: @escaping @Sendable (Container) throws -> BatchResult
  ) -> BatchSummary {
    let count = directory.containers.count
    var number = 1
    progress?.begin(item: number, of: count)
    var rows = BatchRows(names: directory.containers.map(\.name), asJSON: asJSON)
    OrderedWork.run(directory.containers, jobs: jobs) { [configuration] child in
      var notes: [Notice] = []
      do {
        let container = try Container(at: child.path, configuration: configuration)
        notes = try ContainerOptions.recovering(container)
        var result = try work(container)
        result.notes = notes + result.notes
        return result
      } catch {
        return BatchResult(child, Failure(error), notes)
      }
    } deliver: { child, result in
      rows.add(child, result)
      number = min(number + 1, count)
      progress?.begin(item: number, of: count)
    }
    rows.end()
    rows.summary.passedOver = directory.skipped
    return rows.summary
  }

  /// Prints the summary, and throws the exit code where it is not 0.
  func finish(_ summary: BatchSummary) throws {
    if asJSON {
      Output.line(encoded: Output.encodedLine(summary))
    } else {
      let counts = BatchResult.State.allCases.map { (summary.count($0), $0.rawValue) }.filter { $0.0 > 0 }
      Output.line(
        "\(Output.count(directory.containers.count, "container")): "
          + counts.map { "\($0) \($1)" }.joined(separator: ", "))
    }
    if !summary.passedOver.isEmpty {
      let shown = summary.passedOver.prefix(5).map(\.printable)
      let more = summary.passedOver.count > 5 ? " and \(summary.passedOver.count - 5) more" : ""
      Output.note(
        "skipped, because nothing shows that these are containers: "
          + "\(shown.joined(separator: ", "))\(more)")
    }
    if summary.exitCode != 0 { throw ExitCode(summary.exitCode) }
  }
}

/// What a command did to one container of a batch.
struct BatchResult: Sendable {
  enum State: String, Encodable, CaseIterable, Sendable {
    case changed
    case pending
    /// There was nothing to do.
    case unchanged
    /// It is unchanged, for the reported reason.
    case failed
  }

  var state: State
  /// What was done, in a few words.
  var text: String
  /// What the command prints for one container with `--json`; nil for one that is past what was asked for.
  var document: JSONObject?
  /// What the command would exit with for this container; nil for 0.
  var exit: ExitStatus?
  /// Lines for standard error.
  var notes: [Notice] = []
  /// Processes that may have had the container open without being seen.
  var unseen: UnseenProcesses?
  var failure: Failure?
}

extension BatchResult {
  init<Value>(_ outcomes: [TransactionOutcome<Value>], _ text: String, _ document: JSONObject) {
    self.init(
      state: outcomes.allSatisfy { $0.transaction == nil } ? .unchanged : .changed, text: text,
      document: document, exit: outcomes.lazy.compactMap(\.exit).first,
      notes: outcomes.flatMap(\.notices), unseen: outcomes.lazy.compactMap(\.unseen).first)
    if let exit { self.text += ", exit \(exit.rawValue)" }
  }

  fileprivate init(_ child: ContainerDirectory.Child, _ failure: Failure, _ notes: [Notice]) {
    // The row has the container's name.
    let isAboutAll = failure.path == child.path || failure.path == realPath(child.path)
    self.init(
      state: .failed,
      text: "exit \(failure.status.rawValue): \(isAboutAll ? failure.message : failure.text)",
      exit: failure.status, notes: notes, failure: failure)
  }

  /// What would change, counted.
  static func text(_ difference: ContainerDifference) -> String {
    let counts = [
      (difference.settings.count, "setting"), (difference.vault.count, "vault"),
      (difference.databases.count, "database"), (difference.files.count, "file"),
    ]
    return counts.filter { $0.0 > 0 }.map { Output.count($0.0, $0.1) }.joined(separator: ", ")
  }

  static func text(from: Int, to: Int) -> String { from == to ? "version \(to)" : "version \(from) → \(to)" }
}

extension BatchResult {
  /// The line of the report with `--json`.
  fileprivate func line(_ child: ContainerDirectory.Child) -> JSONObject {
    [
      "container": child.name, "path": child.path, "state": state, "exit_code": exit?.rawValue ?? 0,
      "notes": notes.map(\.text), "result": document, "error": failure.map { $0.detail(status: $0.status) },
    ]
  }
}

/// The last line of the report with `--json`.
struct BatchSummary: Encodable {
  /// The number of containers, in all and by state.
  private var summary = ["containers": 0].merging(
    BatchResult.State.allCases.map { ($0.rawValue, 0) }, uniquingKeysWith: +)
  var exitCode: Int32 = 0
  var passedOver: [String] = []
  /// As for one container, over all of them.
  var exposed: [ExposedSecret] = [], notSearched: [String] = []

  func count(_ state: BatchResult.State) -> Int { summary[state.rawValue, default: 0] }

  mutating func add(_ state: BatchResult.State) {
    summary["containers", default: 0] += 1
    summary[state.rawValue, default: 0] += 1
  }

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
private struct BatchRows {
  var summary = BatchSummary()
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
    nameWidth = names.map(\.printable.count).max() ?? 0
  }

  mutating func add(_ child: ContainerDirectory.Child, _ result: BatchResult) {
    summary.add(result.state)
    let code = result.exit?.rawValue ?? 0
    if !codes.contains(code) { codes.append(code) }
    summary.exitCode = BatchSummary.exitCode(of: codes)
    for note in result.notes { report(note, of: child) }
    if let unseen = result.unseen, !hasReportedUnseen {
      Output.note("\(unseen.note)")
      hasReportedUnseen = true
    }
    if asJSON {
      Output.line(encoded: Output.encodedLine(result.line(child)))
      if let failure = result.failure { Output.error("\(failure.text)") }
    } else {
      let cells = [
        Self.padded(child.name.printable, nameWidth), Self.padded(result.state.rawValue, Self.stateWidth),
        result.text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
          .joined(separator: "; "),
      ]
      Output.line("  " + cells.joined(separator: "  "))
    }
  }

  /// A note that every container has is printed only for the first ones.
  private mutating func report(_ notice: Notice, of child: ContainerDirectory.Child) {
    let kind = notice.text.replacing(realPath(child.path) ?? child.path, with: "")
    counts[kind, default: 0] += 1
    if counts[kind, default: 0] <= Self.notesShown {
      Output.write(Notice(notice.role, "\(notice.text) (\(child.name.printable))"))
    }
  }

  /// Reports how many notes were not shown.
  func end() {
    let more = counts.values.reduce(0) { $0 + max(0, $1 - Self.notesShown) }
    if more > 0 {
      Output.note("and \(more) more notes like these; --json lists them for each container")
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
