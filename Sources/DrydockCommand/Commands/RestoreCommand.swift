import ArgumentParser
import Drydock
import Foundation

extension ContainerStore: ExpressibleByArgument {}

/// What a restore replaces, apart from what is usual.
struct ExtentOptions: ParsableArguments {
  @Flag(help: "Keep what the archive does not have.") var keepExtra = false
  @Flag(
    help: """
      Also replace existing paths that a rule excludes, if the archive holds them; those stored by \
      `snapshot --include-excluded` need --include-excluded as well.
      """)
  var overwriteExcluded = false
  @Flag(help: "Restore stored paths that a rule excludes, where they are missing.")
  var includeExcluded = false
  @Flag(help: "Restore synchronizable vault items as well, which sync to other devices.")
  var includeSynchronizable = false
  @Flag(
    name: .customLong("keep-set-id"),
    help: "Restore set-user-ID and set-group-ID bits and capabilities, from an archive that you trust.")
  var keepsSetID = false
  @Flag(
    help: """
      Restore what can be read if archives are missing or damaged; other paths are \
      left unchanged, and listed.
      """)
  var partial = false
  @Flag(help: "Read all files of the container, even those known to be unchanged since the snapshot.")
  var checkContents = false
  @Flag(help: "Accept another app's or instance's data.") var fromOther = false

  /// The options of a restore that the flags are.
  var options: RestoreOptions {
    var options = RestoreOptions()
    (options.keepExtra, options.overwriteExcluded) = (keepExtra, overwriteExcluded)
    (options.fromOther, options.keepsSetID) = (fromOther, keepsSetID)
    (options.includeExcluded, options.includesSynchronizable) = (includeExcluded, includeSynchronizable)
    (options.acceptsIncomplete, options.checksContents) = (partial, checkContents)
    return options
  }
}

