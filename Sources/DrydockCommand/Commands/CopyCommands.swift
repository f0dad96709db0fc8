import ArgumentParser
import Drydock

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Copy an archive's snapshot to a new full archive.",
    discussion: """
      The new archive has a new ID, holds the whole snapshot and needs no other
      archive. Every byte is compared with its hash: a damaged archive is refused,
      and no file is left. Prints the path. Without -o and --to the archive goes
      into the repository of -r.

      The copy of an encrypted archive is encrypted as well, unless --no-encryption is
      given: name its recipients.

      Examples:
        drydock export latest -r Backups -o Notes.tar.zst
        drydock export A.tar.zst.age --identity key.txt --recipient age1… --to USB
        drydock export Notes.tar.zst --to Elsewhere
      """)

  @Argument(help: "An archive: its file, or with -r its id, INSTANCE@latest, INSTANCE@2026-11-14 or latest.")
  var archive: String
  @OptionGroup var repository: RepositoryOptions
  @Option(
    name: .shortAndLong, help: ArgumentHelp("Write this file, which must not exist.", valueName: "file"))
  var output: String?
  @Option(
    name: .customLong("to"),
    help: ArgumentHelp("Write into this directory of archives instead.", valueName: "directory"))
  var target: String?
  @OptionGroup var key: SourceKeyOptions
  @OptionGroup var recipients: RecipientOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: String
    var header: ArchiveHeader
    var snapshot: String
    var entries: Int
    var contentBytes: UInt64
    var archiveBytes: UInt64
    var encrypted: Bool
    var dropsVaultItems: Bool
  }

  func run() throws {
    let place: SnapshotRequest.Target
    switch (output, target ?? (output == nil ? repository.repository : nil)) {
    case (let file?, nil): place = .file(file)
    case (nil, let directory?): place = .repository(directory)
    case (nil, nil):
      throw UsageError(message: "no place for the archive; give -o FILE, --to DIRECTORY or -r REPOSITORY")
    default: throw UsageError(message: "give either -o FILE or --to DIRECTORY")
    }
    let configuration = try common.configuration()
    var keys = try key.keys()
    let file = try repository.archive(archive, configuration, keys)
    let lock = try recipients.lock(configuration)
    if lock == nil, !recipients.noEncryption, let encryption = try ArchiveEncryption.of(path: file) {
      throw UsageError(
        message:
          "\(file) is \(encryption), and the new archive would not be; give --recipient age1…, or --no-encryption if "
          + "anyone may read it")
    }
    let opened = try Archive(path: file, keys: keys.opening(file), limit: expansion.limit())
    let progress = Progress(isShown: !common.json)
    let report = try Export.run(
      opened, to: place, encryption: lock, tool: DrydockVersion.tool
    ) { progress.show($0) }
    progress.end()
    if common.json {
      return Output.json(
        Result(
          path: report.path, header: report.header, snapshot: report.snapshot, entries: report.entries,
          contentBytes: report.contentBytes, archiveBytes: report.archiveBytes, encrypted: lock != nil,
          dropsVaultItems: report.dropsVaultItems))
    }
    Output.note(
      "\(Output.count(report.entries, "path")), \(Output.size(report.contentBytes)) of content in "
        + "\(Output.size(report.archiveBytes))\(lock == nil ? "" : ", encrypted"); every byte was compared with its hash"
    )
    if report.dropsVaultItems {
      Output.note(
        "drydock: note: the vault's items for other devices are left out, as of every archive that is not encrypted; its "
          + "sealed file is in it")
    }
    Output.line(report.path)
  }
}

