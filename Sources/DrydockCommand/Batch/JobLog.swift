import Drydock
import Foundation
import Reports

/// What a job says of each part of its work, such as a container, a fixture or an archive, and of all at the end: a line of
/// JSON, which its file of results takes too.
struct JobLog: Sendable {
  let job: Job
  /// What the parts are, if not containers.
  var kind: ResultKind?
  let file: ResultFile?
  private var summary: BatchSummary
  private let start = ContinuousClock.now

  init(_ options: JobOptions, _ job: Job, of kind: ResultKind? = nil) throws {
    (self.job, self.kind, file, summary) = (
      job, kind, try options.result.map { try ResultFile($0) }, BatchSummary(job)
    )
  }

  /// The line about a part, which is not counted.
  ///
  /// - Parameters:
  ///   - name: the part's name, such as a container's in the directory or the list.
  ///   - instance: a container's; nil where it could not be opened.
  @discardableResult
  func line(
    _ name: String, path: String, instance: String? = nil, _ result: BatchResult, seconds: Double
  ) -> String {
    line(
      [
        "container": name, "path": path, "instance": instance, "kind": kind, "state": result.state,
        "changed_before": result.changedBefore ? true : nil,
        "exit_code": result.exit?.rawValue ?? 0, "notes": result.notes.map(\.text), "result": result.document,
        "error": result.failure.map { $0.detail(status: $0.status) },
        "version_before": result.versions.before,
        "version_after": result.versions.after, "seconds": Self.rounded(seconds),
        "time": Self.times.format(Date()),
        "command": job.command, "run": job.run, "shard": job.shard?.description,
      ] as ResultObject)
  }

  @discardableResult
  func line(_ value: some Encodable) -> String {
    let line = Output.encodedLine(value)
    file?.append(line)
    return line
  }

  /// Counts a part, and adds its line.
  mutating func add(_ name: String, path: String, _ result: BatchResult, seconds: Double) {
    summary.add(result.state)
    line(name, path: path, result, seconds: seconds)
  }

  /// Adds the summary of what was counted.
  ///
  /// - Parameter code: what the command exits with.
  /// - Returns: whether the file has all lines.
  mutating func end(_ code: Int32) -> Bool {
    (summary.exitCode, summary.seconds) = (code, seconds)
    line(summary)
    return file?.report() ?? true
  }

  /// The seconds of the job so far.
  var seconds: Double { Self.rounded((ContinuousClock.now - start) / .seconds(1)) }

  /// To milliseconds: by them results of one container are put in order.
  private static let times = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

  /// To milliseconds.
  private static func rounded(_ seconds: Double) -> Double { (seconds * 1000).rounded() / 1000 }
}
