import Drydock
import FixtureTesting
import Foundation

/// What a build server gets of a result: a JUnit file, and in GitHub Actions annotations and a summary.
struct PipelineReports {
  private let junit: String?
  private let variables: [String: String]
  private let directory = FileManager.default.currentDirectoryPath

  /// - Parameter junit: the file that takes the report; its directory is made.
  /// - Throws: when it cannot be: before minutes of checks, not after.
  init(junit: String?, variables: [String: String] = ProcessInfo.processInfo.environment) throws {
    (self.junit, self.variables) = (junit, variables)
    guard let junit else { return }
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: junit, isDirectory: &isDirectory), isDirectory.boolValue {
      throw UsageError(message: "--junit \(junit) is a directory: give a file")
    }
    let folder = (junit as NSString).deletingLastPathComponent
    guard !folder.isEmpty else { return }
    try Self.writing(junit) {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
  }

  func write(_ result: SuiteResult) throws {
    if let junit {
      let xml = JUnitReport(result, from: directory).xml
      try Self.writing(junit) { try xml.write(to: URL(fileURLWithPath: junit), options: .atomic) }
    }
    guard variables["GITHUB_ACTIONS"] == "true" else { return }
    let workspace = variables["GITHUB_WORKSPACE"].flatMap { $0.isEmpty ? nil : $0 } ?? directory
    // The runner reads both streams; standard output may be a file of JSON.
    for line in GitHubAnnotations(result, workspace: workspace, directory: directory).lines {
      Output.note(line)
    }
    if let file = variables["GITHUB_STEP_SUMMARY"], !file.isEmpty { summarize(result, into: file) }
  }

  /// The summary is an extra: that it cannot be written is no failure of the fixtures.
  private func summarize(_ result: SuiteResult, into file: String) {
    do {
      if !FileManager.default.fileExists(atPath: file) { try Data().write(to: URL(fileURLWithPath: file)) }
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(MarkdownSummary(result, from: directory).text.utf8))
    } catch {
      Output.note("drydock: note: the summary for GitHub cannot be written: \(error.localizedDescription)")
    }
  }

  private static func writing(_ file: String, _ body: () throws -> Void) throws {
    do { try body() } catch {
      throw DrydockError(
        .io, "the report cannot be written: \(error.localizedDescription)", path: file, cause: error)
    }
  }
}