struct RekeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Encrypt archives to new recipients, or for the first time.",
    discussion: """
      Writes the same archive, byte for byte, encrypted under a new file key to the
      given recipients, or with a passphrase, and reads the copy back. With --replace
      it replaces the old file in one step; an archive that was not encrypted gets
      the suffix .age.

      This does not revoke the old keys: whoever has a copy of the old file and an old
      key can still read it, and many disks keep the bytes of a removed file. If a
      key was stolen, change the secrets in the archive as well.

      Examples:
        drydock rekey A.tar.zst.age --identity old.txt --recipient age1… --to USB
        drydock rekey -r Backups --identity old.txt --recipients-file new --replace
        drydock rekey Plain.tar.zst --recipient age1… --replace
      """)

  @Argument(
    help: "Archives: files, or with -r ids, INSTANCE@latest …; none means all of the repository.")
  var archives: [String] = []
  @OptionGroup var repository: RepositoryOptions
  @Option(
    name: .shortAndLong, help: ArgumentHelp("Write this file, which must not exist.", valueName: "file"))
  var output: String?
  @Option(
    name: .customLong("to"),
    help: ArgumentHelp("Write into this directory of archives.", valueName: "directory"))
  var target: String?
  @Flag(help: "Replace each old archive with the new one.") var replace = false
  @OptionGroup var key: SourceKeyOptions
  @OptionGroup var recipients: RecipientOptions
  @OptionGroup var expansion: ExpansionOptions
  @Option(
    help: ArgumentHelp(
      "Seconds to wait for commands that write to the repository; by default 0.", valueName: "seconds"))
  var lockTimeout: Double = 0
  @OptionGroup var common: CommonOptions

  private enum Place { case file(String), directory(String), same }

  struct Result: Encodable {
    struct Item: Encodable {
      var source: String
      var path: String
      var header: ArchiveHeader
      var archiveBytes: UInt64
    }
    struct Failed: Encodable {
      var path: String
      var code: String
      var error: String
    }
    var archives: [Item] = []
    var failed: [Failed] = []
  }

  func run() throws {
    let configuration = try common.configuration()
    let place = try place()
    guard let lock = try recipients.lock(configuration) else {
      throw UsageError(
        message: "no recipients are given; use --recipient age1… or --passphrase-file FILE "
          + "(`drydock export --no-encryption` writes an unencrypted copy)")
    }
    var keys = try key.keys()
    let names = try names(configuration, keys)
    var result = Result()
    var firstFailure: Failure?
    let progress = Progress(isShown: !common.json)
    for name in names {
      var path = name
      do {
        path = try repository.archive(name, configuration, keys)
        let report = try rekey(path, keys.opening(path), place, lock) { progress.show($0) }
        progress.end()
        result.archives.append(
          .init(
            source: report.source, path: report.path, header: report.header,
            archiveBytes: report.archiveBytes))
        if !common.json { Output.line(report.path) }
      } catch {
        guard let failure = Failure(error) else { throw error }
        firstFailure = firstFailure ?? failure
        result.failed.append(.init(path: path, code: failure.code, error: failure.message))
        // The one that was asked for: its error is the result.
        if archives.count == 1 { throw error }
        Output.note("drydock: rekey failed: \(failure.text)")
      }
    }
    if common.json { Output.json(result) }
    if names.isEmpty && !common.json { Output.line("no archives") }
    guard let firstFailure else { return }
    throw (result.archives.isEmpty ? firstFailure.status : .incomplete).code
  }

  private func place() throws -> Place {
    switch (output, target, replace) {
    case (let file?, nil, false):
      guard archives.count == 1 else {
        throw UsageError(message: "-o FILE is for one archive; give --to DIRECTORY")
      }
      return .file(file)
    case (nil, let directory?, false): return .directory(directory)
    case (nil, nil, true): return .same
    case (nil, nil, false):
      throw UsageError(message: "no place for the copy; give -o FILE or --to DIRECTORY, or --replace")
    default: throw UsageError(message: "give one of -o FILE, --to DIRECTORY and --replace")
    }
  }

  private func names(_ configuration: ContainerConfiguration, _ keys: ArchiveKeys) throws -> [String] {
    if !archives.isEmpty { return archives }
    guard let path = repository.path(configuration) else {
      throw UsageError(message: "nothing to rekey; give archives, or -r REPOSITORY")
    }
    let listing = try Repository(path).list(keys: keys.quick)
    return listing.items.map(\.path) + listing.sealed.map(\.path) + listing.unreadable.map(\.path)
  }

  private func rekey(
    _ path: String, _ keys: AgeKeys, _ place: Place, _ lock: AgeLock, progress: @escaping (UInt64) -> Void
  ) throws -> RekeyReport {
    let limit = try expansion.limit()
    let target: SnapshotRequest.Target
    switch place {
    case .same:
      return try Rekey.replace(
        path: path, keys: keys, limit: limit, encryption: lock, lockTimeout: lockTimeout, progress: progress)
    case .file(let file): target = .file(file)
    case .directory(let directory): target = .repository(directory)
    }
    return try Rekey.copy(
      Archive(path: path, keys: keys, limit: limit), to: target, encryption: lock, lockTimeout: lockTimeout,
      progress: progress)
  }
}
