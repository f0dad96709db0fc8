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

      Examples:
        drydock export latest -r Backups -o Notes.tar.zst
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
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: String
    var header: ArchiveHeader
    var snapshot: String
    var entries: Int
    var contentBytes: UInt64
    var archiveBytes: UInt64
  }

  func run() throws {
    let place: SnapshotOptions.Target
    switch (output, target ?? (output == nil ? repository.repository : nil)) {
    case (let file?, nil): place = .file(file)
    case (nil, let directory?): place = .repository(directory)
    case (nil, nil):
      throw UsageError(message: "no place for the archive; give -o FILE, --to DIRECTORY or -r REPOSITORY")
    default: throw UsageError(message: "give either -o FILE or --to DIRECTORY")
    }
    let opened = try Archive(
      path: repository.archive(archive, common.configuration()), limit: expansion.limit())
    let progress = Progress(isShown: !common.json)
    let report = try Export.run(opened, to: place, tool: DrydockVersion.tool) { progress.show($0) }
    progress.end()
    if common.json {
      return Output.json(
        Result(
          path: report.path, header: report.header, snapshot: report.snapshot, entries: report.entries,
          contentBytes: report.contentBytes, archiveBytes: report.archiveBytes))
    }
    Output.note(
      "\(Output.count(report.entries, "path")), \(Output.size(report.contentBytes)) of content in "
        + "\(Output.size(report.archiveBytes)); every byte was compared with its hash")
    Output.line(report.path)
  }
}
