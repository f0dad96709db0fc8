import ArgumentParser
import Drydock

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the archives of a repository.",
    discussion: "Example: drydock list -r Backups")

  @OptionGroup var repository: RepositoryOptions
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
    if common.json {
      Output.json(
        Result(
          archives: listing.items.map { .init(path: $0.path, bytes: $0.size, header: $0.header) },
          unreadable: listing.unreadable.map { .init(path: $0.path, reason: $0.reason) }))
    } else {
      let head = ["id", "time", "app", "instance", "version", "size"]
      let rows = listing.items.map { item in
        [
          item.header.archive.short, item.header.time, item.header.app, item.header.instance,
          item.header.schemaVersion.map(String.init) ?? "?", Output.size(item.size),
        ]
      }
      if rows.isEmpty { Output.line("no archives") } else { Output.table([head] + rows, indent: "") }
      for item in listing.unreadable { Output.note("drydock: cannot be read: \(item.path): \(item.reason)") }
    }
    if !listing.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }
}

struct ShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show what is in an archive, and what was left out of it.",
    discussion: """
      Reads the archive's end and its list, not its content.

      Example: drydock show Backups/com.example.notes_….tar.zst Documents
      """)

  @Argument(help: "An archive: its file, or with -r its id, INSTANCE@latest, INSTANCE@2026-11-14 or latest.")
  var archive: String
  @Argument(help: "Only this path of the container, and what is below it.") var path: String?
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Entry: Encodable {
      var path: ContainerPath
      var kind: String
      var mode: String
      var bytes: UInt64
      var sha256: String?
      var linkTarget: String?
      var hardLink: ContainerPath?
    }
    var header: ArchiveHeader
    var snapshot: String
    var entries: [Entry]
    var excluded: [ExcludedPath]
    var skipped: [SkippedPath]
  }

  func run() throws {
    let opened = try Archive(
      path: repository.archive(archive, common.configuration()), limit: expansion.limit())
    let scope = try path.map { try ContainerPath($0) }
    let inScope = { (path: ContainerPath) in scope.map { path == $0 || path.isInside($0) } ?? true }
    var entries: [Result.Entry] = []
    try opened.manifest.entries { entry in
      guard inScope(entry.path) else { return }
      entries.append(
        .init(
          path: entry.path, kind: entry.kind.rawValue, mode: String(entry.metadata.mode, radix: 8),
          bytes: entry.size,
          sha256: entry.digest?.hex, linkTarget: entry.linkTarget.map { String(decoding: $0, as: UTF8.self) },
          hardLink: entry.hardLink))
    }
    let excluded = try opened.manifest.excluded().filter { inScope($0.path) }
    let skipped = try opened.manifest.skipped().filter { inScope($0.path) }
    guard scope == nil || !entries.isEmpty || !excluded.isEmpty || !skipped.isEmpty else {
      throw RepositoryError(
        .missing, "the archive does not have it; `drydock show` without a path lists what it has",
        path: scope?.description)
    }
    if common.json {
      return Output.json(
        Result(
          header: opened.header, snapshot: opened.snapshot, entries: entries, excluded: excluded,
          skipped: skipped))
    }
    let header = opened.header
    Output.line("\(header.app), instance \(header.instance) (\(header.layout.rawValue)), \(header.time)")
    Output.line("archive \(header.archive), snapshot \(opened.snapshot.prefix(16))…")
    Output.line(
      "schema version \(header.schemaVersion.map(String.init) ?? "unknown"), written by \(header.tool)")
    Output.table(
      entries.map { entry in
        let link = entry.linkTarget.map { " → \(ContainerPath.printable(Array($0.utf8)))" }
        let target = link ?? entry.hardLink.map { " = \($0)" } ?? ""
        return [entry.mode, entry.kind, Output.size(entry.bytes), entry.path.description + target]
      })
    if !excluded.isEmpty { Output.line("left out by rule") }
    Output.table(excluded.map { [$0.path.description, $0.exclusion.description] })
    if !skipped.isEmpty { Output.line("not stored") }
    Output.table(skipped.map { [$0.path.description, $0.reason.rawValue] })
  }
}

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Check archives: their structure, or every byte.",
    discussion: """
      Without --data the structure is checked: lengths, the list of paths against
      its hash, the snapshot id. With --data every byte is read and compared.

      Example: drydock verify -r Backups --data
      """)

  @Argument(help: "Archives: files, or with -r ids; none means all of the repository.") var archives:
    [String] = []
  @OptionGroup var repository: RepositoryOptions
  @Flag(help: "Read every byte and compare it with its hash.") var data = false
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Item: Encodable {
      var path: String
      var ok: Bool
      var entries: Int? = nil, contentBytes: UInt64? = nil, error: String? = nil
    }
    var archives: [Item]
  }

  func run() throws {
    let configuration = try common.configuration()
    let limit = try expansion.limit()
    var names = archives
    if archives.isEmpty {
      guard let path = repository.path(configuration) else {
        throw UsageError(message: "nothing to verify; give archives, or -r REPOSITORY")
      }
      let listing = try Repository(path).list()
      names = listing.items.map(\.path) + listing.unreadable.map(\.path)
    }
    var failed: Failure?
    var items: [Result.Item] = []
    for name in names {
      var path = name
      do {
        path = try repository.archive(name, configuration)
        let report = try Verification.run(path: path, data: data, limit: limit)
        items.append(.init(path: path, ok: true, entries: report.entries, contentBytes: report.contentBytes))
        guard !common.json else { continue }
        let depth = data ? "every byte" : "structure"
        Output.line(
          "ok  \(path)  \(Output.count(report.entries, "path")), \(Output.size(report.contentBytes)), \(depth)"
        )
      } catch {
        guard let failure = Failure(error) else { throw error }
        failed = failed ?? failure
        items.append(.init(path: path, ok: false, error: failure.message))
        if !common.json { Output.line("BAD \(path)  \(failure.message)") }
      }
    }
    if common.json { Output.json(Result(archives: items)) }
    if let failed { throw failed.status.code }
  }
}
