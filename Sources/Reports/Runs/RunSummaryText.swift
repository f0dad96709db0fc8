import Drydock

extension RunSummary {
  /// What was done: the commands and the runs.
  package var title: String {
    let names =
      commands.isEmpty
      ? "no results" : Self.list(Array(commands.prefix(Self.examples)), commands.count)
    switch runs.count {
    case 0: return names
    case 1: return "\(names), run \(runs[0])"
    default: return "\(names), \(NumberText.count(runs.count, "run"))"
    }
  }

  /// The number of containers, by state.
  package var conclusion: String {
    let counts = RunState.allCases.map { ($0, count($0)) }.filter { $0.1 > 0 }
    return NumberText.count(containers, noun)
      + (counts.isEmpty
        ? "" : ": " + counts.map { "\(NumberText.grouped($0.1)) \($0.0.rawValue)" }.joined(separator: ", "))
  }

  /// What is missing, and what to do, in sentences.
  package var gaps: [String] {
    var gaps = shards.flatMap { self.gaps(of: $0) }.lines(Self.examples, more: "more such shards and runs")
    if count(.skipped) > 0 {
      gaps.append("\(NumberText.count(count(.skipped), noun)) not started, because too many had failed")
    }
    if leftOut > 0 { gaps.append("\(NumberText.count(leftOut, noun)) left for later by --first") }
    if changedAgainCount > 0 {
      gaps.append(
        "\(NumberText.count(changedAgainCount, noun)) changed more than once: "
          + Self.list(changedAgain, changedAgainCount))
    }
    return gaps
  }

  private func gaps(of group: Shards) -> [String] {
    // One of several runs is named.
    let run = runs.count > 1 && !group.run.isEmpty ? ", run \(group.run)" : ""
    var gaps: [String] = []
    if group.missingCount > 0 {
      let names = Self.named(group.missing, group.missingCount)
      gaps.append(
        "no results of \(names) of `\(group.command)`\(run); "
          + again(group, group.missing[0], group.missingCount)
      )
    }
    if group.incompleteCount > 0 {
      let names = Self.named(group.incomplete, group.incompleteCount)
      gaps.append(
        "\(names) of `\(group.command)`\(run) did not finish, or results of it are missing; "
          + again(group, group.incomplete[0], group.incompleteCount))
    }
    return gaps
  }

  /// Containers that several files have, in a sentence; nil for none.
  package var repetition: String? {
    if repeatedCount == 0 { return nil }
    return
      "\(NumberText.count(repeatedCount, noun)) in several files, of which the last result counts: "
      + Self.list(repeated, repeatedCount)
  }

  private static func list(_ names: [String], _ count: Int) -> String {
    names.map(\.printable).listed(names.count, of: count)
  }

  /// How a shard is run again.
  private func again(_ group: Shards, _ shard: String, _ count: Int) -> String {
    // Without shards the whole is one.
    let part = shard == "1/1" ? "" : " with --shard \(shard)"
    let run = group.run.isEmpty ? "" : "\(part.isEmpty ? " with" : "") --run \(group.run)"
    return count == 1 ? "run it again\(part)\(run)" : "run each again, such as\(part)\(run)"
  }

  private static func named(_ shards: [String], _ count: Int) -> String {
    count == 1 ? shards[0] == "1/1" ? "the job" : "shard \(shards[0])" : "shards \(list(shards, count))"
  }
}

extension RunSummary.Problem {
  /// `FILE:LINE: MESSAGE`.
  package var text: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(message)" }
}

extension Report {
  /// A run over many containers.
  package init(_ summary: RunSummary) {
    let failed = summary.failures.reduce(0) { $0 + $1.count }
    self.init(
      kind: "Run over many containers", title: summary.title,
      verdict: failed > 0 ? .bad : summary.isIncomplete || summary.exitCode != 0 ? .warning : .good,
      word: failed > 0
        ? "\(NumberText.grouped(failed)) failed" : summary.isIncomplete ? "Incomplete" : "No failures",
      sentence: summary.conclusion)
    var facts = ["files: \(summary.files)", "time of all: \(NumberText.seconds(summary.seconds))"]
    if let first = summary.firstDone, let last = summary.lastDone {
      facts.append("first and last done: \(first), \(last)")
    }
    if !summary.runs.isEmpty { facts.append("runs: \(summary.runs.listed(RunSummary.examples))") }
    opening = facts.map { Line($0, depth: 0) }
    noticesHeading = "what is missing"
    notices = summary.gaps.map { Line($0, .warning) }
    if let repetition = summary.repetition { notices.append(Line(repetition, .note)) }
    notices += summary.problems.lazy.map(\.text.printable)
      .lines(RunSummary.examples, of: summary.problemCount, more: "more such lines and files")
      .map { Line($0, .warning) }
    let failures = summary.failures.map { cause in
      [
        Cell.number(cause.count), .text(cause.code.printable), .text("exit \(cause.exitCode)"),
        .text("\(cause.container): \(cause.message ?? "")".printable),
      ]
    }
    let versions = summary.versions.map { [Cell.number($0.count), .versions($0.before, $0.after)] }
    let slowest = summary.slowest.map { [Cell.seconds($0.seconds), .text($0.container.printable)] }
    sections = [
      Self.table("failures by cause", ["Failures", "Cause", "Exit", "Example"], failures, .error),
      Self.table("versions", ["Containers", "Versions"], versions),
      Self.table("slowest", ["Time", "Container"], slowest.count > 1 ? slowest : []),
    ].compactMap { $0 }
  }

  private static func table(
    _ title: String, _ columns: [String], _ rows: [[Cell]], _ role: TextRole? = nil
  ) -> Section? {
    if rows.isEmpty { return nil }
    return Section(
      title, [.table(Table(title, columns, rows.map { Row($0) }, limit: RunSummary.rows, role: role))])
  }
}
