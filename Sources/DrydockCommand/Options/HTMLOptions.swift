import ArgumentParser
import Drydock
import Foundation
import Reports

/// The option of commands whose result can also be a page.
struct HTMLOptions: ParsableArguments {
  @Option("Also write an HTML report.", value: "file") var html: String?

  /// Runs the work of a command. When it fails, the page says so: an earlier page in its place would be taken for this
  /// run's.
  ///
  /// - Parameters:
  ///   - kind: what the command does, such as `Dry run of migrations`.
  ///   - title: what it is done to.
  func reporting(_ kind: String, _ title: String, _ body: () throws -> Void) throws {
    // A place where no file can be is refused before the work, not after.
    let file = try file()
    do { try body() } catch let error where file != nil && !(error is ExitCode) {
      let lines = Failure(error).text.split(whereSeparator: \.isNewline).map(String.init)
      // The command's own failure is what counts.
      try? write(Report(failed: kind, title: title, lines: lines))
      throw error
    }
  }

  /// Writes the page, if one is asked for. It has the user's data: only the owner can read it.
  func write(_ report: @autoclosure () -> Report) throws {
    guard let file = try file() else { return }
    let html = HTMLPage(report()).html(program: "drydock \(DrydockVersion.number)")
    try file.write(Data(html.utf8), isPrivate: true)
  }

  private func file() throws -> ReportFile? { try ReportFile(html, option: "--html") }
}
