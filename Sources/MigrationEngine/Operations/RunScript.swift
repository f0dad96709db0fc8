import ContainerTransaction
import Formats

/// `script`: runs a program on a full private copy of the container; what it changed there is found by comparison.
struct RunScript: MigrationOperation {
  static let name = "script"
  static let keys = ScriptCommand.keys + ["environment", "timeout", "down"]
  /// Seconds.
  static let defaultTimeout = 600.0
  private static let longestTimeout = 86_400.0

  private let command: ScriptCommand
  private let down: ScriptCommand?
  private let environment: [String: String]
  private let timeout: Double
  private let files: MigrationFiles

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    command = try ScriptCommand(reader, files)
    down = try reader["down"].map { node in
      if node.scalar != nil { return try ScriptCommand(file: node, files) }
      return try ScriptCommand(YAMLReader(node, what: "`down`", keys: ScriptCommand.keys), files)
    }
    environment = try ScriptEnvironment.additions(reader)
    timeout = try reader["timeout"].map(Self.seconds) ?? Self.defaultTimeout
    self.files = files
  }

  private static func seconds(_ node: YAMLNode) throws -> Double {
    let seconds: Double? =
      switch node.scalar?.value {
      case .integer(let value): Double(value)
      case .real(let value): value
      default: nil
      }
    guard let seconds, seconds > 0, seconds <= longestTimeout else {
      throw node.position.error(
        "`timeout` is a number of seconds up to \(Int(longestTimeout)), not \(node.summary)")
    }
    return seconds
  }

  /// What a program does nobody can know but its author.
  var wayBack: WayBack { down == nil ? .none : .byArguments }
  var hasWrittenDown: Bool { down != nil }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    memory.output = try run(command, direction: "up", on: stage)
    return memory.output
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    guard let down else {
      throw StepFailure(message: "\(command) has no `down`: the migration needs `down` steps")
    }
    return try run(down, direction: "down", on: stage)
  }

  private func run(
    _ command: ScriptCommand, direction: String, on stage: StagedContainer
  ) throws -> [String] {
    try stage.changeCopy { copy in
      let folder = try ScriptFolder(in: copy.work, files)
      var variables = try ScriptEnvironment.variables(of: stage, root: copy.root.path)
      variables["DRYDOCK_DIRECTION"] = direction
      variables.merge(folder.variables) { $1 }
      variables.merge(environment) { $1 }
      let run = ScriptRun(
        command: command, executable: folder.executable(of: command), environment: variables,
        directory: copy.root.path, timeout: timeout, redactor: stage.redactor)
      return try run.run { try copy.users().map(\.description) }
    }
  }
}
