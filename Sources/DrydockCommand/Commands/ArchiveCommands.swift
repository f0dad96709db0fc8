import ArgumentParser
import Drydock

struct ListCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the archives of a repository, oldest first.",
    discussion: """
      Reads only the header of each archive. Times are UTC. What is shown comes from \
      the header, not from the file name; of an encrypted archive that no given key \
      opens, only the file name is known, which nothing verifies.

      Examples:
        drydock list -r Backups
        drydock list -r Backups --identity key.txt
        drydock list -r Backups --last 1 --since 2026-11-14
      """)

  @OptionGroup var repository: RepositoryOptions
  @Option("Only archives of this app.", value: "app") var app: String?
  @Option("Only archives of this instance.", value: "name") var instance: String?
  @Option("Only the last <number> archives of each instance.", value: "number") var last: Int?
  @Option("Only archives of this time or later, in UTC, such as 2026-11-14.", value: "date")
  var since: String?
  @OptionGroup(title: OptionTitle.keys) var trust: TrustOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    let configuration = try common.configuration()
    let path = try repository.required(configuration)
    guard last.map({ $0 > 0 }) ?? true else {
      throw UsageError("--last is the number of archives to list; give 1 or more")
    }
    let all = try showing.during {
      try Repository(path).list(keys: key.keys().all, trusted: trust.keys(configuration), progress: $0)
    }
    var listing = all.filtered(app: app, instance: instance)
    if let since { listing = try UsageError.reading("--since") { try listing.since(since) } }
    if let last { listing = listing.newest(last) }
    if common.json {
      Output.json(document(listing))
    } else {
      // A parent may be in the repository and not in the list.
      write(
        listing, present: Set(all.archives.map { $0.id.prefix(8) }),
        unreadable: Set(all.unreadable.compactMap { $0.id?.prefix(8) }))
      Output.warn(listing.clockWarnings())
      for item in listing.unreadable {
        Output.warning("cannot be read: \(item.path): \(item.reason)".printable)
      }
    }
    if !listing.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }

  private func document(_ listing: Repository.Listing) -> ResultObject {
    [
      "archives": listing.items.map { document($0).adding(["header": $0.header]) },
      "encrypted": listing.locked.map { item -> ResultObject in
        let label = item.label
        return document(item).adding([
          "app": label?.app, "instance": label?.mark == nil ? label?.instance : nil, "time": label?.time,
          "id": label?.id,
        ])
      },
      "unreadable": listing.unreadable.map { ["path": $0.path, "reason": $0.reason] },
      "clock_warnings": listing.clockWarnings(),
    ]
  }

  private func document(_ item: StoredArchive) -> ResultObject {
    [
      "path": item.path, "bytes": item.size, "encryption": item.encryption?.description, "tags": item.tags,
      "signed": item.signature != .none, "signer": item.signature.signer,
      "signature_problem": item.signature.problem,
    ]
  }

  private func write(
    _ listing: Repository.Listing, present: Set<Substring>, unreadable: Set<Substring>
  ) {
    guard !listing.archives.isEmpty else { return Output.line("no archives") }
    let head = ["id", "time", "app", "instance", "version", "kind", "size"]
    let idLength = listing.idLength()
    let rows = listing.archives.map { row($0, idLength, present, unreadable) }
    Output.table([head] + rows, indent: "")
  }

  private func row(
    _ archive: StoredArchive, _ idLength: Int, _ present: Set<Substring>, _ unreadable: Set<Substring>
  ) -> [String] {
    let header = archive.header
    var notes: [String] = []
    if let encryption = archive.encryption {
      let name = archive.label == nil ? ": \(archive.fileName.printable)" : ""
      notes.append(header == nil ? "\(encryption), not read\(name)" : "encrypted")
    }
    notes += archive.signature.texts
    if let parent = header?.parent?.short, !present.contains(parent[...]) {
      let problem = unreadable.contains(parent[...]) ? "cannot be read" : "is missing"
      notes.append("needs \(parent), which \(problem)")
    }
    return [
      String(archive.id.prefix(idLength)), archive.time, archive.app.printable, archive.instance.printable,
      header?.schemaVersion.map(String.init) ?? "?", header?.kind.rawValue ?? "?",
      NumberText.size(archive.size),
      note(notes.joined(separator: ", "), archive.tags),
    ]
  }

  private func note(_ text: String, _ tags: [String]) -> String {
    ([text].filter { !$0.isEmpty } + tags.map { "#\($0.printable)" }).joined(separator: " ")
  }
}

extension SignatureState {
  /// Who signed an archive.
  var signer: Signer? { if case .trusted(let signer) = self { signer } else { nil } }
  /// Why a signature does not count.
  var problem: String? { if case .refused(let reason) = self { reason } else { nil } }

