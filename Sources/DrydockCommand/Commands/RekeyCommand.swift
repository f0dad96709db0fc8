import ArgumentParser
import Drydock

struct RekeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Encrypt archives to others: for new keys, or for the first time.",
    discussion: """
      Writes the same archive, byte for byte, encrypted under a new file key to the
      recipients that are named, or with a passphrase; the copy is read back before
      anything else happens. With --replace it takes the old one's place in one
      step; an archive that was not encrypted gets .age behind its name.

      This does not take back what the old keys could read: whoever has a copy of
      the old file and an old key can read that copy for ever, and on many disks the
      old file's bytes stay after it is removed. If a key was stolen, change the
      secrets that are in the archive, too.

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
  @Flag(help: "Put each new archive in place of the old one, which goes.") var replace = false
  @OptionGroup var key: SourceKeyOptions
  @OptionGroup var recipients: RecipientOptions
  @OptionGroup var expansion: ExpansionOptions
  @Option(
    help: ArgumentHelp(
      "Wait so long for those who write into the repository; 0 by default.", valueName: "seconds"))
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
        message: "nobody is named to encrypt to; give --recipient age1… or --passphrase-file FILE "
          + "(`drydock export --no-encryption` writes a copy that everybody can read)")
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
        // The one that was asked for: its error is all there is to tell.
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
