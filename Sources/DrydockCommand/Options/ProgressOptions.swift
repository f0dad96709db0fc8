import ArgumentParser
import Dispatch
import Drydock
import Foundation
import Synchronization

/// A command that may take long.
protocol ProgressSubcommand: Subcommand {
  var showing: ProgressOptions { get }
}

extension ProgressSubcommand {
  var common: CommonOptions { showing.common }
}

/// The options of commands that may take long.
struct ProgressOptions: ParsableArguments {
  enum Mode: String, CaseIterable, ExpressibleByArgument {
    /// A line on a terminal, from the first second on.
    case auto
    /// JSON Lines.
    case json
    case none
  }

  @Option(
    "Show progress on standard error: auto (the default: a line on a terminal), json (JSON Lines) or none.",
    value: "mode")
  var progress: Mode?
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  /// Shows progress while the work is done; its result is printed afterwards.
  ///
  /// - Parameter work: gets what it counts in; nil when nothing is shown, as a rule with a result in JSON.
  func during<Value>(_ work: (WorkProgress?) throws -> Value) throws -> Value {
    let display = try display()
    defer { display.end() }
    return try work(display.progress)
  }

  /// The same until ``ProgressDisplay/end()``, for a command that prints before its work is done.
  func display() throws -> ProgressDisplay {
    switch try mode() {
    case .json where !common.quiet: ProgressDisplay(.json)
    case .auto where !common.json && !common.quiet && StandardStreams.canShowStatus: ProgressDisplay(.auto)
    default: ProgressDisplay(.none)
    }
  }

  private func mode() throws -> Mode {
    if let progress { return progress }
    guard let name = Environment["PROGRESS"] else { return .auto }
    guard let mode = Mode(rawValue: name) else {
      throw UsageError(
        "DRYDOCK_PROGRESS is \(name): one of "
          + Mode.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return mode
  }
}

/// Shows the progress of a command on standard error, ten times a second at most, on a second thread: an operation that is
/// stuck is shown, too.
final class ProgressDisplay: Sendable {
  /// What the command's operations count in; nil when nothing is shown.
  let progress: WorkProgress?
  private let ending = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let hasEnded = Atomic(false)

  private static let interval = 0.1
  /// Shorter commands show no line.
  private static let delay = 1.0

  fileprivate init(_ mode: ProgressOptions.Mode) {
    if mode == .none {
      progress = nil
      return
    }
    let progress = WorkProgress()
    self.progress = progress
    let thread = Thread { [ending, ended] in
      if mode == .json {
        Self.printLines(progress, until: ending)
      } else {
        Self.showLine(progress, until: ending)
      }
      ended.signal()
    }
    thread.start()
  }

  /// Removes the line, or prints the last one as JSON; once.
  func end() {
    guard progress != nil, !hasEnded.exchange(true, ordering: .relaxed) else { return }
    ending.signal()
    ended.wait()
  }

  private static func showLine(_ progress: WorkProgress, until end: DispatchSemaphore) {
    var text = ProgressText()
    let start = ContinuousClock.now
    while end.wait(timeout: .now() + interval) == .timedOut {
      let seconds = (ContinuousClock.now - start) / .seconds(1)
      // Also before it is shown: the time of a phase counts from its beginning.
      let line = text.line(progress.state, at: seconds, width: StandardStreams.width)
      if seconds >= delay, let line { StandardStreams.show(status: line) }
    }
    StandardStreams.show(status: nil)
  }

  private static func printLines(_ progress: WorkProgress, until end: DispatchSemaphore) {
    let start = ContinuousClock.now
    var last = WorkProgress.State()
    var hasEnded = false
    repeat {
      hasEnded = end.wait(timeout: .now() + interval) == .success
      let state = progress.state
      if state == last && !hasEnded { continue }
      last = state
      let seconds = (ContinuousClock.now - start) / .seconds(1)
      StandardStreams.note(Output.encodedLine(document(state, seconds, hasEnded: hasEnded)) + "\n")
    } while !hasEnded
  }

  private static func document(
    _ state: WorkProgress.State, _ seconds: Double, hasEnded: Bool
  ) -> ResultObject {
    [
      "progress": [
        "phase": state.phase?.rawValue, "bytes": state.bytes, "total_bytes": state.totalBytes,
        "files": state.files, "total_files": state.totalFiles, "item": state.item, "items": state.items,
        "seconds": (seconds * 10).rounded() / 10, "ended": hasEnded,
      ] as ResultObject
    ]
  }
}
