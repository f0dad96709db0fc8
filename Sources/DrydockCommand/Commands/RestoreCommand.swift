import ArgumentParser
import Drydock
import Foundation

extension ContainerStore: ExpressibleByArgument {}

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Restore a container to the state of a snapshot.",
    discussion: """
      The container becomes what the archive holds, in one step that can be rolled
      back. What a rule excludes from backups (caches, flagged files) is left
      unchanged. A container that does not exist is created. Vault items return one
      by one, with --device-key and as their class allows; the exit code is 3 when
      some do not.

      Examples:
        drydock restore Backups/A.tar.zst Notes --dry-run
        drydock restore latest Notes -r Backups
        drydock restore A.tar.zst Notes --path Documents
        drydock restore A.tar.zst Notes --only defaults --migrate -m Migrations
      """)

  @Argument(help: "An archive: its file, or with -r its id, INSTANCE@latest, INSTANCE@2026-11-14 or latest.")
  var archive: String
  @OptionGroup var container: ContainerOptions
  @OptionGroup var repository: RepositoryOptions
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Option(
    name: .customLong("path"),
    help: ArgumentHelp("Only this path, and what is below it; repeatable.", valueName: "path"))
  var paths: [String] = []
  @Option(
    name: .customLong("only"),
    help: ArgumentHelp(
      "Only this store: \(ContainerStore.allCases.map(\.rawValue).joined(separator: ", ")); repeatable.",
      valueName: "store"))
  var stores: [ContainerStore] = []
  @Flag(help: "Keep what the archive does not have.") var keepExtra = false
  @Flag(help: "Replace what rules exclude, too.") var overwriteExcluded = false
  @Flag(help: "Restore stored paths that a rule excludes, where they are missing.")
  var includeExcluded = false
  @Flag(
    help: """
      Migrate the archive's content first: all of it to the latest version, a part \
      of it to the container's version.
      """)
  var migrate = false
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "Restore synchronizable vault items as well, which sync to other devices.")
  var includeSynchronizable = false
  @Flag(
    name: .customLong("keep-set-id"),
    help: "Restore set-user-ID and set-group-ID bits and capabilities, from an archive that you trust.")
  var keepsSetID = false
  @Flag(help: "Accept another app's or instance's data.") var fromOther = false
  @Flag(help: "Do not ask before removing what the archive does not have.") var yes = false
  @OptionGroup var key: KeyOptions
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var use: UseOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  /// How many preserved paths are shown as text.
  private static let shown = 100

  struct Result: Encodable {
    var transaction: String?
    var restored: [ContainerPath]
    var removed: [ContainerPath]
    var spared: [RestoreReport.Preserved]
    var restoredUnderExcluded: [ContainerPath]
    /// Paths that came back without their set-id bits or capabilities.
    var withoutSetID: [ContainerPath]
    /// Groups of the archive that the container does not have.
    var missingGroups: [String]
    var unchanged: Int
    var bytesRead: UInt64
    var conflicts: [ContainerPath]
    var unseenProcesses: UnseenProcesses?
    var vault: RestoredVault?
    var migration: MigrationReport?
    var difference: ContainerDifference?
  }

  func run() throws {
    let configuration = try common.configuration()
    var keys = try key.keys()
    let file = try repository.archive(archive, configuration, keys, warnsOfClocks: true)
    let opened = try Archive(path: file, keys: keys.opening(file), limit: expansion.limit())
    // Of one of a repository it was said.
    if file == archive, let warning = ClockWarning(opened.header, path: file) { Output.warn([warning]) }
    // What an interrupted command left is ended before the container is looked at.
    let isThere = FileManager.default.fileExists(atPath: container.path)
    let existing = try isThere ? container.open(configuration) : nil
    var options = RestoreOptions()
    options.scope = try paths.map { try ContainerPath($0) }
    options.stores = Set(stores)
    (options.keepExtra, options.overwriteExcluded, options.fromOther) = (
      keepExtra, overwriteExcluded, fromOther
    )
    options.keepsSetID = keepsSetID
    (options.includeExcluded, options.includesSynchronizable) = (includeExcluded, includeSynchronizable)
    options.transaction = try container.transaction().with(deviceKeys).with(use)
    let target = try opened.target(
      container.path, configuration, container.instance, options, opened: existing)
    let catalog = migrate ? try migrations.catalog(configuration) : nil
    if dryRun {
      let outcome = try opened.dryRunRestore(to: target, options: options, migrating: catalog)
      write(outcome.value, transaction: nil, conflicts: [], difference: outcome.difference)
      if outcome.value.restore.isIncomplete { throw ExitStatus.incomplete.code }
      return
    }
    guard try isConfirmed(opened, target, options, catalog) else { throw ExitStatus.failed.code }
    let outcome = try opened.restore(to: target, options: options, migrating: catalog)
    ContainerOptions.reportRecovery(outcome.recovered, target)
    for note in outcome.allNotes { Output.note("drydock: note: \(note)") }
    write(
      outcome.value, transaction: outcome.transaction, conflicts: outcome.conflicts, unseen: outcome.unseen,
      difference: nil)
    try outcome.throwUnlessClean()
    if outcome.value.restore.isIncomplete { throw ExitStatus.incomplete.code }
  }

  private func isConfirmed(
    _ archive: Archive, _ target: Container, _ options: RestoreOptions, _ catalog: MigrationCatalog?
  ) throws -> Bool {
    guard !yes, !common.json, isatty(STDIN_FILENO) == 1 else { return true }
    let plan = try archive.planRestore(to: target, options: options, migrating: catalog)
    guard !plan.removed.isEmpty else { return true }
    for path in plan.removed.prefix(10) { Output.note("  - \(path)") }
    if plan.removed.count > 10 { Output.note("  … and \(plan.removed.count - 10) more") }
    Output.note(
      "\(Output.count(plan.removed.count, "path")) that the archive does not have will be removed. Go on? [y/N]"
    )
    let answer = readLine()?.lowercased() ?? ""
    if answer == "y" || answer == "yes" { return true }
    Output.note("nothing was changed; --keep-extra leaves them where they are")
    return false
  }

  private static func missing(_ group: String) -> String {
    group == ContainerPath.groups.description
      ? "a directory `.groups`, where this container shows its groups"
      : "the group \(group.printable), which the container does not have: give it a directory and name it under `groups:` "
        + "in drydock.yaml, then restore once more"
  }

  private func write(
    _ outcome: RestoreResult, transaction: TransactionID?, conflicts: [ContainerPath],
    unseen: UnseenProcesses? = nil, difference: ContainerDifference?
  ) {
    let report = outcome.restore
    if common.json {
      return Output.json(
        Result(
          transaction: transaction?.description, restored: report.restored, removed: report.removed,
          spared: report.preserved, restoredUnderExcluded: report.restoredUnderExcluded,
          withoutSetID: report.withoutSetID, missingGroups: report.missingGroups, unchanged: report.unchanged,
          bytesRead: report.bytesRead, conflicts: conflicts, unseenProcesses: unseen, vault: report.vault,
          migration: outcome.migration,
          difference: difference))
    }
    if let difference {
      Output.line("dry run: nothing was changed; a restore would change")
      DifferenceText.write(difference)
    }
    let verb = difference == nil ? "restored" : "to restore"
    Output.line(
      "\(verb): \(Output.count(report.restored.count, "path")), removed: \(report.removed.count), "
        + "already up to date: \(report.unchanged), preserved: \(report.preserved.count); "
        + "\(Output.size(report.bytesRead)) read from the archive")
    if let vault = report.vault { RestoredVaultText.write(vault, isDone: difference == nil) }
    if let migration = outcome.migration {
      MigrationText.write(migration, verb: difference == nil ? "ran" : "would run")
    }
    for spared in report.preserved.prefix(Self.shown) {
      Output.line("  preserved \(spared.path): \(spared.reason)")
    }
    let more = report.preserved.count - Self.shown
    if more > 0 { Output.line("  … and \(more) more are preserved; --json lists them") }
    for path in report.restoredUnderExcluded { Output.line("  restored, although now excluded: \(path)") }
    for path in report.withoutSetID.prefix(Self.shown) {
      Output.line("  without its set-id bits or capabilities: \(path)")
    }
    if !report.withoutSetID.isEmpty {
      Output.note(
        "drydock: note: set-user-id, set-group-id or capabilities of \(Output.count(report.withoutSetID.count, "path")) "
          + "\(difference == nil ? "were" : "would be") left out; --keep-set-id restores them from an archive that you trust"
      )
    }
    for group in report.missingGroups { Output.line("  left in the archive: \(Self.missing(group))") }
    for path in conflicts {
      Output.note("drydock: the app changed it at the same moment; conflict copy kept: \(path)")
    }
    if let transaction {
      Output.advice("transaction \(transaction); `drydock rollback` undoes it")
    } else if difference == nil {
      Output.line("nothing to change")
    }
  }
}
