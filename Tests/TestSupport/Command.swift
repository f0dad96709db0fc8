import Foundation

/// What a finished program left.
public struct CommandResult: Sendable, CustomStringConvertible {
  /// The exit status, or `-1` when a signal ended the program.
  public let exitCode: Int32

  /// The signal that ended the program, if one did.
  public let signal: Int32?

  /// Standard output as raw bytes.
  public let outputBytes: [UInt8]

  /// Standard error as raw bytes.
  public let errorBytes: [UInt8]

  /// Standard output as text.
  public var output: String { String(decoding: outputBytes, as: UTF8.self) }

  /// Standard error as text, but for the note on processes that cannot be seen: whether there are any depends on the
  /// machine that the tests run on, such as a container.
  public var errors: String {
    let note = "drydock: note: not all processes can be seen: "
    // Without a regular expression, which would be parsed each time.
    guard Data(errorBytes).holds(Data(note.utf8)) else { return allErrors }
    return allErrors.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix(note) }.joined(separator: "\n")
  }

  /// Standard error as text.
  public var allErrors: String { String(decoding: errorBytes, as: UTF8.self) }

  /// Whether the program ended by itself with status 0.
  public var succeeded: Bool { exitCode == 0 }

  /// Everything, for the message of a failed expectation.
  public var description: String {
    let end = signal.map { "ended by signal \($0)" } ?? "exit \(exitCode)"
    return "\(end)\n--- standard output\n\(output)\n--- standard error\n\(errors)"
  }
}

/// Runs real programs.
public enum Command {
  /// Runs a program to its end.
  ///
  /// - Parameters:
  ///   - environment: Added to this process's variables, from which `DRYDOCK_*` are taken out, with
  ///     `DRYDOCK_CACHE=none` and a directory of its own as `TMPDIR`: programs of other tests leave files when they are killed, and
  ///     the next one removes them. `nil` removes one.
  ///   - input: Standard input; empty when absent.
  ///   - directory: The working directory.
  ///   - limit: A guard against a hanging program, in seconds: it is killed then, and this throws.
  public static func run(
    _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:],
    input: [UInt8] = [], directory: String? = nil, limit: Double = 300
  ) throws -> CommandResult {
    let command = try spawn(
      executable, arguments, environment: environment, input: input, directory: directory)
    return try command.wait(limit: limit)
  }

  /// Runs a program to its end.
  ///
  /// - Throws: when it does not succeed, too.
  @discardableResult
  public static func succeed(
    _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:],
    input: [UInt8] = [], directory: String? = nil, limit: Double = 300
  ) throws -> CommandResult {
    let result = try run(
      executable, arguments, environment: environment, input: input, directory: directory, limit: limit)
    guard result.succeeded else { throw SystemFailure("\(executable) \(arguments): \(result)") }
    return result
  }

  /// Starts a program whose standard input stays open until ``RunningCommand/closeInput()``, unless `input` is given.
  public static func spawn(
    _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:],
    input: [UInt8]? = nil, directory: String? = nil
  ) throws -> RunningCommand {
    // Output goes to files, not pipes: nothing has to drain them, and a killed program's last words stay.
    let files = try TemporaryDirectory()
    // Like the system's directory for temporary files: some programs run as another user.
    guard chmod(files.path, 0o1777) == 0 else {
      throw SystemFailure(call: "chmod", path: Array(files.path.utf8))
    }
    var launch = Launch(
      executable: executable, arguments: arguments,
      environment: merged(["TMPDIR": files.path].merging(environment) { $1 }),
      output: files("output"), errors: files("errors"))
    if let directory {
      launch.directory = directory
      // As a shell does.
      launch.environment["PWD"] = directory
    }
    if let input {
      try RawFiles.write(input, to: Array(files("input").utf8))
      launch.input = .file(files("input"))
    }
    let (process, inputWriter) = try launch.start()
    return RunningCommand(process: process, input: inputWriter, files: files)
  }

  private static func merged(_ changes: [String: String?]) -> [String: String] {
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("DRYDOCK_") }
    // The user's own cache is left alone.
    variables["DRYDOCK_CACHE"] = "none"
    // For the test process: it makes each start slower.
    variables["SWIFT_BACKTRACE"] = nil
    for (name, value) in changes { variables[name] = value }
    return variables
  }
}
