import ArgumentParser
import Drydock

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the archives of a repository, oldest first.",
    discussion: """
      Reads only the header of each archive. Times are UTC. What an archive is, its
      header says, not the name of its file.

      Example: drydock list -r Backups
      """)

  @OptionGroup var repository: RepositoryOptions
  @Option(help: ArgumentHelp("Only archives of this app.", valueName: "app")) var app: String?
  @Option(help: ArgumentHelp("Only archives of this instance.", valueName: "name")) var instance: String?
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Item: Encodable {
      var path: String
      var bytes: UInt64
      var header: ArchiveHeader
    }
    struct Unreadable: Encodable {
      var path: String
      var reason: String
    }
    var archives: [Item]
    var unreadable: [Unreadable]
  }

  func run() throws {
    guard let path = try repository.path(common.configuration()) else {
      throw UsageError(message: "no repository is named; give -r DIRECTORY, or `repository:` in drydock.yaml")
    }
    let listing = try Repository(path).list()
    let items = listing.items.filter { item in
      (app ?? item.header.app) == item.header.app
        && (instance ?? item.header.instance) == item.header.instance
    }
    if common.json {
      Output.json(
        Result(
          archives: items.map { .init(path: $0.path, bytes: $0.size, header: $0.header) },
          unreadable: listing.unreadable.map { .init(path: $0.path, reason: $0.reason) }))
    } else {
      write(items, idLength: listing.idLength)
      for item in listing.unreadable {
        Output.note("drydock: cannot be read: \(item.path): \(item.reason)".printable)
      }
    }
    if !listing.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }

  private func write(_ items: [Repository.Item], idLength: Int) {
    guard !items.isEmpty else { return Output.line("no archives") }
    let head = ["id", "time", "app", "instance", "version", "kind", "size"]
    let rows = items.map { item in
      [
        String(item.header.archive.description.prefix(idLength)), item.header.time, item.header.app.printable,
        item.header.instance.printable, item.header.schemaVersion.map(String.init) ?? "?",
        item.header.kind.rawValue, Output.size(item.size),
      ]
    }
    Output.table([head] + rows, indent: "")
  }
}
