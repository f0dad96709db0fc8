import Foundation
import Synchronization

/// A program that runs beside the test. One that still runs when this object goes away is killed.
public final class RunningCommand: Sendable {
  /// The process id.
  public let process: pid_t

  private struct State {
    var input: Int32?
    var result: CommandResult?
  }

  private let state: Mutex<State>
  private let files: TemporaryDirectory

  init(process: pid_t, input: Int32?, files: TemporaryDirectory) {
    self.process = process
    self.files = files
    state = Mutex(State(input: input))
  }

  deinit {
    let (input, ended) = state.withLock { ($0.input, $0.result != nil) }
    if let input { close(input) }
    if !ended {
      Foundation.kill(process, SIGKILL)
      var (status, usage) = (Int32(0), rusage())
      while wait4(process, &status, 0, &usage) < 0, errno == EINTR {}
      TestUsage.record(program: usage)
    }
  }

  /// What the program has printed so far.
  public var output: String { text("output") }

  /// What the program has printed to standard error so far.
  public var errors: String { text("errors") }

  /// Whether it has not ended yet.
  public var isRunning: Bool { poll() == nil }

  /// Sends a signal. Nothing happens when the program has ended.
  public func kill(_ signal: Int32 = SIGKILL) {
    state.withLock { state in
      // Not after it was reaped: the number could belong to another process by then.
      if state.result == nil { Foundation.kill(process, signal) }
    }
  }

  /// Ends the program's standard input.
  public func closeInput() {
    state.withLock { state in
      if let input = state.input { close(input) }
      state.input = nil
    }
  }

  /// Ends the program's standard input, and waits for the end.
  @discardableResult
  public func finish() throws -> CommandResult {
    closeInput()
    return try wait()
  }

  /// Kills the program, and waits for the end.
  @discardableResult
  public func end() throws -> CommandResult {
    kill()
    return try wait()
  }

  /// Waits until a complete line of standard output contains the text, and returns that line.
  ///
  /// - Throws: when the program ends first, or after `limit` seconds.
  @discardableResult
  public func waitForLine(_ text: String, limit: Double = 120) throws -> String {
    let end = Date().addingTimeInterval(limit)
    while true {
      let ended = poll()
      let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      if let line = lines.first(where: { $0.contains(text) }) { return String(line) }
      if let ended { throw SystemFailure("the program ended before it printed \"\(text)\": \(ended)") }
      if Date() > end {
        throw SystemFailure("no line with \"\(text)\" within \(limit) s: \(output)\(errors)")
      }
      usleep(2000)
    }
  }

  /// Waits for the end.
  ///
  /// - Throws: after `limit` seconds; the program is killed then.
  public func wait(limit: Double = 300) throws -> CommandResult {
    let end = Date().addingTimeInterval(limit)
    var pause: UInt32 = 200
    while true {
      if let result = poll() { return result }
      if Date() > end {
        kill()
        throw SystemFailure("the program did not end within \(limit) s: \(output)\(errors)")
      }
      usleep(pause)
      pause = min(pause * 2, 5000)
    }
  }

  private func poll() -> CommandResult? {
    state.withLock { state in
      if let result = state.result { return result }
      var (status, usage) = (Int32(0), rusage())
      guard wait4(process, &status, WNOHANG, &usage) == process else { return nil }
      TestUsage.record(program: usage)
      let signal = status & 0x7f
      let result = CommandResult(
        exitCode: signal == 0 ? (status >> 8) & 0xff : -1, signal: signal == 0 ? nil : signal,
        outputBytes: bytes("output"), errorBytes: bytes("errors"))
      state.result = result
      return result
    }
  }

  private func bytes(_ file: String) -> [UInt8] {
    (try? RawFiles.read(Array(files(file).utf8))).map { Array($0) } ?? []
  }

  private func text(_ file: String) -> String {
    String(decoding: bytes(file), as: UTF8.self)
  }
}
