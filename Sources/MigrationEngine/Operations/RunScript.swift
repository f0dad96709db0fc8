import AppContainer
import AppStores
import ContainerTransaction
import FileSystem
import Formats
import Foundation

struct RunScript: MigrationOperation {
  static let kinds = [
    OperationKind(
      "script",
      "[Runs a program](Migrations.md#scripts) on a private copy of the container and takes over its changes.",
      Argument(
        [
          "run": "a file of the migration's directory, or",
          "program": "an installed program: an absolute path, or a name that is searched for in `PATH`",
          "arguments": "a list of texts. No shell interprets them: `$HOME` and `*` are literal",
        ], read: ScriptCommand.init),
      Argument(
        "environment", "additional variables: name: text. Names that start with `DRYDOCK_` are reserved",
        ifGiven: ScriptEnvironment.additions),
      Argument("stdin", "vault items for standard input", ifGiven: ScriptInput.init),
      Argument("timeout", "seconds, up to a day; default 600", ifGiven: seconds),
      Argument([
        "down": "the down migration: a file of the migration's directory, or a mapping with `run` or "
          + "`program`, and `arguments`"
      ]) { reader, files in
        try reader["down"].map { node in
          let command = node.scalar == nil ? node : YAMLNode([("run", node)], at: node.position)
          return try ScriptCommand(YAMLReader(command, what: "`down`", keys: ScriptCommand.keys), files)
        }
      },
      Argument([:]) { _, files in
        // A program may read any of them.
        files.useAll()
        return files
      }
    ) { Self(command: $0, environment: $1 ?? [:], input: $2, timeout: $3 ?? 600, down: $4, files: $5) }
  ]
  /// Seconds.
  private static let longestTimeout = 86_400.0
  /// Lines of a failed program's output that its error quotes.
  private static let quotedLines = 20

  private let command: ScriptCommand
  private let environment: [String: String]
  private let input: ScriptInput?
  private let timeout: Double
  private let down: ScriptCommand?
  private let files: MigrationFiles

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

  var effects: StepEffects { StepEffects(databases: .all, needsVault: input != nil) }
  var reversal: Reversal { down == nil ? .none : .explicit }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    recorded.output = try run(command, direction: "up", on: stage)
    return recorded.output
  }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    guard let down else {
      throw StepFailure("\(command) has no `down`: the migration needs `down` steps")
    }
    return try run(down, direction: "down", on: stage)
  }

  private func run(
    _ command: ScriptCommand, direction: String, on stage: StagedContainer
  ) throws -> [String] {
    let items = try input?.items(on: stage)
    return try stage.changeCopy { copy in
      let folder = try ScriptFolder(in: copy.work, files)
      var variables = try ScriptEnvironment.variables(of: stage, root: copy.root.path)
      variables["DRYDOCK_DIRECTION"] = direction
      variables.merge(folder.variables) { $1 }
      variables.merge(environment) { $1 }
      let process = ScriptProcess(
        executable: folder.executable(of: command), arguments: command.arguments, environment: variables,
        directory: copy.root.path, timeout: timeout, input: items?.document.encoded())
      do {
        let result = try process.run { try copy.users().map(\.description) }
        let secrets = items?.document.sorted.map(\.value) ?? []
        return try (items?.notes ?? [])
          + notes(on: result, of: command) { text in
            stage.redactor.shown(message: stage.redactor.shown(text, without: secrets))
          }
      } catch let failure as ScriptProcess.StartFailure {
        throw StepFailure("\(command) cannot be started: \(failure.reason)")
      }
    }
  }

  /// The output.
  ///
  /// - Throws: ``StepFailure`` unless the program ended in time, with exit code 0, and without running child processes.
  private func notes(
    on result: ScriptProcess.Outcome, of command: ScriptCommand, shown: (String) -> String
  ) throws -> [String] {
    let output = shown(result.output.text)
    let errors = shown(result.errors.text)
    if let problem = problem(result, command) {
      let text = ScriptOutput.lastLines(errors.isEmpty ? output : errors, Self.quotedLines)
      throw StepFailure(
        problem
          + (text.isEmpty ? "; it wrote nothing" : "; it wrote\n" + ScriptOutput.indented(text)))
    }
    return [("", output), (" to standard error", errors)].compactMap { stream, text in
      text.isEmpty ? nil : "\(command) wrote\(stream)\n" + ScriptOutput.indented(text)
    }
  }

  private func problem(_ result: ScriptProcess.Outcome, _ command: ScriptCommand) -> String? {
    switch result.end {
    case .timedOut:
      "\(command) was ended after \(PropertyListValue.real(timeout)) seconds, with all that it started: give it more time with `timeout`, or make it quicker"
    case .signal(let number):
      "\(command) was ended by signal \(number) (\(String(cString: strsignal(number))))"
    case .exit(0) where result.left.isEmpty: nil
    case .exit(0):
      "\(command) ended while what it had started went on (\(result.left.joined(separator: "; "))): it must wait for that"
    case .exit(let code): "\(command) ended with exit code \(code)"
    }
  }
}

/// The program of a script step: a file of the migration's directory, or an installed program.
struct ScriptCommand: Sendable, CustomStringConvertible {
  static let keys = ["run", "program", "arguments"]

  enum Kind: Sendable {
    /// By its path in the migration's directory.
    case file(String)
    /// By an absolute path, or a name in PATH.
    case program(String)
  }

  let kind: Kind
  let arguments: [String]

