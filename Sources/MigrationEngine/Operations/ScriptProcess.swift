import Cryptography
import Dispatch
import FileSystem
import Foundation
import Subprocess
import Synchronization

/// A process in its own session, with empty standard input or a secret there, and a time limit for it and its child processes.
struct ScriptProcess: Sendable {
  enum End: Sendable, Equatable {
    case exit(Int32)
    case signal(Int32)
    case timedOut
  }

  struct Outcome: Sendable {
    var end: End
    /// Processes that still use its directory.
    var left: [String]
    var output, errors: ScriptOutput
  }

  struct StartFailure: Error {
    var reason: String
  }

  /// Between SIGTERM and SIGKILL.
  private static let grace = Duration.seconds(2)
  /// For the output of child processes, after the program itself has ended.
  private static let drainTime = Duration.seconds(1)

  /// User-interactive, the highest one. Swift has as many threads as processors for each priority: callers that block all
  /// threads of another priority cannot delay the supervision of a script.
  private static let priority = TaskPriority(rawValue: 0x21)

  let executable: String
  let arguments: [String]
  let environment: [String: String]
  let directory: String
  /// Seconds.
  let timeout: Double
  /// What it reads from standard input; nothing when nil.
  var input: SecretBytes?

  /// Runs it, and blocks this thread until it has ended.
  ///
  /// - Parameter users: the processes that use its directory; called after it has ended, before its children are killed.
  /// - Throws: ``StartFailure``, and what `users` throws.
  func run(users: @escaping @Sendable () throws -> [String]) throws -> Outcome {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Result<Outcome, any Error>?>(nil)
    Task.detached(priority: Self.priority) {
      let made: Result<Outcome, any Error>
      do { made = .success(try await start(users: users)) } catch { made = .failure(error) }
      result.withLock { $0 = made }
      done.signal()
    }
    done.wait()
    guard let made = result.withLock({ $0 }) else { throw StartFailure(reason: "it was not run") }
    return try made.get()
  }

  private func start(users: @escaping @Sendable () throws -> [String]) async throws -> Outcome {
    var options = PlatformOptions()
    // A session has its own process group, which can be terminated as a whole, and no terminal.
    options.createSession = true
    let variables = Dictionary(
      uniqueKeysWithValues: environment.map { (Environment.Key(stringLiteral: $0), $1) })
    let configuration = Configuration(
      executable: executable.hasPrefix("/") ? .path(.init(executable)) : .name(executable),
      arguments: Arguments(arguments), environment: .custom(variables), workingDirectory: .init(directory),
      platformOptions: options)
    do {
      guard let input else { return try await run(configuration, input: .none, users) }
      let pipe = try input.pipe()
      return try await run(
        configuration,
        input: .fileDescriptor(.init(rawValue: pipe), closeAfterSpawningProcess: true), users)
    } catch let error as SubprocessError {
      throw StartFailure(reason: Self.reason(error))
    }
  }

  private func run<Input: InputProtocol>(
    _ configuration: Configuration, input: Input, _ users: @escaping @Sendable () throws -> [String]
  ) async throws -> Outcome {
    let result = try await Subprocess.run(
      configuration, input: input, output: .sequence, error: .sequence
    ) { execution in
      try await supervise(execution, users)
    }
    var outcome = result.closureResult
    if outcome.end != .timedOut {
      outcome.end =
        switch result.terminationStatus {
        case .exited(let code): .exit(code)
        case .signaled(let signal): .signal(signal)
        }
    }
    return outcome
  }

  private func supervise<Input: InputProtocol>(
    _ execution: Execution<Input, SequenceOutput, SequenceOutput>, _ users: @Sendable () throws -> [String]
  ) async throws -> Outcome {
    let clock = ContinuousClock()
    let deadline = clock.now + .seconds(timeout)
    let limit = ReadingLimit()
    async let output = read(execution.standardOutput, until: limit)
    async let errors = read(execution.standardError, until: limit)
    // Signal 0 is none: that step only waits. A program that ends by itself is waited for no longer.
    await execution.teardown(using: [
      .send(signal: Signal(rawValue: 0), toProcessGroup: true, allowedDurationToNextStep: .seconds(timeout)),
      .send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: Self.grace),
    ])
    let isTimedOut = clock.now >= deadline
    let left = Result { isTimedOut ? [] : try users() }
    // Until this returns, the process is not reaped, so that its group's ID is not reused.
    try? execution.send(signal: .kill, toProcessGroup: true)
    limit.set(clock.now + Self.drainTime)
    return Outcome(
      end: isTimedOut ? .timedOut : .exit(0), left: try left.get(), output: try await output,
      errors: try await errors)
  }

  /// Reads a stream until it is closed; after the program has ended, only a little longer.
  private func read(
    _ stream: SubprocessOutputSequence, until limit: ReadingLimit
  ) async throws -> ScriptOutput {
    var output = ScriptOutput()
    for try await buffer in stream {
      buffer.withUnsafeBytes { output.append($0) }
      if limit.isOver { break }
    }
    return output
  }

  private static func reason(_ error: SubprocessError) -> String {
    switch error.code {
    case .executableNotFound:
      return "the program does not exist; check PATH and its line `#!`"
    default:
      let why = error.underlyingError.map { String(describing: $0).lowercased() } ?? String(describing: error)
      return "\(why); check its line `#!`"
    }
  }
}

/// The time at which reading ends, once it is known.
private final class ReadingLimit: Sendable {
  private let end = Mutex<ContinuousClock.Instant?>(nil)

  func set(_ end: ContinuousClock.Instant) { self.end.withLock { $0 = end } }

  var isOver: Bool { end.withLock { $0.map { ContinuousClock.now > $0 } ?? false } }
}

/// The output of a program on one stream; only its beginning and end are kept.
struct ScriptOutput: Sendable {
  static let headSize = 16 << 10
  static let tailSize = 48 << 10

  private var head: [UInt8] = []
  private var tail: [UInt8] = []
  private var total = 0

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    total += bytes.count
    let first = bytes.prefix(Self.headSize - head.count)
    head.append(contentsOf: first)
    tail.append(contentsOf: bytes.dropFirst(first.count).suffix(2 * Self.tailSize))
    // Truncated now and then, not with each write.
    if tail.count > 2 * Self.tailSize { tail.removeFirst(tail.count - Self.tailSize) }
  }

  /// The text, without trailing newlines; a note replaces what was left out.
  var text: String {
    let end = tail.suffix(Self.tailSize)
    let leftOut = total - head.count - end.count
    var text = String(decoding: head, as: UTF8.self)
    if leftOut > 0 { text += "\n[… \(leftOut) bytes are left out …]\n" }
    text += String(decoding: end, as: UTF8.self)
    while text.last?.isNewline == true { text.removeLast() }
    return text
  }

  static func lastLines(_ text: String, _ count: Int) -> String {
    text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).suffix(count).joined(
      separator: "\n")
  }

  /// A text below a message, with each line indented.
  static func indented(_ text: String) -> String {
    text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { "  " + $0 }
      .joined(separator: "\n")
  }
}
