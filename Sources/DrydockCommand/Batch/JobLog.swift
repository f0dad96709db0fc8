import Drydock
import Reports

/// The results of a job whose parts are not containers, such as fixtures and archives, for its file of results.
struct JobLog {
  private let job: Job
  private let kind: ResultKind
  private let file: ResultFile
  private var summary: BatchSummary
  private let start = ContinuousClock.now

  /// Nil without a file.
  init?(_ options: JobOptions, _ job: Job, of kind: ResultKind) throws {
    guard let file = try options.file() else { return nil }
    (self.job, self.kind, self.file, summary) = (job, kind, file, BatchSummary(job))
  }

  /// Adds a result.
  ///
  /// - Parameters:
  ///   - name: the name of the part, such as a fixture's.
  ///   - seconds: how long it took.
  mutating func add(_ name: String, path: String, _ result: BatchResult, seconds: Double) {
    summary.add(result.state)
    let line = ResultLine(job: job, kind: kind, name: name, path: path, instance: nil, seconds: seconds)
    file.append(Output.encodedLine(line.document(result)))
  }

  mutating func add(
    _ name: String, path: String, _ result: BatchResult, since start: ContinuousClock.Instant
  ) {
    add(name, path: path, result, seconds: (ContinuousClock.now - start) / .seconds(1))
  }

  /// Adds the summary of the job.
  ///
  /// - Parameter code: what the command exits with.
  /// - Returns: whether all results were written.
  mutating func finish(_ code: Int32) -> Bool {
    summary.exitCode = code
    summary.seconds = ResultLine.rounded((ContinuousClock.now - start) / .seconds(1))
    file.append(Output.encodedLine(summary))
    return file.report()
  }
}
