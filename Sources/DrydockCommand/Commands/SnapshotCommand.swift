import ArgumentParser
import Drydock
import Foundation

struct SnapshotCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot", abstract: "Back up a container to an archive; the app may be running.",
    discussion: """
      Prints the archive's path. The archive is encrypted only if you give recipients \
      (--recipient, or `recipients:` in drydock.yaml) or a passphrase; no secret key is \
      needed. If the repository has an earlier archive of the container that can be read \
      (unencrypted, cached, or with --identity), only what changed since is stored; the \
      new archive needs the earlier one. The container is only read, but an interrupted \
      command on it is completed or reverted first. Stock tools open the archive: \
      `tar --zstd -tf ARCHIVE`, or if it is encrypted to recipients, \
      `age -d -i key.txt ARCHIVE | tar --zstd -t`.

      Examples:
        drydock snapshot Notes -r Backups
        drydock snapshot Notes -r Backups --recipient age1… --tag release
        drydock snapshot --all Customers -r Backups --run nightly-2026-11-20
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var repository: RepositoryOptions
  @Option(name: .shortAndLong, "Write to this new file instead of a repository.", value: "file")
  var output: String?
  @Flag(
    help:
      "Also store what rules exclude, except Drydock's own state; restored on demand only.")
  var includeExcluded = false
  @Flag(help: "Write a full archive, which needs no earlier one.") var full = false
  @Option(name: .customLong("tag"), "Tag the archive in the repository; repeatable.", value: "tag")
  var tags: [String] = []
  @OptionGroup(title: OptionTitle.keys) var recipients: RecipientOptions
  @OptionGroup(title: OptionTitle.keys) var signing: SigningOptions
  @OptionGroup(title: OptionTitle.keys) var key: SourceKeyOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func validate() throws { try container.requireAny() }

  func run() throws {
    let configuration = try common.configuration()
    guard output == nil || repository.repository == nil else {
      throw UsageError("give either -r REPOSITORY or -o FILE")
    }
    guard output == nil || tags.isEmpty else {
      throw UsageError("--tag needs a repository: tags are kept there, not in the archive")
    }
    for tag in tags { try refuseSecret(as: tag) }
    let place = output == nil ? repository.path(configuration).map(Repository.init) : nil
    guard place != nil || output != nil else {
      throw UsageError(
        "no place for the archive; give -r REPOSITORY or -o FILE, or `repository: DIRECTORY` in drydock.yaml")
    }
    let encryption = try recipients.encryption(configuration)
    let signing = try signing.copies(configuration)
    if let batch = try container.batch(configuration, "snapshot", asJSON: common.json) {
      guard let place else { throw UsageError("--all needs -r REPOSITORY: -o names one file") }
      return try run(batch, into: place, options(encryption, signing))
    }
    try container.one.reading(configuration, expansion) { opened in
      try place?.createIfNeeded()
      var options = try options(encryption, signing)
      let report = try showing.during {
        options.progress = $0
        return try place.map { try opened.snapshot(into: $0, options: options) }
          ?? opened.snapshot(to: output ?? "", options: options)
      }
      try show(report, opened, options)
    }
  }

  /// How the archives are written, but for the progress.
  private func options(_ encryption: AgeTarget?, _ signing: CopySigning) throws -> SnapshotOptions {
    var options = SnapshotOptions(
      try container.wait.transaction(encryption == nil ? nil : deviceKeys), encryption: encryption,
      signing: signing, keys: try key.isGiven ? key.keys().all : ArchiveKeys.ofEnvironment())
    (options.includesExcluded, options.tags, options.isFull) = (includeExcluded, tags, full)
    return options
  }

  private func show(
    _ report: SnapshotReport, _ opened: Container, _ options: SnapshotOptions
  ) throws {
    if let problem = report.parentProblem {
      Output.note("the archive is a full one, because \(Advice.added(to: problem))")
    }
    // With a key the next snapshot does not need the cache.
    if let problem = report.cacheProblem, options.keys.isEmpty, !common.quiet {
      Output.note(
        "the next archive will be a full one, because its manifest was not cached: \(problem)")
    }
    if let problem = report.versionProblem {
      Output.note("the archive does not have the schema version: \(Advice.added(to: problem))")
    }
    let warnings = report.warnings(of: opened, options)
    printNotes(report, warnings, hasKeys: options.deviceKeys != nil)
    if options.signing.isEmpty, options.trusted != nil, !common.json {
      Output.warning("the archive is not signed, and only signed ones are restored here; give --sign FILE")
    }
    if common.json {
      Output.json(Self.document(report, warnings, tags))
    } else if !common.quiet {
      Output.line(report.path)
    }
    if report.isIncomplete { throw ExitStatus.incomplete.code }
  }

  private static func document(
    _ report: SnapshotReport, _ warnings: [ContainerWarning], _ tags: [String]
  ) -> ResultObject {
    report.document.adding([
      "kind": report.header.kind, "parent": report.header.parent,
      "entries": report.entries, "content_bytes": report.contentBytes,
      "archive_bytes": report.archiveBytes, "vault": report.vault, "warnings": warnings,
      "clock_warnings": report.clockWarning.map { [$0] } ?? [], "tags": Set(tags).sorted(),
      "signed_by": report.signedBy,
    ])
  }

  private func printNotes(_ report: SnapshotReport, _ warnings: [ContainerWarning], hasKeys: Bool) {
    guard !common.json else { return }
    if report.isBare {
      Output.warning(
        "the archive holds nothing: the container has no setting, database or file that is backed up")
    }
    if report.isPlainAmongEncrypted {
      Output.warning(
        "the archive is not encrypted, and others of this container in the repository are; give --recipient, or "
          + "`recipients:` in drydock.yaml")
    }
    let isForeign = container.one.isForeign
    if common.quiet { return report.printLosses(isForeign: isForeign) }
    Output.message(
      "\(NumberText.count(report.entries, "path")), \(NumberText.size(report.contentBytes)) of content in "
        + "\(NumberText.size(report.archiveBytes))\(report.isEncrypted ? ", encrypted" : "")"
        + "\(report.signedBy.isEmpty ? "" : ", signed")"
        + "\(report.header.parent.map { ", the changes since \($0.short)" } ?? ""); "
        + "\(includeExcluded ? "stored although excluded:" : "excluded") "
        + "\(NumberText.count(report.excluded.count, "path"))\(includeExcluded ? "" : " by rule")")
    report.printLosses(isForeign: isForeign)
    report.printNotes()
    if let vault = report.vault, vault.problem == nil, report.isEncrypted {
      printNotes(vault, hasKeys: hasKeys)
    }
    Output.warn(warnings)
    Output.warn(report.clockWarning.map { [$0] } ?? [])
  }

  private func printNotes(_ vault: SnapshotVault, hasKeys: Bool) {
    if let leaving = vault.leaving, let staying = vault.staying {
      Output.message(
        "\(NumberText.count(leaving, "item")) of the vault can be restored on other devices; \(staying) only on this one"
      )
    } else if !hasKeys {
      Output.note(
        "\(vault.path) is stored sealed, and readable on this device only; with --device-key the archive "
          + "also holds the items that may leave it")
    }
  }
}

extension SnapshotCommand {
  /// Takes a snapshot of every container of a batch. One that has an archive of the same run already is left out.
  private func run(_ batch: Batch, into place: Repository, _ options: SnapshotOptions) throws {
    try place.createIfNeeded()
    // A random name is not asked for again.
    let run = batch.job.isNamed ? batch.job.run : nil
    let index = try run.map { _ in try ArchiveIndex(place) }
    if options.signing.isEmpty, options.trusted != nil, !common.json {
      Output.warning("the archives are not signed, and only signed ones are restored here; give --sign FILE")
    }
    let summary = try batch.run(showing, .snapshot) { [options] container in
      var options = options
      if let run {
        // Copies of a container have one instance: its directory is a part of the tag, as a hash.
        let own = "run=\(run)/\(String(Shard.hash(container.anchor), radix: 16))"
        if let path = try index?.archive(app: container.app, instance: container.instance, tagged: own) {
          return BatchResult(
            state: .unchanged, text: "run \(run) has its archive already: \(path)", changedBefore: true)
        }
        options.tags += ["run=\(run)", own]
      }
      let report = try container.snapshot(into: place, options: options)
      let size = NumberText.size(report.archiveBytes)
      let version = report.header.schemaVersion
      return BatchResult(
        state: .changed, text: "\(report.path), \(report.isIncomplete ? "incomplete, exit 3" : size)",
        document: Self.document(report, report.warnings(of: container, options), options.tags),
        exit: report.isIncomplete ? .incomplete : nil,
        versions: (version, version))
    }
    try batch.finish(summary)
  }
}

/// An archive in the output of `snapshot` and `import`.
extension SnapshotReport {
  var document: ResultObject {
    [
      "path": path, "archive": archive, "snapshot": snapshot, "encrypted": isEncrypted, "excluded": excluded,
      "skipped": skipped, "raw_databases": Self.byPath(raw), "bytes_behind_databases": Self.byPath(behind),
      "unnamed_attributes": unnamedAttributes.sorted(),
      "mapped": mapped.map {
        ["path": $0.path.description, "process": $0.process, "name": $0.processName] as ResultObject
      },
    ]
  }

  fileprivate func warnings(of container: Container, _ options: SnapshotOptions) -> [ContainerWarning] {
    ContainerWarning.find(
      in: container, excluded: excluded.map { ($0.path, $0.exclusion) }, secrets: options.encryption == nil)
  }

  private static func byPath<Value>(_ values: [ContainerPath: Value]) -> [String: Value] {
    Dictionary(uniqueKeysWithValues: values.map { ($0.key.description, $0.value) })
  }

  /// What makes the archive incomplete.
  func printLosses(isForeign: Bool) {
    for skipped in skipped where skipped.isLoss {
      let reason =
        skipped.isBeyondLimits
        ? "deeper than 510 directories, or a path beyond 65,500 bytes"
        : isForeign && skipped.path.nameString.hasPrefix("._")
          ? "a resource fork or other attribute too large for the file system below TMPDIR"
          : skipped.reason.rawValue
      Output.warning("not stored, \(reason): \(skipped.path)")
    }
    for (path, reason) in raw.sorted(by: { $0.key < $1.key }) {
      Output.warning("stored as raw bytes because SQLite cannot open it (\(reason)): \(path)")
    }
    for user in mapped {
      Output.warning(
        "stored, but possibly mixed from different moments: \(user); close it and take another snapshot")
    }
    if let vault, let problem = vault.problem {
      Output.warning(
        "\(vault.path): stored sealed, and readable on this device only, because its items cannot be copied: "
          + problem)
    }
  }

  func printNotes() {
    for (path, count) in behind.sorted(by: { $0.key < $1.key }) {
      Output.note(
        "\(path): not stored: \(NumberText.count(Int(clamping: count), "byte")) behind its last page, which SQLite does not use"
      )
    }
    let unnamed = unnamedAttributes.sorted().map {
      "\($0): not stored: extended attributes whose names are not UTF-8"
    }
    for line in unnamed.lines(20, more: "more of these; --json lists all") { Output.note(line) }
  }
}
