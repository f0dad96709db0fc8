import ArgumentParser
import Drydock

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the archives of a repository, oldest first.",
    discussion: """
      Reads only the header of each archive. Times are UTC. What an archive is, its
      header says, not the name of its file; of an encrypted one that no key at hand
      opens, the name is all that is told, and nothing vouches for it.

      Examples:
        drydock list -r Backups
        drydock list -r Backups --identity key.txt
      """)

  @OptionGroup var repository: RepositoryOptions
  @Option(help: ArgumentHelp("Only archives of this app.", valueName: "app")) var app: String?
  @Option(help: ArgumentHelp("Only archives of this instance.", valueName: "name")) var instance: String?
  @OptionGroup var key: KeyOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Item: Encodable {
      var path: String
      var bytes: UInt64
      var header: ArchiveHeader
      var encryption: String?
    }
    struct Encrypted: Encodable {
      var path: String
      var bytes: UInt64
      var encryption: String
      var app: String?
      var instance: String?
      var time: String?
      var id: String?
    }
    struct Unreadable: Encodable {
      var path: String
      var reason: String
    }
    var archives: [Item]
    var encrypted: [Encrypted]
    var unreadable: [Unreadable]
    var clockWarnings: [ClockWarning]
  }

  func run() throws {
    guard let path = try repository.path(common.configuration()) else {
      throw UsageError(message: "no repository is named; give -r DIRECTORY, or `repository:` in drydock.yaml")
    }
    let listing = try Repository(path).list(keys: key.keys().all)
      .filtered(app: app, instance: instance)
    if common.json {
      Output.json(
        Result(
          archives: listing.items.map {
            .init(
              path: $0.path, bytes: $0.size, header: $0.header, encryption: $0.encryption?.description)
          },
          encrypted: listing.sealed.map {
            .init(
              path: $0.path, bytes: $0.size, encryption: $0.encryption.description, app: $0.label?.app,
              instance: $0.label?.instance, time: $0.label?.time, id: $0.label?.id)
          },
          unreadable: listing.unreadable.map { .init(path: $0.path, reason: $0.reason) },
          clockWarnings: listing.clockWarnings()))
    } else {
      write(listing)
      Output.warn(listing.clockWarnings())
      for item in listing.unreadable {
        Output.note("drydock: cannot be read: \(item.path): \(item.reason)".printable)
      }
    }
    if !listing.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }

  private func write(_ listing: Repository.Listing) {
    guard !listing.items.isEmpty || !listing.sealed.isEmpty else { return Output.line("no archives") }
    let head = ["id", "time", "app", "instance", "version", "kind", "size"]
    let rows = listing.entries.map { entry in
      switch entry {
      case .item(let item): row(item, listing)
      case .sealed(let item): row(item, listing)
      }
    }
    Output.table([head] + rows, indent: "")
  }

  private func row(_ item: Repository.Item, _ listing: Repository.Listing) -> [String] {
    let header = item.header
    return [
      String(header.archive.description.prefix(listing.idLength)), header.time, header.app.printable,
      header.instance.printable, header.schemaVersion.map(String.init) ?? "?", header.kind.rawValue,
      Output.size(item.size), item.encryption == nil ? "" : "encrypted",
    ]
  }

  private func row(_ item: Repository.Sealed, _ listing: Repository.Listing) -> [String] {
    let label = item.label
    return [
      label.map { String($0.id.prefix(listing.idLength)) } ?? "?", label?.time ?? "?", label?.app ?? "?",
      label?.instance ?? "?", "?", "?", Output.size(item.size),
      "\(item.encryption), not read" + (label == nil ? ": \(item.fileName.printable)" : ""),
    ]
  }
}