struct RestoreCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Restore a container to the state of a snapshot.",
    discussion: """
      The container becomes what the archive holds: files created since are removed, \
      unless you give --keep-extra; without a terminal nothing is asked. `drydock \
      rollback` undoes it. What rules exclude from backups (caches, flagged files) is \
      left unchanged. A missing container is created. Vault items return one by one, \
      with --device-key and as their class allows (exit code 3 if some do not).

      Examples:
        drydock restore latest Notes -r Backups --dry-run
        drydock restore Backups/A.tar.zst Notes --path Documents
        drydock restore A.tar.zst Notes --only defaults --migrate -m Migrations
      """)

  @OptionGroup var source: ArchiveOptions
  @OptionGroup var container: ContainerOptions
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Option(name: .customLong("path"), "Only this path, and what is below it; repeatable.", value: "path")
  var paths: [String] = []
  @Option(name: .customLong("only"), "Only this store; repeatable.", value: "store")
  var stores: [ContainerStore] = []
  @Flag(
    help: "Migrate the archive's content first: all of it to the latest version, a part to the container's.")
  var migrate = false
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup(title: OptionTitle.extent) var extent: ExtentOptions
  @Flag(
    help: """
      Do not ask before removing what the archive lacks; without a terminal, or with --json, nothing is asked.
      """)
  var yes = false
  @OptionGroup(title: OptionTitle.keys) var trust: TrustOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  /// How many preserved paths are shown as text.
  private static let shown = 100

  func validate() throws {
    if extent.partial && migrate { throw ValidationError("--partial and --migrate exclude each other") }
  }

  func run() throws {
    let configuration = try common.configuration()
    var keys = try key.keys()
    let archive = try source.repository.open(
      source.archive, configuration, &keys, source.expansion,
      for: try? Container(at: container.path, configuration: configuration, instance: container.instance),
      trusted: trust.keys(configuration), warnsOfClocks: true, acceptsGap: true)
    // For one of a repository the warning was printed.
    if source.archive == archive.path,
      let warning = ClockWarning(future: archive.header.time, of: archive.path)
    {
      Output.warn([warning])
    }
    // What an interrupted command left is ended before the container is looked at.
    let isThere =
      FileManager.default.fileExists(atPath: container.path) && !Container.isNewBundle(container.path)
    let existing = try isThere ? container.open(configuration) : nil
    var options = extent.options
    options.scope = try paths.map { try ContainerPath($0) }
    options.stores = Set(stores)
    options.transaction = try container.wait.transaction(deviceKeys, use)
    let display = try showing.display()
    defer { display.end() }
    options.transaction.progress = display.progress
    let target = try Restore.target(
      container.path, opened: existing, for: archive, configuration: configuration,
      instance: container.instance, fromOther: options.fromOther)
    let catalog = migrate ? try migrations.catalog(configuration) : nil
    if let signer = archive.signer, !common.json, !common.quiet {
      Output.message("signed by \(signer.shown), of \(archive.header.time)")
    }
    if !dryRun, !yes, !common.json, isatty(STDIN_FILENO) == 1 { options.confirmRemovals = Self.confirm }
    let result = try target.plan(.restore(archive, options: options, migrating: catalog)).perform(
      dryRun: dryRun, asJSON: common.json, display: display, unchanged: "nothing to change",
      document: { document($0, archive.signer) }
    ) { result, difference in
      if let difference { Output.dryRun(difference, "a restore would change") }
      write(result, isDone: difference == nil)
    }
    if result.isIncomplete { throw ExitStatus.incomplete.code }
  }

  @Sendable private static func confirm(removing removed: [ContainerPath]) throws {
    let isConfirmed = Output.isConfirmed(
      removed.lazy.map { "- \($0)" }.lines(10),
      "\(NumberText.count(removed.count, "path")) that the archive does not have will be removed.")
    if isConfirmed { return }
    Output.message("nothing was changed; --keep-extra leaves them where they are")
    throw ExitStatus.failed.code
  }

  private static func list(_ paths: [some CustomStringConvertible], _ verb: String) {
    Output.list(paths.lazy.map { "\(verb) \($0)" }, shown, more: "more are \(verb); --json lists them")
  }

  private static func byPath<Value>(_ values: [ContainerPath: Value]) -> [(ContainerPath, Value)] {
    values.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
  }

  private static func missing(_ group: String) -> String {
    group == ContainerPath.groups.description
      ? "a directory `.groups`, where this container shows its groups"
      : "the group \(group.printable), which the container does not have: give it a directory and name it under `groups:` "
        + "in drydock.yaml, then restore once more"
  }

  private func document(_ result: RestoreResult, _ signer: Signer?) -> ResultObject {
    let report = result.restore
    return [
      "signer": signer,
      "restored": report.restored, "removed": report.removed,
      "preserved": Self.byPath(report.preserved).map { ["path": $0, "reason": $1] as ResultObject },
      "restored_under_excluded": report.restoredUnderExcluded, "without_set_id": report.withoutSetID,
      "kept_values": Self.byPath(report.keptValues).map { ["path": $0, "keys": $1] as ResultObject },
      "device_settings": report.deviceSettings,
      "missing_groups": report.missingGroups, "unreadable_archives": report.unreadable,
      "unchanged": report.unchanged, "bytes_read": report.bytesRead,
      "vault": report.vault, "migration": result.migration,
    ]
  }

  private func write(_ result: RestoreResult, isDone: Bool) {
    let report = result.restore
    Output.line(
      "\(isDone ? "restored" : "to restore"): \(NumberText.count(report.restored.count, "path")), removed: "
        + "\(report.removed.count), already up to date: \(report.unchanged), preserved: "
        + "\(report.preserved.count); \(NumberText.size(report.bytesRead)) read from the archive")
    report.vault?.write(isDone: isDone)
    if let migration = result.migration {
      Output.line("migrations of the archive's data:")
      migration.write(isDone ? "ran" : "would run")
    }
    // A dry run shows them in the difference.
    if isDone { Self.list(report.removed, "removed") }
    Self.list(Self.byPath(report.preserved).map { "\($0): \($1)" }, "preserved")
    for path in report.restoredUnderExcluded { Output.line("  restored, although now excluded: \(path)") }
    for (path, keys) in Self.byPath(report.keptValues) {
      Output.line(
        "  \(path): \(NumberText.count(keys, "key")) of iCloud \(keys == 1 ? "keeps its" : "keep their") "
          + "value, which another device may have written since")
    }
    for path in report.deviceSettings {
      Output.warning(
        "\(path): EncryptedSharedPreferences, which only the app on the device that wrote them can read; on another device, "
          + "delete the file, so that the app begins it anew")
    }
    for path in report.withoutSetID.prefix(Self.shown) {
      Output.line("  without its set-id bits or capabilities: \(path)")
    }
    if !report.withoutSetID.isEmpty {
      Output.note(
        "set-user-id, set-group-id or capabilities of \(NumberText.count(report.withoutSetID.count, "path")) "
          + "\(isDone ? "were" : "would be") left out; --keep-set-id restores them from an archive that you trust"
      )
    }
    for archive in report.unreadable {
      let lines = archive.summary.joined(separator: "\n    ")
      Output.line("  \(isDone ? "not restored" : "not to be restored"): \(lines)")
    }
    for group in report.missingGroups { Output.line("  left in the archive: \(Self.missing(group))") }
  }
}
