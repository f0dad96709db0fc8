import Drydock
import Foundation
import Reports

/// What a command did to one container of a batch.
struct BatchResult: Sendable {
  var state: RunState
  /// What was done, in a few words.
  var text: String
  /// What the command prints for one container with `--json`; nil for one that is past what was asked for.
  var document: ResultObject?
  /// What the command would exit with for this container; nil for 0.
  var exit: ExitStatus?
  /// Lines for standard error.
  var notes: [Notice] = []
  /// Processes that may have had the container open without being seen.
  var unseen: UnseenProcesses?
  var failure: Failure?
  /// The schema version before and after, as far as they are known.
  var versions: (before: Int?, after: Int?) = (nil, nil)
  /// Of a container that is unchanged: whether an earlier job of the same run changed it.
  var changedBefore = false

  /// Whether it is one too many for `--max-failures`.
  var isFailure: Bool { exit != nil && exit != .pending }
}

extension BatchResult {
  init<Value>(
    _ outcomes: [TransactionOutcome<Value>], _ text: String, _ document: ResultObject,
    versions: (before: Int?, after: Int?) = (nil, nil)
  ) {
    self.init(
      state: outcomes.allSatisfy { $0.transaction == nil } ? .unchanged : .changed, text: text,
      document: document, exit: outcomes.lazy.compactMap(\.exit).first,
      notes: outcomes.flatMap(\.notices), unseen: outcomes.lazy.compactMap(\.unseen).first, versions: versions
    )
    if let exit { self.text += ", exit \(exit.rawValue)" }
  }

  /// Of a dry run.
  ///
  /// - Parameters:
  ///   - isPending: whether the change would change anything.
  ///   - exit: what the command would exit with then.
  init<Value>(
    _ outcome: DryRunOutcome<Value>, isPending: Bool, _ text: String, _ document: ResultObject,
    exit: ExitStatus? = nil, versions: (before: Int?, after: Int?)
  ) {
    self.init(
      state: isPending ? .pending : .unchanged,
      text: isPending ? "\(text): \(outcome.difference.summary)" : text,
      document: outcome.document(document), exit: isPending ? exit : nil, versions: versions)
  }

  init(_ child: ContainerDirectory.Child, _ failure: Failure, _ notes: [Notice]) {
    // The row has the container's name.
    let isAboutAll = failure.path == child.path || failure.path == realPath(child.path)
    self.init(
      state: .failed,
      text: "exit \(failure.status.rawValue): \(isAboutAll ? failure.message : failure.text)",
      exit: failure.status, notes: notes, failure: failure)
  }

  /// Of a container that was not started.
  static var skipped: BatchResult {
    BatchResult(state: .skipped, text: "not started: too many have failed", exit: .incomplete)
  }
}

/// The last line of the report with `--json`.
struct BatchSummary: Encodable {
  /// The number of containers, in all and by state.
  private var summary = ["containers": 0].merging(
    RunState.allCases.map { ($0.rawValue, 0) }, uniquingKeysWith: +)
  var exitCode: Int32 = 0
  var passedOver: [String] = []
  /// As for one container, over all of them.
  var exposed: [ExposedSecret] = [], notSearched: [String] = []
  /// How many containers of the job are left for later, with `--first`.
  var leftOut = 0
  var command = "", run: RunID?, shard: String?
  var seconds = 0.0

  init(_ job: Job) { (command, run, shard) = (job.command, job.run, job.shard?.description) }

  func count(_ state: RunState) -> Int { summary[state.rawValue, default: 0] }

  mutating func add(_ state: RunState) {
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

extension String {
  /// The last name of a path.
  var lastName: String { split(separator: "/").last.map(String.init) ?? self }
}
