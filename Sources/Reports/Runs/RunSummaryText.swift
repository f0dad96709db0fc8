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
    var gaps = shards.flatMap { self.gaps(of: $0) }
    let more = gaps.count - Self.examples
    if more > 0 { gaps = gaps.prefix(Self.examples) + ["and \(more) more such shards and runs"] }
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

  package static func list(_ names: [String], _ count: Int) -> String {
    names.map(\.printable).joined(separator: ", ")
      + (count > names.count ? " and \(count - names.count) more" : "")
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

/// A summary in Markdown, for a comment or a job's summary.
package struct RunSummaryMarkdown {
  private let summary: RunSummary

  package init(_ summary: RunSummary) { self.summary = summary }

  package var text: String {
    var text = "### \(summary.exitCode == 0 ? "✅" : "❌") \(MarkdownReport.inline(summary.title))\n\n"
    text += "\(summary.conclusion)\n\n"
    for gap in summary.gaps { text += "- ⚠️ \(MarkdownReport.inline(gap))\n" }
    if let repetition = summary.repetition { text += "- \(MarkdownReport.inline(repetition))\n" }
    if !summary.gaps.isEmpty || summary.repetition != nil { text += "\n" }
    add(
      "| Failures | Cause | Exit code | Example |\n|---:|---|---:|---|\n",
      summary.failures.map { cause in
        let example = "\(cause.container): \(cause.message ?? "")"
        return [
          NumberText.grouped(cause.count), MarkdownReport.inline(cause.code), "\(cause.exitCode)",
          MarkdownReport.inline(example),
        ]
      }, to: &text)
    add(
      "| Containers | Versions |\n|---:|---|\n",
      summary.versions.map { [NumberText.grouped($0.count), $0.text] }, to: &text)
    add(
      "| Slowest | Time |\n|---|---:|\n",
      summary.slowest.map { [MarkdownReport.inline($0.container), NumberText.seconds($0.seconds)] },
      to: &text)
    for problem in summary.problems.prefix(RunSummary.examples) {
      text += "- \(MarkdownReport.inline(problem.text))\n"
    }
    let more = summary.problemCount - min(summary.problems.count, RunSummary.examples)
    if more > 0 { text += "- and \(more) more such lines and files\n" }
    return text
  }

  private func add(_ header: String, _ rows: [[String]], to text: inout String) {
    if rows.isEmpty { return }
    text += header + rows.prefix(RunSummary.rows).map { "| \($0.joined(separator: " | ")) |\n" }.joined()
    text += rows.count > RunSummary.rows ? "\nand \(rows.count - RunSummary.rows) more\n\n" : "\n"
  }
}
