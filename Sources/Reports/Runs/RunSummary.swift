import Drydock

/// What became of a run over many containers, from the results of all its jobs.
package struct RunSummary: Sendable, Encodable {
  /// One cause of failures, with one example.
  package struct Cause: Sendable, Encodable {
    package var code: String, exitCode: Int, count: Int
    package var container: String, message: String?
  }

  package struct Slow: Sendable, Encodable {
    package var container: String, seconds: Double
  }

  package struct Versions: Sendable, Encodable, Hashable {
    package var before: Int?, after: Int?
    package var count: Int
  }

  /// The jobs of one command and run, by the number of shards.
  package struct Shards: Sendable, Encodable {
    package var command: String, run: String
    package var count: Int
    /// How many are complete, lack results because they were killed or lines are missing, and were not seen at all.
    package var complete: Int
    package var incompleteCount: Int, missingCount: Int
    /// The first ones of these, such as `3/8`.
    package var incomplete: [String], missing: [String]
  }

  /// A line or file that does not count.
  package struct Problem: Sendable, Encodable {
    package var file: String, line: Int?, message: String
  }

  package var files = 0
  package var commands: [String] = []
  package var runs: [String] = []
  /// What the results are about; nil for containers.
  package var kind: ResultKind?
  package var containers = 0
  /// By state.
  package var states: [String: Int] = [:]
  /// The most frequent first.
  package var failures: [Cause] = []
  package var slowest: [Slow] = []
  package var versions: [Versions] = []
  /// Containers with results in more than one file: how many, and the first ones.
  package var repeatedCount = 0
  package var repeated: [String] = []
  /// Containers that were changed more than once.
  package var changedAgainCount = 0
  package var changedAgain: [String] = []
  package var shards: [Shards] = []
  /// Containers that jobs with `--first` left for later.
  package var leftOut = 0
  package var problemCount = 0
  package var problems: [Problem] = []
  /// The time of all containers together, and when the first and the last one were done.
  package var seconds = 0.0
  package var firstDone: String?, lastDone: String?
  /// The exit codes of the containers, in the order of their names.
  package var exitCodes: [Int] = []
  package var exitCode: Int32 = 0

  /// So many examples of each kind are listed.
  package static let examples = 10
  /// So many rows of a table are listed.
  package static let rows = 20

  /// One of what the results are about.
  package var noun: String { kind?.rawValue ?? "container" }

  package func count(_ state: RunState) -> Int { states[state.rawValue, default: 0] }

  /// Whether results are missing, or containers were not started.
  package var isIncomplete: Bool {
    count(.skipped) > 0 || problems.contains { !$0.isCut }
      || shards.contains { $0.incompleteCount > 0 || $0.missingCount > 0 }
  }

  private enum CodingKeys: String, CodingKey {
    case files, commands, runs, kind, containers, states, failures, slowest, versions, repeatedCount, repeated
    case changedAgainCount, changedAgain, shards, leftOut, problemCount, problems, seconds, firstDone,
      lastDone,
      exitCode
  }
}

extension RunSummary.Problem {
  static let cut = "the last line is cut: the job was killed, or its disk was full"

  /// Whether it is of a job that is known to be incomplete by its missing summary.
  var isCut: Bool { message == Self.cut }
}
