import ArgumentParser
import Drydock
import Foundation
import Reports

struct SummaryCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "summary", abstract: "Merge the results of many jobs that worked on containers.",
    discussion: """
      Reads the files that `--result`, or `--all` with --json, wrote. Counts each \
      container once, by its last result: a shard that was run again counts as one. \
      Shards without results, or that were killed or lack results, are listed. Lines \
      that are cut or foreign are reported, and the rest counted.

      The exit code is that of one run over all containers, fixtures or archives; 3 if \
      something is missing.

      Examples:
        drydock summary results/*.jsonl
        drydock summary results/*.jsonl --markdown comment.md --html run.html
      """)

  @Argument(
    help: ArgumentHelp("Files of results.", valueName: "file"), completion: .file())
  var files: [String]
  @Option("Also write the result as Markdown, for a comment.", value: "file") var markdown: String?
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    let comment = try ReportFile(markdown, option: "--markdown")
    try page.reporting("Run over many containers", "The results were not merged") {
      var results = RunResults()
      for file in files {
        do { try results.add(file) } catch let error as DrydockError where files.count > 1 {
          results.leaveOut(file, error)
        }
      }
      var summary = results.merged()
      summary.exitCode =
        summary.isIncomplete ? ExitStatus.incomplete.rawValue : Self.exitCode(of: summary)
      let report = Report(summary)
      try comment?.write(Data(Markdown(report).text.utf8))
      try page.write(report)
      if common.json { Output.json(encoding: summary) } else { write(summary, report) }
      if summary.exitCode != 0 { throw ExitCode(summary.exitCode) }
    }
  }

  /// As one job over all would exit: with fixtures and archives, a failure is the command's own.
  private static func exitCode(of summary: RunSummary) -> Int32 {
    let codes = summary.exitCodes.map { Int32($0) }
    return summary.kind == nil ? BatchSummary.exitCode(of: codes) : codes.first { $0 != 0 } ?? 0
  }

  private func write(_ summary: RunSummary, _ report: Report) {
    Output.line("\(summary.title), \(NumberText.count(summary.files, "file"))")
    Output.line(summary.conclusion, summary.failures.isEmpty && !summary.isIncomplete ? .passed : .failed)
    for section in report.sections { Output.write(section) }
    for notice in report.notices { Output.write(Notice(notice.role ?? .note, notice.text)) }
  }
}