  init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
    arguments = try reader.texts("arguments") ?? []
    let (key, node) = try reader.only(
      ["run", "program"],
      needs: "`run`, a file of the migration's directory, or `program`, an installed program")
    kind = key == "run" ? try Self.file(node, files) : try Self.program(node)
  }

  private static func file(_ node: YAMLNode, _ files: MigrationFiles) throws -> Kind {
    let name = try node.text("`run`")
    _ = try files.bytes(of: name, namedAt: node.position)
    return .file(name)
  }

  private static func program(_ node: YAMLNode) throws -> Kind {
    let name = try node.text("`program`")
    guard !name.isEmpty, !name.utf8.contains(0), name.hasPrefix("/") || !name.contains("/") else {
      throw node.position.error("`program` is an absolute path, or a name in PATH")
    }
    return .program(name)
  }

  /// For messages: `convert.sh`.
  var description: String {
    switch kind {
    case .file(let name), .program(let name): "`\(name)`"
    }
  }
}

/// The argument `stdin`: what a script reads from standard input. Only vault items that the migration names.
struct ScriptInput: Sendable {
  private let selections: [(selection: VaultSelection, ifMissing: IfMissing)]

  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "`stdin`", keys: ["vault"])
    let vault = try reader.required("vault")
    let nodes = vault.sequence ?? [vault]
    if nodes.isEmpty { throw vault.position.error("`vault` of `stdin` is an empty list: name items") }
    selections = try nodes.map { node in
      let reader = try YAMLReader(
        node, what: "`vault` of `stdin`", keys: ["if-missing"] + VaultSelection.keys)
      return (try VaultSelection(reading: reader), try reader.ifMissing())
    }
  }

  /// A document with these items, as a vault has it.
  ///
  /// - Returns: the document, and notes on items that do not exist.
  func items(on stage: StagedContainer) throws -> (document: Vault, notes: [String]) {
    var edit = try VaultEdit(stage)
    let items = try selections.flatMap { try edit.items($0.selection, $0.ifMissing) }
    return (Vault(device: try stage.vault()?.device ?? "", items: items), edit.notes)
  }
}

/// The environment of a script: a few inherited variables and Drydock's. The rest of the environment is not passed on,
/// since it may contain keys and passwords.
enum ScriptEnvironment {
  private static let inherited = ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TZ", "USER"]
  private static let reserved = "DRYDOCK_"

  /// The argument `environment`.
  static func additions(_ node: YAMLNode) throws -> [String: String] {
    var variables: [String: String] = [:]
    for pair in try node.pairs("`environment`").pairs {
      guard case .string(let name) = pair.key.value, isName(name) else {
        throw pair.keyPosition.error(
          "`\(pair.key.source)` is not a variable's name: use letters, digits and `_`, and no digit first")
      }
      guard !name.hasPrefix(reserved) else {
        throw pair.keyPosition.error(
          "variables that start with \(reserved) belong to Drydock: use another name")
      }
      let value = try pair.value.text("`\(name)`")
      guard !value.utf8.contains(0) else { throw pair.value.position.error("`\(name)` contains a NUL") }
      variables[name] = value
    }
    return variables
  }

  private static func isName(_ name: String) -> Bool {
    name.utf8.first.map { !$0.isDigit } == true
      && name.utf8.allSatisfy { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") }
  }

  /// - Parameter root: the absolute path of the copy that the script works on.
  static func variables(of stage: StagedContainer, root: String) throws -> [String: String] {
    var variables = ProcessInfo.processInfo.environment.filter { name, _ in
      inherited.contains(name) || name.hasPrefix("LC_")
    }
    let container = stage.container
    variables["DRYDOCK_CONTAINER"] = root
    variables["DRYDOCK_APP"] = container.app
    variables["DRYDOCK_INSTANCE"] = container.instance
    variables["DRYDOCK_LAYOUT"] = container.layout.rawValue
    variables["DRYDOCK_DEFAULTS"] = container.standardDefaults.map { root + "/\($0)" }
    for name in container.configuration.databases.keys {
      guard let place = try stage.databasePlace(name) else { continue }
      let suffix = name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
      variables["DRYDOCK_DATABASE_" + String(suffix)] = root + "/\(place)"
    }
    return variables
  }
}

/// The private directory beside the copy that a script works on: the migration's files, as the checksum covers them, and
/// temporary files.
struct ScriptFolder {
  private static let migration: ContainerPath = "migration"
  private static let temporary: ContainerPath = "tmp"

  /// The variables that name it.
  let variables: [String: String]
  private let directory: Directory

  init(in work: Directory, _ files: MigrationFiles) throws {
    directory = work
    try work.createDirectory(Self.temporary)
    var variables = ["TMPDIR": work.full(Self.temporary)]
    if files.isDirectory {
      try work.createDirectory(Self.migration)
      for (name, bytes) in files.used {
        let path = try ContainerPath(Self.migration.description + "/" + name)
        try work.createDirectories(path.parent)
        // All are executable: version control and packages may lose that mode.
        try work.create(path, bytes, mode: 0o700)
      }
      variables["DRYDOCK_MIGRATION"] = work.full(Self.migration)
    }
    self.variables = variables
  }

  /// The absolute path of a migration's file, or a program as it was named.
  func executable(of command: ScriptCommand) -> String {
    switch command.kind {
    case .file(let name): directory.full(Self.migration) + "/" + name
    case .program(let name): name
    }
  }
}

/// The output of scripts, from the undo log.
package enum ScriptLog {
  /// A text for each stream of each script of a transaction, in the order in which they ran.
  ///
  /// - Throws: ``DrydockError``: `vaultLocked` when it is sealed and no device key opens it, `damagedHistory`.
  package static func output(
    of transaction: TransactionID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [String] {
    guard let bytes = try Transaction.steps(of: transaction, in: container, options: options) else {
      return []
    }
    return try PriorValues.Run(decoding: bytes).output
  }
}
