import ArgumentParser
import Drydock

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
  @OptionGroup var key: KeyOptions
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
    var encryption: String?
    var snapshot: String
    var entries: [Entry]
    var excluded: [ExcludedPath]
    var skipped: [SkippedPath]
    var vaultItems: [String]?
  }

  func run() throws {
    var keys = try key.keys()
    let file = try repository.archive(archive, common.configuration(), keys)
    let opened = try Archive(path: file, keys: keys.opening(file), limit: expansion.limit())
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
      throw DrydockError(
        .notInArchive, "the archive does not have it; `drydock show` without a path lists what it has",
        path: scope?.description)
    }
    // Whoever may read the archive may read these, and nobody's values.
    let vaultItems = try scope == nil ? opened.vaultExtract()?.document.sorted.map(\.description) : nil
    if common.json {
      return Output.json(
        Result(
          header: opened.header, encryption: opened.encryption?.description, snapshot: opened.snapshot,
          entries: entries, excluded: excluded, skipped: skipped, vaultItems: vaultItems))
    }
    let header = opened.header
    Output.line(
      "\(header.app), instance \(header.instance) (\(header.layout.rawValue)), \(header.time)".printable)
    Output.line("archive \(header.archive), snapshot \(opened.snapshot.prefix(16))…")
    if let encryption = opened.encryption { Output.line(encryption.description) }
    if let groups = header.groups {
      Output.line("with the groups \(groups.joined(separator: ", "))".printable)
    }
    Output.line(
      "schema version \(header.schemaVersion.map(String.init) ?? "unknown"), written by \(header.tool)"
        .printable)
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
    guard let vaultItems else { return }
    Output.line("vault items for other devices")
    Output.table(vaultItems.map { [$0.printable] })
  }
}
