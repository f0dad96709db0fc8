import ArgumentParser
import Drydock
import DrydockTesting

struct VerifyCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Check archives: their structure, every byte, or against a container.",
    discussion: """
      Without --data the structure is checked: lengths, the manifest's hash, the \
      snapshot ID. With --data every byte is read and compared with its hash. With \
      --trusted, or `trusted:` in drydock.yaml, a trusted key must have signed each \
      archive, and those that it needs.

      With --container the archive is also compared with a container: files by every \
      byte, databases by schema and rows. Paths that rules exclude from backups are \
      ignored. With the device key the vault is compared by the items that a restore \
      would bring back. Exits with 2 when they differ.

      With --all the newest archive of each container is checked, and a container \
      without one has failed. With --shard alone it is the archives of the repository \
      that are divided.

      Examples:
        drydock verify -r Backups --data
        drydock verify A.tar.zst --container Notes
        drydock verify --all Customers -r Backups --data
      """)

  @OptionGroup var archives: ArchivesOptions
  @OptionGroup(title: OptionTitle.batch) var fleet: FleetOptions
  @OptionGroup(title: OptionTitle.batch) var job: JobOptions
  @Flag(help: "Read every byte and compare it with its hash.") var data = false
  @Option("Compare the archive with this container.", value: "container", completion: .directory)
  var container: String?
  @OptionGroup(title: OptionTitle.keys) var trust: TrustOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func validate() throws {
    if container != nil && archives.names.count != 1 {
      throw ValidationError("--container goes with one archive")
    }
    if fleet.all != nil && !archives.names.isEmpty {
      throw ValidationError("--all checks the newest archive of each container: give no archives")
    }
  }

  func run() throws {
    let configuration = try common.configuration()
    let limit = try expansion.limit()
    let trusted = try trust.keys(configuration)
    var keys = try key.keys()
    if let batch = try fleet.batch(configuration, job, "verify", asJSON: common.json) {
      return try run(batch, keys.all, limit, trusted)
    }
    let job = try self.job.job("verify")
    var log = try JobLog(self.job, job, of: .archive)
    var failed: Failure?
    var checked: [ResultObject] = []
    var intact: String?
    var verification = Verification()
    let (names, unreadable) = try names(configuration, keys, job.shard)
    var start = ContinuousClock.now
    func reportDamaged(_ path: String, _ error: any Error) throws {
      // A full disk is not the archive's fault.
      guard let failure = Failure(known: error), failure.code != DrydockError.Code.noSpace.rawValue else {
        throw error
      }
      let name = path.lastName
      let path = Redactor().shown(message: path)
      failed = failed ?? failure
      log.add(
        name, path: path, BatchResult(state: .failed, text: "", exit: failure.status, failure: failure),
        seconds: (ContinuousClock.now - start) / .seconds(1))
      checked.append([
        "path": path, "ok": false, "error": failure.message, "unreadable_archives": failure.unreadable,
      ])
      if !common.json { Output.line("BAD \(path)  \(failure.message)") }
    }
    let display = try showing.display()
    defer { display.end() }
    // When standard output is closed, hours of reading would be for nothing.
    for (index, name) in names.enumerated() where StandardStreams.fault == nil {
      var path = name
      start = .now
      if names.count > 1 { display.progress?.begin(item: index + 1, of: names.count) }
      do {
        path = try archives.repository.archive(
          name, configuration, keys,
          for: container.flatMap { try? Container(at: $0, configuration: configuration) })
        let archive = try Archive(
          path: path, keys: keys.opening(path), limit: limit, trusted: trusted, acceptsGap: true)
        let report = try verification.verify(archive, data: data, progress: display.progress)
        checked.append(report.document(path).adding(["ok": true]))
        intact = path
        let version = report.header.schemaVersion
        log.add(
          path.lastName, path: path, BatchResult(state: .unchanged, text: "", versions: (version, version)),
          seconds: (ContinuousClock.now - start) / .seconds(1))
        guard !common.json, !common.quiet else { continue }
        let counts =
          "\(NumberText.count(report.entries, "path")), \(NumberText.size(report.contentBytes))"
        Output.line("ok  \(path)  \(counts), \(report.proof(data: data))")
      } catch  where archives.names.isEmpty && isGone(path, error) {
        // Removed since the repository was listed, perhaps while it was read.
        continue
      } catch {
        try reportDamaged(path, error)
      }
    }
    start = .now
    for item in unreadable { try reportDamaged(item.path, item.error) }
    if checked.isEmpty && !common.json && !common.quiet { Output.line("no archives") }
    var document: ResultObject = ["archives": checked]
    var comparison: Compared?
    if failed == nil, let container, let path = intact {
      let archive = try Archive(path: path, keys: keys.opening(path), limit: limit, trusted: trusted)
      let found = try compare(archive, container, configuration, display.progress)
      display.end()
      document["container"] =
        [
          "path": container, "equal": found.isEqual, "compared": found.comparison.compared,
          "not_compared": found.comparison.notCompared, "bytes_read": archive.bytesRead,
          "difference": found.comparison.difference, "vault": found.vault,
        ] as ResultObject
      if !common.json { report(found, container) }
      comparison = found
    }
    if common.json { Output.json(document) }
    let isRecorded = log.end(failed?.status.rawValue ?? 0)
    if let failed { throw failed.status.code }
    if !isRecorded { throw ExitStatus.failed.code }
    if comparison?.isEqual == false { throw ExitStatus.pending.code }
    if comparison?.comparison.isIncomplete == true { throw ExitStatus.incomplete.code }
  }

  private func isGone(_ path: String, _ error: any Error) -> Bool {
    Repository.isRemote(path)
      ? (error as? DrydockError)?.code == .notFound : FollowedStatus.identity(path) == nil
  }

  /// The archives to verify, and those of a repository that cannot even be listed.
  private func names(
    _ configuration: ContainerConfiguration, _ keys: ArchiveKeys, _ shard: Shard?
  ) throws -> ([String], [Repository.Unreadable]) {
    // All archives of one container are in one shard: what they share is read once.
    func isOwn(_ path: String) -> Bool { shard?.contains(ArchiveIndex.owner(ofFile: path.lastName)) ?? true }
    guard let listing = try archives.listing(configuration, keys, "verify") else {
      return (archives.names.filter(isOwn), [])
    }
    let paths = listing.items.map(\.path) + listing.locked.map(\.path)
    return (paths.filter(isOwn), listing.unreadable.filter { isOwn($0.path) })
  }

  /// An archive against a container.
  private struct Compared {
    var comparison: Comparison
    /// The vault by items, when it can be opened and is another file.
    var vault: RestoreReport.Vault?
    var isEqual: Bool { comparison.difference.isEmpty && vault?.isUpToDate ?? true }
  }

  private func compare(
    _ archive: Archive, _ path: String, _ configuration: ContainerConfiguration, _ progress: WorkProgress?
  ) throws -> Compared {
    var options = ComparisonOptions()
    options.rowLimit = 5
    var transaction = try wait.transaction(deviceKeys)
    (options.progress, transaction.progress) = (progress, progress)
    return try Container.reading(at: path, configuration: configuration, limit: expansion.limit()) { opened in
      if !ForeignContainer.isForeignArchive(path) { try ContainerOptions.recover(opened) }
      let vault = try Comparison.vault(of: archive, with: opened, transaction: transaction)
      if vault != nil { options.stores.remove(.vault) }
      let comparison = try Comparison(
        of: .archive(archive), with: .container(opened), configuration: configuration, options: options,
        transaction: transaction)
      return Compared(comparison: comparison, vault: vault)
    }
  }

  private func report(_ found: Compared, _ path: String) {
    let comparison = found.comparison
    if found.isEqual {
      if !common.quiet {
        Output.line("same \(path)  \(NumberText.count(comparison.compared, "path")), every byte")
      }
    } else {
      Output.line("OTHER \(path)  the container differs from the archive by")
      Output.difference(comparison.difference, limit: 20)
      if let vault = found.vault, !vault.isUpToDate {
        Output.line("vault items")
        vault.writeDifference()
      }
    }
    if let left = found.vault?.notRestored.count, left > 0 {
      Output.line("not compared: \(NumberText.count(left, "vault item")) that no restore brings back here")
    }
    comparison.reportOmissions()
  }
}

