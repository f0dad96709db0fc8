import ArgumentParser
import Drydock
import Foundation
import Reports
import Synchronization

/// Runs a command on many containers, and goes on when one fails. Prints a row or a JSON line for each, in the order of their
/// names, and a summary.
struct Batch {
  /// The directory of the containers, or the list of them.
  let path: String
  let containers: [ContainerDirectory.Child]
  /// Other entries of the directory.
  let skipped: [String]
  /// How many containers of the job are left for a later wave.
  let leftOut: Int
  let configuration: ContainerConfiguration
  let jobs: Int
  let log: JobLog
  /// How many may fail before no more are started; nil for any number.
  let mostFailures: Int?
  let asJSON: Bool

  var job: Job { log.job }

  /// Does work that changes nothing on each container, and prints each result, with the progress.
  func run(
    _ showing: ProgressOptions, _ phase: WorkProgress.Phase,
    _ work: @escaping @Sendable (Container) throws -> BatchResult
  ) throws -> BatchSummary {
    try showing.during { progress in
      progress?.begin(phase)
      return run(progress, work)
    }
  }

  /// Does the work on each container, and prints each result.
  ///
  /// - Parameters:
  ///   - isChange: whether the work changes containers. One that it finds unchanged may be changed by an earlier job of
  ///     the run, which could not record that.
  ///   - work: runs on several threads.
  /// - Returns: the summary, to be printed by ``finish(_:)``.
  func run(
    _ progress: WorkProgress? = nil, isChange: Bool = false,
    _ work: @escaping @Sendable (Container) throws -> BatchResult
  ) -> BatchSummary {
    let count = containers.count
    var number = 1
    progress?.begin(item: number, of: count)
    var rows = BatchRows(names: containers.map(\.name), job: job, asJSON: asJSON)
    let failures = Mutex(0)
    OrderedWork.run(containers, jobs: jobs) { [configuration, log, mostFailures, asJSON] child in
      let mayStart = mostFailures.map { most in failures.withLock { $0 <= most } } ?? true
      let start = ContinuousClock.now
      let (result, instance) =
        mayStart ? Self.result(of: child, configuration, isChange ? log.job.run : nil, work) : (.skipped, nil)
      if result.isFailure { failures.withLock { $0 += 1 } }
      guard asJSON || log.file != nil else { return (result, nil as String?) }
      let line = log.line(
        child.name, path: child.path, instance: instance, result,
        seconds: (ContinuousClock.now - start) / .seconds(1))
      return (result, asJSON ? line : nil)
    } deliver: { child, done in
      rows.add(child, done.0, line: done.1)
      number = min(number + 1, count)
      progress?.begin(item: number, of: count)
    }
    rows.end()
    (rows.summary.passedOver, rows.summary.leftOut) = (skipped, leftOut)
    rows.summary.seconds = log.seconds
    return rows.summary
  }

  /// The result, and the container's instance where it could be opened.
  ///
  /// - Parameter run: the run that the work is a part of, if it changes containers.
  private static func result(
    of child: ContainerDirectory.Child, _ configuration: ContainerConfiguration, _ run: RunID?,
    _ work: (Container) throws -> BatchResult
  ) -> (BatchResult, String?) {
    var (notes, instance): ([Notice], String?) = ([], nil)
    do {
      try child.requireUsable()
      let container = try Container(at: child.path, configuration: configuration)
      instance = container.instance
      notes = try ContainerOptions.recovering(container)
      // A recovery may have replaced the container.
      let current = try notes.isEmpty ? container : container.reopened()
      var result = try work(current)
      result.notes = notes + result.notes
      if result.state == .unchanged, let run { result.changedBefore = try current.log().last?.run == run }
      return (result, instance)
    } catch {
      return (BatchResult(child, Failure(error), notes), instance)
    }
  }

  /// Prints the summary, and throws the exit code where it is not 0.
  ///
  /// - Parameter undo: the option of `rollback` that undoes the run; nil for one that changes nothing.
  func finish(_ summary: BatchSummary, undo: String? = nil) throws {
    let line = log.line(summary)
    if asJSON {
      Output.line(encoded: line)
    } else {
      let counts = RunState.allCases.map { (summary.count($0), $0.rawValue) }.filter { $0.0 > 0 }
      let part = job.shard.map { " of shard \($0)" } ?? ""
      Output.line(
        "\(NumberText.count(containers.count, "container"))\(part)"
          + (counts.isEmpty ? "" : ": " + counts.map { "\($0) \($1)" }.joined(separator: ", ")))
      if let undo, summary.count(.changed) > 0, !Output.isQuiet {
        Output.advice("run \(job.run); `drydock rollback --all \(path) \(undo)` undoes it")
      }
    }
    if leftOut > 0 {
      Output.note(
        "\(NumberText.count(leftOut, "container")) left for later: without --first, all are worked on")
    }
    if !summary.passedOver.isEmpty {
      Output.note(
        "skipped, because nothing shows that these are containers: "
          + summary.passedOver.map(\.printable).listed(5))
    }
    let isRecorded = log.file?.report() ?? true
    if summary.exitCode != 0 { throw ExitCode(summary.exitCode) }
    if !isRecorded { throw ExitStatus.failed.code }
  }
}

/// Prints the results of a batch as they come, and counts them.
private struct BatchRows {
  var summary: BatchSummary
  private let nameWidth: Int
  /// The exit codes that there were, in the order of their first container.
  private var codes: [Int32] = []
  /// How often each note came, without the container's path in it.
  private var counts: [String: Int] = [:]
  private static let stateWidth = RunState.allCases.map(\.rawValue.count).max() ?? 0
  private static let notesShown = 3
  /// Whether unseen processes were reported, which are the same for all containers.
  private var hasReportedUnseen = false
  private let asJSON: Bool

  init(names: [String], job: Job, asJSON: Bool) {
    summary = BatchSummary(job)
    self.asJSON = asJSON
    nameWidth = names.map(\.printable.count).max() ?? 0
  }

  /// - Parameter line: the result as JSON, if that is printed.
  mutating func add(_ child: ContainerDirectory.Child, _ result: BatchResult, line: String?) {
    summary.add(result.state)
    if result.state != .skipped {
      let code = result.exit?.rawValue ?? 0
      if !codes.contains(code) { codes.append(code) }
      summary.exitCode = BatchSummary.exitCode(of: codes)
    }
    for note in result.notes { report(note, of: child) }
    if let note = result.unseen?.note, !hasReportedUnseen {
      Output.note(note)
      hasReportedUnseen = true
    }
    if let line {
      Output.line(encoded: line)
      if let failure = result.failure { Output.error("\(failure.text)") }
    } else if result.state != .skipped, !Output.isQuiet || result.exit != nil {
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

  /// Reports how many notes were not shown, and how many containers were not started.
  mutating func end() {
    let rest = counts.values.reduce(0) { $0 + max(0, $1 - Self.notesShown) }
    if let more = String.more(rest, "more notes like these; --json lists them for each container") {
      Output.note(more)
    }
    let skipped = summary.count(.skipped)
    if skipped > 0 {
      summary.exitCode = ExitStatus.incomplete.rawValue
      Output.error(
        "\(NumberText.count(skipped, "container")) not started, because more had failed than --max-failures allows; remove the "
          + "cause, then run it again")
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