  /// For the last column of a list.
  var texts: [String] {
    switch self {
    case .none: []
    case .present: ["signed"]
    case .trusted(let signer): ["signed by \(signer.shown)"]
    case .refused(let reason): ["not trusted: \(reason)"]
    }
  }
}

struct ShowCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show what an archive holds, and what was excluded from it.",
    discussion: """
      Reads the archive's manifest, not its content.

      Example: drydock show latest Documents -r Backups
      """)

  @OptionGroup var source: ArchiveOptions
  @Argument(help: "Only this path of the container, and what is below it.") var path: String?
  @OptionGroup(title: OptionTitle.keys) var trust: TrustOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  struct Entry: Encodable, Sendable {
    var path: ContainerPath
    var kind: String, mode: String
    var bytes: UInt64, sha256: String?
    var linkTarget: String?, hardLink: ContainerPath?

    init(_ entry: ManifestEntry) {
      (path, kind, bytes, hardLink) = (entry.path, entry.kind.rawValue, entry.size, entry.hardLink)
      (mode, sha256) = (String(entry.metadata.mode, radix: 8), entry.digest?.hex)
      linkTarget = entry.linkTarget.map { String(decoding: $0, as: UTF8.self) }
    }

    var row: [String] {
      let link = linkTarget.map { " → \(ContainerPath.printable(Array($0.utf8)))" }
      return [
        mode, kind, NumberText.size(bytes), path.description + (link ?? hardLink.map { " = \($0)" } ?? ""),
      ]
    }
  }

  func run() throws {
    // To look at an archive, it need not be trusted.
    let trusted = try trust.files.isEmpty ? nil : TrustedKeys(files: trust.files)
    let configuration = try common.configuration()
    var keys = try key.keys()
    let opened = try source.repository.open(
      source.archive, configuration, &keys, source.expansion, trusted: trusted)
    let isSigned = try opened.signer != nil || Archive.hasSignature(path: opened.path)
    let scope = try path.map { try ContainerPath($0) }
    let inScope = { (path: ContainerPath) in scope.map { path == $0 || path.isInside($0) } ?? true }
    // One after the other: an archive may have a million.
    let visit = { (body: (Entry) -> Void) in
      try opened.manifest.entries { if inScope($0.path) { body(Entry($0)) } }
    }
    var count = 0
    var columns = Output.Columns()
    var entries: [Entry] = []
    try visit { entry in
      count += 1
      if common.json { entries.append(entry) } else { columns.measure(entry.row) }
    }
    let excluded = try opened.manifest.excluded().filter { inScope($0.path) }
    let skipped = try opened.manifest.skipped().filter { inScope($0.path) }
    guard scope == nil || count > 0 || !excluded.isEmpty || !skipped.isEmpty else {
      throw DrydockError(
        .notInArchive, "the archive does not have it; `drydock show` without a path lists what it has",
        path: scope?.description)
    }
    // Names only, never values.
    let vaultItems = try scope == nil ? opened.vaultExtract()?.document.sorted.map(\.description) : nil
    if common.json {
      return Output.json([
        "header": opened.header, "encryption": opened.encryption?.description,
        "snapshot": opened.snapshot, "entries": entries, "excluded": excluded, "skipped": skipped,
        "vault_items": vaultItems, "signed": isSigned, "signer": opened.signer,
      ])
    }
    let header = opened.header
    Output.line(
      "\(header.app), instance \(header.instance) (\(header.layout.rawValue)), \(header.time)".printable)
    Output.line("archive \(header.archive), snapshot \(opened.snapshot.prefix(16))…")
    if let encryption = opened.encryption { Output.line(encryption.description) }
    if let signer = opened.signer {
      Output.line("signed by \(signer.shown)")
    } else if isSigned {
      Output.line("signed; --trusted FILE verifies by whom")
    }
    if let groups = header.groups {
      Output.line("with the groups \(groups.joined(separator: ", "))".printable)
    }
    Output.line(
      "schema version \(header.schemaVersion.map(String.init) ?? "unknown"), written by \(header.tool)"
        .printable)
    try visit { columns.write($0.row) }
    if !excluded.isEmpty { Output.line("excluded by rule") }
    Output.table(excluded.map { [$0.path.description, $0.exclusion.description] })
    if !skipped.isEmpty { Output.line("not stored") }
    Output.table(skipped.map { [$0.path.description, $0.reason.rawValue] })
    guard let vaultItems else { return }
    Output.line("vault items for other devices")
    Output.table(vaultItems.map { [$0.printable] })
  }
}
