import Drydock
import Foundation

/// Merges the results of many jobs. It keeps a few words for each container, and nothing of the lines.
package struct RunResults {
  fileprivate struct Entry {
    var name: String
    var state: RunState
    var exitCode: Int
    /// Of a failure.
    var code: String?, message: String?
    var before: Int?, after: Int?
    var seconds: Double
    var time: String
    var file: Int32
    var isInSeveralFiles = false
    /// When it was changed last, and whether it was changed before that, too.
    var changed: String?
    var isChangedAgain = false
  }

  /// The jobs that share the work of a run.
  fileprivate struct Part: Hashable {
    var command: String, run: String, count: Int
  }

  private struct Job: Hashable {
    var part: Part, index: Int
  }

  /// By command and path, as bytes: two names that Unicode takes for the same are two directories.
  private var entries: [[UInt8]: Entry] = [:]
  /// The shards that there are results of, and whether a job of each is complete.
  private var parts: [Part: [Int: Bool]] = [:]
  private var shardCount = 0
  /// What the jobs of a command left for later, by shard.
  private var leftOut: [String: [String: Int]] = [:]
  private var commands: Set<String> = [], runs: Set<String> = [], kinds: Set<ResultKind?> = []
  /// Hashes of the lines: one that a file repeats, or that two files have, counts once.
  private var seen: Set<Int> = []
  private var summary = RunSummary()

  /// More runs and shards are not counted: whatever is in a file must not cost any amount of memory.
  static let mostRuns = 1000, mostShards = 100_000

  package init() {}

  /// Adds a file. What is not a line of results is reported, and the rest counted.
  package mutating func add(_ path: String) throws {
    var lines = try ResultLines(path)
    let decoder = JSONDecoder()
    summary.files += 1
    let file = Int32(summary.files)
    var (number, results, isCut) = (0, 0, false)
    // The results of jobs whose last line has not come yet.
    var open: [Job: [(key: [UInt8], state: RunState)]] = [:]
    while let line = try lines.next() {
      number += 1
      switch line {
      case .cut: isCut = true
      case .tooLong: report(path, number, "not a line of results: longer than 16 MB")
      case .complete(let bytes):
        if bytes.isEmpty { continue }
        do {
          let record = try ResultRecord.parse(bytes, decoder)
          let job = try job(of: record)
          if let totals = record.summary {
            add(job, totals, record, open.removeValue(forKey: job) ?? [])
          } else if let name = record.container, let state = record.state {
            let key = Array("\(job.part.command) \(record.path ?? name)".utf8)
            open[job, default: []].append((key, state))
            if seen.insert(Self.hash(bytes)).inserted { add(record, name, state, key, file) }
          }
          results += 1
        } catch let error as DrydockError {
          report(path, number, error.message)
        }
      }
    }
    // That its only line is cut says less.
    if results == 0 {
      report(path, nil, "no results: the job was killed before its first container was done, or is waiting")
    } else if isCut {
      report(path, number, RunSummary.Problem.cut)
    }
  }

  /// Reports a file that cannot be read, and leaves it out.
  package mutating func leaveOut(_ path: String, _ error: DrydockError) { report(path, nil, error.message) }

  private mutating func report(_ path: String, _ line: Int?, _ message: String) {
    summary.problemCount += 1
    // A foreign file of a million lines is one mistake.
    if summary.problems.count < 1000 {
      // A mistyped command line may have a secret in place of a file.
      summary.problems.append(
        .init(file: Redactor().shown(message: path), line: line, message: message))
    }
  }

  /// Of all bytes: that of `Data` is of the first ones only.
  private static func hash(_ line: Data) -> Int {
    var hasher = Hasher()
    line.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  /// The job that wrote a line.
  private mutating func job(of record: ResultRecord) throws -> Job {
    let shard = record.shard.flatMap { Shard($0) }
    let part = Part(command: record.command ?? "", run: record.run ?? "", count: shard?.count ?? 1)
    let job = Job(part: part, index: shard?.index ?? 1)
    if parts[part]?[job.index] == nil {
      guard record.run.map({ runs.contains($0) || runs.count < Self.mostRuns }) ?? true else {
        throw DrydockError(.limit, "not counted: results of more than \(Self.mostRuns) runs")
      }
      guard shardCount < Self.mostShards else {
        throw DrydockError(.limit, "not counted: results of more than \(Self.mostShards) shards")
      }
      parts[part, default: [:]][job.index] = false
      shardCount += 1
      if !part.command.isEmpty { commands.insert(part.command) }
      if let run = record.run { runs.insert(run) }
    }
    return job
  }

  /// The last line of a job, which says how many results there are: the last ones before it.
  private mutating func add(
    _ job: Job, _ totals: [String: Int], _ record: ResultRecord, _ results: [(key: [UInt8], state: RunState)]
  ) {
    let own = results.suffix(totals["containers", default: 0])
    let isComplete =
      own.count == totals["containers", default: 0] && Set(own.map { $0.key }).count == own.count
      && RunState.allCases.allSatisfy { state in
        totals[state.rawValue] == nil || totals[state.rawValue] == own.count { $0.state == state }
      }
    if isComplete { parts[job.part]?[job.index] = true }
    leftOut[job.part.command, default: [:]][record.shard ?? ""] = record.leftOut ?? 0
  }

  private mutating func add(
    _ record: ResultRecord, _ name: String, _ state: RunState, _ key: [UInt8], _ file: Int32
  ) {
    kinds.insert(record.kind)
    var new = Entry(
      name: name, state: state, exitCode: record.exitCode, before: record.versionBefore,
      after: record.versionAfter, seconds: record.seconds ?? 0, time: record.time ?? "", file: file)
    if state == .changed { new.changed = new.time }
    if state == .unchanged, record.changedBefore == true {
      // The job that changed it was killed before it could record that, and the version before with it.
      (new.state, new.before) = (.changed, nil)
    }
    summary.seconds += new.seconds
    if !new.time.isEmpty {
      summary.firstDone = min(summary.firstDone ?? new.time, new.time)
      summary.lastDone = max(summary.lastDone ?? new.time, new.time)
    }
    if new.isFailure {
      new.code = record.error?.code ?? "exit \(record.exitCode)"
      new.message = record.error?.message.map { String($0.prefix(500)) }
    }
    if let old = entries[key] { new = Self.merged(old, new) }
    entries[key] = new
  }

  /// The later result counts. What one run changed, the next one finds unchanged: that container was changed.
  private static func merged(_ one: Entry, _ other: Entry) -> Entry {
    // Of two jobs at once, one finds the container locked by the one that changes it.
    let isLast = one.time < other.time || one.time == other.time && one.state != .changed
    let (old, new) = isLast ? (one, other) : (other, one)
    var merged = new
    // Neither a shard that was not started again, nor one that finds everything done, undoes what there was.
    let foundDone = new.changed == nil && (new.state == .unchanged || new.state == .changed)
    if new.state == .skipped || foundDone && old.state == .changed && old.exitCode == 0 {
      merged = old
      merged.time = new.time
      if foundDone { merged.after = new.after ?? old.after }
    }
    merged.isInSeveralFiles = one.isInSeveralFiles || other.isInSeveralFiles || one.file != other.file
    merged.changed = new.changed ?? old.changed
    merged.isChangedAgain =
      one.isChangedAgain || other.isChangedAgain || one.changed != nil && other.changed != nil
    return merged
  }

  /// What all files say together.
  package func merged() -> RunSummary {
    var summary = summary
    (summary.commands, summary.runs) = (commands.sorted(), runs.sorted())
    // Results of several kinds are counted as containers.
    summary.kind = kinds.count == 1 ? kinds.first ?? nil : nil
    summary.states = Dictionary(uniqueKeysWithValues: RunState.allCases.map { ($0.rawValue, 0) })
    summary.containers = entries.count
    summary.seconds = (summary.seconds * 1000).rounded() / 1000
    var causes: [String: RunSummary.Cause] = [:]
    var versions: [[Int?]: Int] = [:]
    var codes: Set<Int> = []
    let sorted = entries.values.sorted { $0.name < $1.name }
    for entry in sorted {
      summary.states[entry.state.rawValue, default: 0] += 1
      if entry.state != .skipped, codes.insert(entry.exitCode).inserted {
        summary.exitCodes.append(entry.exitCode)
      }
      if let code = entry.code, entry.isFailure {
        causes[
          "\(entry.exitCode) \(code)",
          default: .init(
            code: code, exitCode: entry.exitCode, count: 0, container: entry.name, message: entry.message)
        ].count += 1
      } else if entry.state != .skipped, entry.before != nil || entry.after != nil {
        versions[[entry.before, entry.after], default: 0] += 1
      }
      if entry.isInSeveralFiles { summary.repeatedCount += 1 }
      if entry.isInSeveralFiles, summary.repeated.count < RunSummary.examples {
        summary.repeated.append(entry.name)
      }
      if entry.isChangedAgain { summary.changedAgainCount += 1 }
      if entry.isChangedAgain, summary.changedAgain.count < RunSummary.examples {
        summary.changedAgain.append(entry.name)
      }
    }
    summary.failures = causes.values.sorted { ($1.count, $0.code) < ($0.count, $1.code) }
    summary.versions = versions.map { .init(before: $0.key[0], after: $0.key[1], count: $0.value) }
      .sorted { ($1.count, $0.before ?? -1, $0.after ?? -1) < ($0.count, $1.before ?? -1, $1.after ?? -1) }
    summary.slowest = sorted.filter { $0.state != .skipped }
      .sorted { ($1.seconds, $0.name) < ($0.seconds, $1.name) }
      .prefix(RunSummary.examples).map { .init(container: $0.name, seconds: $0.seconds) }
    summary.shards = shards()
    // A wave, unless the rest followed.
    summary.leftOut = leftOut.values.filter { !$0.values.contains(0) }.joined().reduce(0) { $0 + $1.value }
    return summary
  }

  private func shards() -> [RunSummary.Shards] {
    parts.map { part, seen in
      let incomplete = seen.filter { !$0.value }.keys.sorted()
      // A number in a file may be any: only as many are looked at as are listed.
      let missing = (1...part.count).lazy.filter { seen[$0] == nil }.prefix(RunSummary.examples)
      return RunSummary.Shards(
        command: part.command, run: part.run, count: part.count, complete: seen.count - incomplete.count,
        incompleteCount: incomplete.count, missingCount: part.count - seen.count,
        incomplete: incomplete.prefix(RunSummary.examples).map { "\($0)/\(part.count)" },
        missing: missing.map { "\($0)/\(part.count)" })
    }.sorted { ($0.command, $0.run, $0.count) < ($1.command, $1.run, $1.count) }
  }
}

extension RunResults.Entry {
  fileprivate var isFailure: Bool { state != .skipped && exitCode != 0 && exitCode != 2 }
}
