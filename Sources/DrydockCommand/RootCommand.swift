import ArgumentParser
import Drydock

/// The command `drydock` itself: what its help says, and its commands.
struct RootCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drydock",
    abstract: "Back up, migrate and restore an app's data, each in one atomic step.",
    discussion: """
      A container is the directory with one app's data: settings, secrets,
      databases, files.

        drydock inspect Notes                what is in it, and what a backup omits
        drydock snapshot Notes -r Backups    back it up, while the app runs
        drydock migrate Notes -m Migrations --dry-run
                                             what would change, key by key
        drydock migrate Notes -m Migrations  all pending migrations, or none
        drydock rollback Notes               undo that, keeping later changes
        drydock restore latest Notes -r Backups
                                             back to the snapshot's state

      Exit codes:
        0   done, or nothing to do
        1   failed, nothing changed
        2   changes are pending (with --exit-code), or verify finds the container
            to be another than the archive
        3   done, but incomplete
        4   validation: edited, missing, out of order, unknown version, damaged
            archive, wrong key, other instance
        5   locked, in use, or changed meanwhile
        6   conflict: both sides changed the same thing
        64  usage
      """,
    version: DrydockVersion.number,
    subcommands: [
      InspectCommand.self, ExplainCommand.self, SnapshotCommand.self, ListCommand.self, ShowCommand.self,
      VerifyCommand.self, DiffCommand.self, ExportCommand.self, RekeyCommand.self, RestoreCommand.self,
      MigrateCommand.self,
      StatusCommand.self,
      ValidateCommand.self, NewCommand.self, ReleaseCommand.self, BaselineCommand.self, RepairCommand.self,
      RollbackCommand.self, LogCommand.self, RecoverCommand.self,
      VaultCommand.self, KeygenCommand.self, InitCommand.self,
    ])

  /// The parser would call a mistyped command an argument too many.
  static func refuseUnknownCommand() throws {
    var (known, path) = (configuration.subcommands, "")
    for word in CommandLine.arguments.dropFirst() {
      // The rest are arguments of a command, or options.
      guard !known.isEmpty, !word.hasPrefix("-"), path + word != "help" else { return }
      let names = known.compactMap { $0.configuration.commandName }
      guard let command = known.first(where: { $0.configuration.commandName == word }) else {
        throw UsageError(
          message: "there is no command \(path)\(word); \(NearestWord.hint(for: word, among: names))")
      }
      (known, path) = (command.configuration.subcommands, path + word + " ")
    }
  }
}
