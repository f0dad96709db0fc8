import ArgumentParser
import Drydock

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write an archive's snapshot into a full archive of its own.",
    discussion: """
      The new archive holds all of the snapshot and needs no other archive to be
      read; it has an id of its own. Every byte is compared with its hash on its
      way: a damaged archive is refused, and no file is left. Prints the path.
      Without -o and --to it goes into the repository of -r.

      What is encrypted is not written in the clear unless --no-encryption asks for
      it: say to whom the new archive is encrypted.

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
          + "everybody may read it")
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
