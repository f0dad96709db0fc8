import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation

/// The program that a torture kills: `drydock migrate`, as a rule.
struct Victim {
  /// When.
  enum Kill: CustomStringConvertible {
    case never
    /// Seconds after the start.
    case moment(Double)
    case point(FaultPoint)

    var description: String {
      switch self {
      case .never: "not killed"
      case .moment(let seconds):
        "killed after \((seconds * 1000).formatted(.number.precision(.fractionLength(1)))) ms"
      case .point(let point): "killed at the step `\(point.rawValue)`"
      }
    }
  }

  enum End: Equatable {
    case complete, killed
    /// With what it says.
    case failed(String)
  }

  private let command: [String]
  private let scratch: Directory
  private let redactor: Redactor

  private static let key: ContainerPath = "torture-key.txt"
  private static let temporary: ContainerPath = "torture-tmp"
  private static let errors: ContainerPath = "torture-errors"

  init(_ command: [String], _ work: FixtureWork) throws {
    (self.command, scratch, redactor) = (command, work.scratch, work.runner.redactor)
    try scratch.createDirectories(Self.temporary)
    let key = KeyFile.text(of: work.runner.deviceKeys.present, created: Date().ISO8601Format())
    try SecretFile.create(scratch.full(Self.key), key)
  }

  func removeKey() { try? scratch.removeFile(Self.key, missingIsFine: true) }

  /// Runs it on a container, and waits until it has ended.
  func run(on container: Container, killedAt kill: Kill) throws -> (end: End, seconds: Double) {
    let process = Process()
    process.executableURL = URL(filePath: command[0])
    process.arguments = command.dropFirst() + [container.root]
    process.environment = environment(kill)
    try scratch.removeFile(Self.errors, missingIsFine: true)
    try scratch.create(Self.errors, [])
    let errors = try FileHandle(forWritingTo: URL(filePath: scratch.full(Self.errors)))
    defer { try? errors.close() }
    (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, FileHandle.nullDevice)
    process.standardError = errors
    let start = ContinuousClock.now
    do {
      try process.run()
    } catch {
      throw DrydockError(.notBuilt, "the program to kill cannot be started: \(error)", path: command[0])
    }
    if case .moment(let seconds) = kill {
      Thread.sleep(forTimeInterval: seconds)
      if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
    }
    process.waitUntilExit()
    return (try end(process), (ContinuousClock.now - start) / .seconds(1))
  }

  private func end(_ process: Process) throws -> End {
    if process.terminationReason == .uncaughtSignal, process.terminationStatus == SIGKILL { return .killed }
    if process.terminationReason == .exit, process.terminationStatus == 0 { return .complete }
    let said = String(decoding: try scratch.contents(Self.errors).suffix(2000), as: UTF8.self)
    let how = process.terminationReason == .exit ? "exit code" : "signal"
    return .failed(
      "\(how) \(process.terminationStatus): "
        + redactor.shown(message: said.trimmingCharacters(in: .whitespacesAndNewlines)))
  }

  private func environment(_ kill: Kill) -> [String: String] {
    var variables = ProcessInfo.processInfo.environment
    variables["DRYDOCK_DEVICE_KEY"] = scratch.full(Self.key)
    // What a killed program leaves goes with the rest.
    variables["TMPDIR"] = scratch.full(Self.temporary)
    variables["DRYDOCK_KILL_AT"] = nil
    // Archives of the real app are nothing to a fixture.
    variables["DRYDOCK_REPOSITORY"] = nil
    if case .point(let point) = kill { variables["DRYDOCK_KILL_AT"] = point.rawValue }
    return variables
  }
}