extension VerificationReport {
  fileprivate func document(_ path: String) -> ResultObject {
    ["path": path, "entries": entries, "content_bytes": contentBytes, "signer": signer]
  }

  /// What was checked, and who signed it.
  fileprivate func proof(data: Bool) -> String {
    (data ? "every byte" : "structure") + (signer.map { ", signed by \($0.shown)" } ?? "")
  }
}

extension VerifyCommand {
  /// Verifies the newest archive of every container of a batch.
  private func run(
    _ batch: Batch, _ keys: AgeKeys, _ limit: ExpansionLimit, _ trusted: TrustedKeys?
  ) throws {
    let path = try archives.repository.required(
      batch.configuration, or: "nothing to verify; give -r REPOSITORY")
    let index = try ArchiveIndex(Repository(path))
    let summary = try batch.run(showing, .verify) { [data] container in
      guard let path = index.newest(app: container.app, instance: container.instance) else {
        throw DrydockError(
          .notFound, "the repository has no archive of this container; `drydock snapshot` makes one",
          path: container.root)
      }
      let archive = try Archive(path: path, keys: keys, limit: limit, trusted: trusted, acceptsGap: true)
      let report = try Verification.run(archive, data: data)
      let version = report.header.schemaVersion
      return BatchResult(
        state: .unchanged,
        text: "\(path.lastName), \(NumberText.count(report.entries, "path")), \(report.proof(data: data))",
        document: report.document(path),
        versions: (version, version))
    }
    try batch.finish(summary)
  }
}
