import ArgumentParser
import Drydock
import DrydockTesting
import Foundation
import Reports

/// Documents about a result that a command writes in addition to its output.
struct ReportOptions: ParsableArguments {
  @Option("Also write the result as JUnit XML.", value: "file") var junit: String?
  @Option("Also write the result as Markdown, for a comment.", value: "file") var markdown: String?
  @OptionGroup(title: OptionTitle.reports) var log: SARIFOption
}

struct SARIFOption: ParsableArguments {
  @Option("Also write the result as SARIF 2.1.0, for code hosts.", value: "file") var sarif: String?
}

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

/// A file that takes a report.
struct ReportFile {
  private let path: String

  /// - Parameters:
  ///   - path: its directory is made; nil for no file.
  ///   - option: the one that names it.
  /// - Throws: when it cannot be written: before minutes of work, not after.
  init?(_ path: String?, option: String) throws {
    guard let path else { return nil }
    self.path = path
    guard !path.isEmpty, path != "-" else { throw UsageError("\(option) needs the name of a file") }
    let type = try? FileManager.default.attributesOfItem(atPath: place)[.type] as? FileAttributeType
    // Anything else would be replaced by a file, even `/dev/null`.
    if let type, type != .typeRegular {
      let what = type == .typeDirectory ? "a directory" : "not a regular file"
      throw UsageError("\(option) \(path) is \(what): give a file")
    }
    // A mistaken path must not cost an archive, a fixture or a part of a container.
    let endings = Self.endings[option] ?? []
    if type != nil, !endings.contains((place as NSString).pathExtension.lowercased()) {
      throw UsageError(
        "\(option) \(path) exists, and its name is not that of such a report "
          + "(\(endings.map { "." + $0 }.joined(separator: ", "))): give another file, or remove it")
    }
    try writing { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
  }

  /// The endings of the names of files that an earlier report may have, and that are replaced.
  private static let endings = [
    "--html": ["html", "htm"], "--junit": ["xml"], "--markdown": ["md", "markdown"],
    "--sarif": ["sarif", "json"],
  ]

  /// Replaces the file in one step.
  ///
  /// - Parameter isPrivate: whether only its owner can read it.
  func write(_ data: Data, isPrivate: Bool = false) throws {
    try writing {
      guard isPrivate else { return try data.write(to: URL(fileURLWithPath: path), options: .atomic) }
      try Directory(folder).replace(ContainerPath((place as NSString).lastPathComponent), with: Array(data))
    }
  }

  /// The file that the path leads to.
  private var place: String { realPath(path) ?? path }

  private var folder: String {
    // `deletingLastPathComponent` of Foundation on Linux stops the program for a name of one character.
    guard let slash = place.lastIndex(of: "/") else { return "." }
    return slash == place.startIndex ? "/" : String(place[..<slash])
  }

  private func writing(_ body: () throws -> Void) throws {
    do { try body() } catch {
      let reason = (error as? DrydockError)?.message ?? error.localizedDescription
      throw DrydockError(.io, "the report cannot be written: \(reason)", path: path, cause: error)
    }
  }
}

/// What a build server gets of a result: files, and in GitHub Actions annotations and a summary.
struct PipelineReports {
  private let junit, markdown, sarif: ReportFile?
  private let variables = ProcessInfo.processInfo.environment
  private let directory = FileManager.default.currentDirectoryPath

  /// - Parameter options: nil for a command whose only document is a log.
  init(_ log: SARIFOption, _ options: ReportOptions? = nil) throws {
    junit = try ReportFile(options?.junit, option: "--junit")
    markdown = try ReportFile(options?.markdown, option: "--markdown")
    sarif = try ReportFile(log.sarif, option: "--sarif")
  }

  func write(_ result: FixtureSuite.Report) throws {
    try junit?.write(JUnitReport(result, from: directory).xml)
    try markdown?.write(Data(Markdown(Report(result, from: directory)).text.utf8))
    try sarif?.write(SARIFLog(result, root: workspace, directory: directory).json)
    annotate { $0.lines(result) }
    if isGitHub, let file = variables["GITHUB_STEP_SUMMARY"], !file.isEmpty { summarize(result, into: file) }
  }

  func write(_ validation: MigrationValidation) throws {
    try sarif?.write(SARIFLog(validation, root: workspace, directory: directory).json)
    annotate { $0.lines(validation.problems) }
  }

  func write(_ audit: AuditReport) throws {
    try sarif?.write(SARIFLog(audit, root: workspace, directory: directory).json)
  }

  private var isGitHub: Bool { variables["GITHUB_ACTIONS"] == "true" }

  /// The repository's directory, or else the working directory.
  private var workspace: String {
    variables["GITHUB_WORKSPACE"].flatMap { isGitHub && !$0.isEmpty ? $0 : nil } ?? directory
  }

  /// The runner reads both streams; standard output may be a file of JSON.
  private func annotate(_ lines: (GitHubAnnotations) -> [String]) {
    guard isGitHub else { return }
    for line in lines(GitHubAnnotations(workspace: workspace, directory: directory)) {
      StandardStreams.note(line + "\n")
    }
  }

  /// The summary is an extra: the test does not fail when it cannot be written.
  private func summarize(_ result: FixtureSuite.Report, into file: String) {
    do {
      if !FileManager.default.fileExists(atPath: file) { try Data().write(to: URL(fileURLWithPath: file)) }
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(Markdown(Report(result, from: directory)).text.utf8))
    } catch {
      Output.note("the summary for GitHub cannot be written: \(error.localizedDescription)")
    }
  }
}
