import ArgumentParser
import Drydock

/// The program's own command: what its help says, and its commands.
struct RootCommand: ParsableCommand {
  /// Made when it is first asked for: the program is known then.
  static let configuration = CommandConfiguration(
    commandName: Program.current.name,
    abstract: "Back up, migrate and restore an app's data, each in one atomic step.",
    discussion: """
      A container is the directory with one app's data: settings, secrets, \
      databases, files.

      \(examples)

      Exit codes:
        0   done, or nothing to do
        1   failed, nothing changed; or done, but its output could not be written
        2   changes are pending or the two sides differ (with --exit-code), or the
            container differs from the archive (verify)
        3   done, but incomplete
        4   validation: migrations modified, missing or out of order; unknown
            version, damaged archive, missing or wrong key, other app or instance;
            findings (audit --fail-on)
        5   locked, in use, or changed meanwhile
        6   conflict: both sides changed the same thing
        64  usage

      Environment:
        DRYDOCK_CONFIG, DRYDOCK_REPOSITORY, DRYDOCK_MIGRATIONS, DRYDOCK_FIXTURES,
        DRYDOCK_DEVICE_KEY, DRYDOCK_IDENTITY, DRYDOCK_RECIPIENTS, DRYDOCK_SIGN,
        DRYDOCK_TRUSTED, DRYDOCK_PASSWORD_FILE, DRYDOCK_LOCK_TIMEOUT,
        DRYDOCK_BUSY_TIMEOUT, DRYDOCK_MAX_SIZE, DRYDOCK_LIMIT_RATE,
        DRYDOCK_PROGRESS, DRYDOCK_CACHE, DRYDOCK_COMMIT
        An option overrides its variable, a variable overrides drydock.yaml.
      """,
    version: DrydockVersion.number,
    groupedSubcommands: [
      CommandGroup(
        name: "Everyday",
        subcommands: [
          InitCommand.self, InspectCommand.self, SnapshotCommand.self, RestoreCommand.self, NewCommand.self,
          TestCommand.self, MigrateCommand.self, RollbackCommand.self,
        ]),
      CommandGroup(
        name: "Migration",
        subcommands: [
          ValidateCommand.self, FixtureCommand.self, StatusCommand.self, ReleaseCommand.self,
          BaselineCommand.self,
          RepairCommand.self, SummaryCommand.self,
        ]),
      CommandGroup(
        name: "Archive",
        subcommands: [
          ListCommand.self, ShowCommand.self, DiffCommand.self, VerifyCommand.self, ForgetCommand.self,
          TagCommand.self, ExportCommand.self, RekeyCommand.self, SignCommand.self, KeygenCommand.self,
        ]),
      CommandGroup(
        name: "Container",
        subcommands: [
          DefaultsCommand.self, VaultCommand.self, ImportCommand.self, AuditCommand.self, ExplainCommand.self,
          LogCommand.self, RecoverCommand.self,
        ]),
    ])

  /// The main job, in two columns; what is too long for the first has its meaning below.
  private static var examples: String {
    let migrations = Program.current.plan == nil ? " -m Migrations" : ""
    let lines = [
      ("inspect Notes", "what is in it, and what a backup omits"),
      ("snapshot Notes -r Backups", "back it up, while the app runs"),
      ("migrate Notes\(migrations) --dry-run", "what would change, key by key"),
      ("migrate Notes\(migrations)", "all pending migrations, or none"),
      ("rollback Notes", "undo that, keeping later changes"),
      ("restore latest Notes -r Backups", "back to the snapshot's state"),
    ]
    let width = 37
    return lines.map { arguments, meaning in
      let command = "\(Program.current.name) \(arguments)"
      let fits = command.count < width
      let gap = fits ? width - command.count : width + 2
      return "  " + command + (fits ? "" : "\n") + String(repeating: " ", count: gap) + meaning
    }.joined(separator: "\n")
  }

  /// What other tools for backups and migrations call these commands.
  private static let neighbours = [
    "backup": "snapshot", "create": "snapshot", "save": "snapshot", "check": "verify", "fsck": "verify",
    "snapshots": "list", "archives": "list", "ls": "list", "files": "show", "extract": "restore",
    "undo": "rollback",
    "down": "rollback --down", "revert": "rollback", "redo": "rollback --redo", "plan": "migrate --dry-run",
    "up": "migrate", "apply": "migrate", "run": "migrate", "prune": "forget", "delete": "forget",
    "history": "log",
    "generate": "new", "lint": "validate", "record": "test --record", "copy": "export",
    "settings": "defaults",
    "secrets": "vault", "keychain": "vault", "info": "inspect", "setup": "init",
  ]

  /// The parser would call a mistyped command an argument too many.
  static func refuseUnknownCommand() throws {
    var (known, path) = (configuration.subcommands, "")
    for word in processArguments.dropFirst() {
      // The rest are arguments of a command, or options.
      guard !known.isEmpty, !word.hasPrefix("-") else { return }
      if path + word == "help" { continue }
      if path.isEmpty, let own = neighbours[word] {
        throw UsageError("unknown command \(word); here it is `\(Program.current.name) \(own)`")
      }
      let names = known.compactMap { $0.configuration.commandName }
      guard let command = known.first(where: { $0.configuration.commandName == word }) else {
        throw UsageError("unknown command \(path)\(word); \(NearestWord.hint(for: word, among: names))")
      }
      (known, path) = (command.configuration.subcommands, path + word + " ")
    }
  }
}
