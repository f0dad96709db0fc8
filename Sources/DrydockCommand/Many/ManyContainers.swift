import ArgumentParser
import Drydock

/// A command on all containers of a directory: each by itself, a failure of one is no reason to leave the others. A row
/// or a JSON line for each, in the order of their names, and a summary.
struct ManyContainers {
  let directory: ContainerDirectory
  let configuration: ContainerConfiguration
  let jobs: Int
  let asJSON: Bool

  /// Does the work on each container, and tells each result.
  ///
  /// - Parameter work: runs on several threads.
  /// - Returns: the summary, to be told by ``finish(_:)``.
  func run(_ work: @escaping @Sendable (Container) throws -> ManyResult) -> ManySummary {
    let (configuration, asJSON) = (configuration, asJSON)
    var rows = ManyRows(names: directory.containers.map(\.name), asJSON: asJSON)
    OrderedWork.run(directory.containers, jobs: jobs) { child in
      Done(child, asJSON: asJSON) { notes in
        let container = try Container(at: child.path, configuration: configuration)
        notes += try ContainerOptions.recovering(container)
        return try work(container)
      }
    } deliver: { child, done in
      rows.tell(child, done)
    }
    rows.end()
    var summary = rows.summary
    summary.passedOver = directory.skipped
    return summary
  }

  /// Tells the summary, and throws the exit code where it is not 0.
  func finish(_ summary: ManySummary) throws {
    if asJSON {
      Output.line(encoded: Output.encodedLine(summary))
    } else {
      let counts = ManyResult.State.allCases.filter { summary.summary[$0] > 0 }.map {
        "\(summary.summary[$0]) \($0.rawValue)"
      }
      Output.line(
        "\(Output.count(summary.summary.containers, "container")): \(counts.joined(separator: ", "))")
    }
    if !summary.passedOver.isEmpty {
      let shown = summary.passedOver.prefix(5).map(ManyRows.shown)
      let more = summary.passedOver.count > 5 ? " and \(summary.passedOver.count - 5) more" : ""
      Output.note(
        "drydock: note: passed over, for nothing shows that these are containers: "
          + "\(shown.joined(separator: ", "))\(more)")
    }
    if summary.exitCode != 0 { throw ExitCode(summary.exitCode) }
  }

  /// What is kept of a container until its turn comes: text only, whatever the command found.
  struct Done: Sendable {
    var state = ManyResult.State.failed
    var exitCode: Int32 = 0
    /// The row's text, or the line of JSON.
    var text = ""
    /// What went wrong: for the row, which has the container's name, and by itself.
    var reason = "", error: String?
    var notes: [String] = []
    var unseen: UnseenProcesses?

    fileprivate init(
      _ child: ContainerDirectory.Child, asJSON: Bool, _ work: (inout [String]) throws -> ManyResult
    ) {
      var line: ManyLine
      do {
        let result = try work(&notes)
        (state, text, exitCode) = (result.state, result.text, result.exit?.rawValue ?? 0)
        notes += result.notes
        unseen = result.unseen
        line = ManyLine(
          container: child.name, path: child.path, state: state, exitCode: exitCode, notes: notes)
        line.result = result.document.map { .init(value: $0) }
      } catch {
        let failure = Failure(error) ?? Failure(unforeseen: error)
        (exitCode, self.error) = (failure.status.rawValue, failure.text)
        let isAboutAll = failure.path == child.path || failure.path == realPath(child.path)
        reason = "exit \(exitCode): \(isAboutAll ? failure.message : failure.text)"
        line = ManyLine(
          container: child.name, path: child.path, state: state, exitCode: exitCode, notes: notes)
        line.error = failure.detail(status: failure.status)
      }
      if asJSON { text = Output.encodedLine(line) }
    }
  }
}
