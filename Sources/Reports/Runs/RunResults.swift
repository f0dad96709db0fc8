import Drydock
import Foundation

/// Merges the results of many jobs. It keeps a few words for each container, and nothing of the lines.
package struct RunResults {
  fileprivate struct Entry {
    var name: String
    var state: RunState
    var exitCode: Int
    /// Index of the failure.
    var failure: Int32 = -1
    var before: Int?, after: Int?
    var seconds: Double
    var time: String
    var file: Int32
    var isInSeveralFiles = false
    /// How often it was changed.
    var changes: UInt16 = 0
  }

  private struct Part: Hashable {
    var command: String, count: Int
  }

  private struct Cause: Hashable {
    var code: String, exitCode: Int
  }

  /// By command and path, as bytes: two names that Unicode takes for the same are two directories.
  private var entries: [[UInt8]: Entry] = [:]
  private var failures: [(code: String, message: String?)] = []
  private var parts: [Part: [Int: Bool]] = [:]
  /// What the jobs of a command left for later, by shard.
  private var leftOut: [String: [String: Int]] = [:]
  private var commands: Set<String> = [], runs: Set<String> = []
  private var summary = RunSummary()

  package init() {}

  /// Adds a file. What is not a line of results is reported, and the rest counted.
  ///
  /// - Throws: `DrydockError` for a file that cannot be read.
  package mutating func add(_ path: String) throws {
    var lines = try ResultLines(path)
    let decoder = JSONDecoder()
    summary.files += 1
    let file = Int32(summary.files)
    var (number, results) = (0, 0)
    while let line = try lines.next() {
      number += 1
      switch line {
      case .cut: report(path, number, RunSummary.Problem.cut)
      case .tooLong: report(path, number, "not a line of results: longer than 16 MB")
      case .complete(let bytes):
        if bytes.isEmpty { continue }
        do {
          try add(ResultRecord.parse(bytes, decoder), file)
          results += 1
        } catch let error as DrydockError {
          report(path, number, error.message)
        }
      }
    }
    if results == 0 {
      report(path, nil, "no results: the job was killed before its first container was done, or is waiting")
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

  private mutating func add(_ record: ResultRecord, _ file: Int32) {
    let shard = record.shard.flatMap { Shard($0) }
    let part = Part(command: record.command ?? "", count: shard?.count ?? 1)
    if let command = record.command, !command.isEmpty { commands.insert(command) }
    if let run = record.run { runs.insert(run) }
    if record.summary != nil {
      parts[part, default: [:]][shard?.index ?? 1] = true
      leftOut[part.command, default: [:]][record.shard ?? ""] = record.leftOut ?? 0
      return
    }
    guard let name = record.container, let state = record.state.flatMap(RunState.init) else { return }
    if parts[part]?[shard?.index ?? 1] == nil { parts[part, default: [:]][shard?.index ?? 1] = false }
    add(record, name, state, key: Array("\(part.command) \(record.path ?? name)".utf8), file)
  }

  private mutating func add(
    _ record: ResultRecord, _ name: String, _ state: RunState, key: [UInt8], _ file: Int32
  ) {
    var new = Entry(
      name: name, state: state, exitCode: record.exitCode, before: record.versionBefore,
      after: record.versionAfter,
      seconds: record.seconds ?? 0, time: record.time ?? "", file: file, changes: state == .changed ? 1 : 0)
    summary.seconds += new.seconds
    if !new.time.isEmpty {
      summary.firstDone = min(summary.firstDone ?? new.time, new.time)
      summary.lastDone = max(summary.lastDone ?? new.time, new.time)
    }
    if new.isFailure {
      new.failure = Int32(clamping: failures.count)
      let code = record.error?.code ?? "exit \(record.exitCode)"
      failures.append((code, record.error?.message.map { String($0.prefix(500)) }))
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
    if new.state == .skipped || new.state == .unchanged && old.state == .changed && old.exitCode == 0 {
      merged = old
      merged.time = new.time
      if new.state == .unchanged { merged.after = new.after ?? old.after }
    }
    merged.isInSeveralFiles = one.isInSeveralFiles || other.isInSeveralFiles || one.file != other.file
    merged.changes = UInt16(clamping: Int(one.changes) + Int(other.changes))
    return merged
  }

  /// What all files say together.
  package func merged() -> RunSummary {
    var summary = summary
    (summary.commands, summary.runs) = (commands.sorted(), runs.sorted())
    summary.states = Dictionary(uniqueKeysWithValues: RunState.allCases.map { ($0.rawValue, 0) })
    summary.containers = entries.count
    summary.seconds = (summary.seconds * 1000).rounded() / 1000
    var causes: [Cause: RunSummary.Cause] = [:]
    var versions: [[Int?]: Int] = [:]
    var codes: Set<Int> = []
    let sorted = entries.values.sorted { $0.name < $1.name }
    for entry in sorted {
      summary.states[entry.state.rawValue, default: 0] += 1
      if entry.state != .skipped, codes.insert(entry.exitCode).inserted {
        summary.exitCodes.append(entry.exitCode)
      }
      if entry.isFailure {
        let (code, message) = failures[Int(entry.failure)]
        let cause = Cause(code: code, exitCode: entry.exitCode)
        causes[
          cause,
          default: .init(
            code: code, exitCode: entry.exitCode, count: 0, container: entry.name, message: message)
        ].count += 1
      } else if entry.state != .skipped, entry.before != nil || entry.after != nil {
        versions[[entry.before, entry.after], default: 0] += 1
      }
      if entry.isInSeveralFiles { summary.repeatedCount += 1 }
      if entry.isInSeveralFiles, summary.repeated.count < RunSummary.examples {
        summary.repeated.append(entry.name)
      }
      if entry.changes > 1 { summary.changedAgainCount += 1 }
      if entry.changes > 1, summary.changedAgain.count < RunSummary.examples {
        summary.changedAgain.append(entry.name)
      }
    }
    summary.failures = causes.values.sorted { ($1.count, $0.code) < ($0.count, $1.code) }
    summary.versions = versions.map { .init(before: $0.key[0], after: $0.key[1], count: $0.value) }
      .sorted { ($1.count, $0.before ?? -1, $0.after ?? -1) < ($0.count, $1.before ?? -1, $1.after ?? -1) }
    summary.slowest = Self.slowest(sorted)
    summary.shards = shards()
    // A wave, unless the rest followed.
    summary.leftOut = leftOut.values.filter { !$0.values.contains(0) }.joined()
      .reduce(0) { $0.addingReportingOverflow($1.value).partialValue }
    return summary
  }

  private static func slowest(_ entries: [Entry]) -> [RunSummary.Slow] {
    var slowest: [Entry] = []
    for entry in entries
    where slowest.count < RunSummary.examples || entry.seconds > slowest[slowest.count - 1].seconds {
      let place = slowest.firstIndex { $0.seconds < entry.seconds } ?? slowest.count
      slowest.insert(entry, at: place)
      if slowest.count > RunSummary.examples { slowest.removeLast() }
    }
    return slowest.map { .init(container: $0.name, seconds: $0.seconds) }
  }

  private func shards() -> [RunSummary.Shards] {
    parts.map { part, seen in
      let incomplete = seen.filter { !$0.value }.keys.sorted()
      // A number in a file may be any: only as many are looked at as are listed.
      let missing = (1...part.count).lazy.filter { seen[$0] == nil }.prefix(RunSummary.examples)
      return RunSummary.Shards(
        command: part.command, count: part.count, complete: seen.count - incomplete.count,
        incompleteCount: incomplete.count, missingCount: part.count - seen.count,
        incomplete: incomplete.prefix(RunSummary.examples).map { "\($0)/\(part.count)" },
        missing: missing.map { "\($0)/\(part.count)" })
    }.sorted { ($0.command, $0.count) < ($1.command, $1.count) }
  }
}

extension RunResults.Entry {
  fileprivate var isFailure: Bool { state != .skipped && exitCode != 0 && exitCode != 2 }
}
