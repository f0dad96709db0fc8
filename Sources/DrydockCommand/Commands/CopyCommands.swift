import ArgumentParser
import Drydock

/// The options of commands that write a copy of an archive.
struct CopyOptions: ParsableArguments {
  @Option(name: .shortAndLong, "Write to this new file.", value: "file") var output: String?
  @Option(name: .customLong("into"), "Write into this directory of archives.", value: "directory")
  var directory: String?
  @OptionGroup(title: OptionTitle.keys) var key: SourceKeyOptions
  @OptionGroup(title: OptionTitle.keys) var recipients: RecipientOptions
  @OptionGroup(title: OptionTitle.keys) var signing: SigningOptions

  /// Where the copy goes; nil when no place is given.
  func target() throws -> ArchiveTarget? {
    switch (output, directory) {
    case (let file?, nil): return .file(file)
    case (nil, let directory?): return .repository(directory)
    case (nil, nil): return nil
    default: throw UsageError("give either -o FILE or --into DIRECTORY")
    }
  }
}

struct ExportCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Copy an archive's snapshot to a new full archive.",
    discussion: """
      The new archive has a new ID, holds the whole snapshot and needs no other \
      archive. Every byte is compared with its hash: a damaged archive is refused, \
      and no file is left. Prints the path. Without -o and --into the archive goes \
      into the repository of -r.

      The copy of an encrypted archive is encrypted as well: name its recipients, or \
      give --no-encryption.

      Examples:
        drydock export latest -r Backups -o Notes.tar.zst
        drydock export A.tar.zst.age --identity key.txt --recipient age1… --into USB
        drydock export Notes.tar.zst --into Elsewhere
      """)

  @OptionGroup var source: ArchiveOptions
  @OptionGroup var copy: CopyOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    guard let place = try copy.target() ?? source.repository.repository.map({ .repository($0) }) else {
      throw UsageError("no place for the archive; give -o FILE, --into DIRECTORY or -r REPOSITORY")
    }
    let configuration = try common.configuration()
    var keys = try copy.key.keys()
    let encryption = try copy.recipients.encryption(configuration)
    let file = try source.repository.archive(source.archive, configuration, keys)
    func requireKept(_ present: ArchiveEncryption?) throws {
      guard encryption == nil, !copy.recipients.noEncryption, let present else { return }
      throw UsageError(
        "\(file) is \(present), and the new archive would not be; give --recipient age1…, or "
          + "--no-encryption if anyone may read it")
    }
    try requireKept(Archive.encryption(path: file))
    let signing = try copy.signing.copies(configuration)
    let opened = try Archive(
      path: file, keys: keys.opening(file), limit: source.expansion.limit(), trusted: signing.sources)
    // A server may have shown another beginning before.
    try requireKept(opened.encryption)
    let report = try showing.during {
      try SnapshotCopy.export(
        opened, to: place, encryption: encryption, signing: signing.keys, tool: DrydockVersion.tool,
        progress: $0)
    }
    if common.json {
      return Output.json([
        "path": report.path, "header": report.header, "snapshot": opened.snapshot,
        "entries": report.entries, "content_bytes": report.contentBytes,
        "archive_bytes": report.archiveBytes, "encrypted": encryption != nil,
        "drops_vault_items": report.dropsVaultItems,
      ])
    }
    Output.message(
      "\(NumberText.count(report.entries, "path")), \(NumberText.size(report.contentBytes)) of content in "
        + "\(NumberText.size(report.archiveBytes))\(encryption == nil ? "" : ", encrypted"); every byte was compared with its hash"
    )
    if report.dropsVaultItems {
      Output.note(
        "the vault's items for other devices are left out, as of every archive that is not encrypted; its "
          + "sealed file is in it")
    }
    Output.line(report.path)
  }
}

struct RekeyCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Encrypt archives to new recipients, or for the first time.",
    discussion: """
      Writes the same archive, byte for byte, encrypted under a new file key to the \
      given recipients, or with a passphrase, and reads the copy back. Give one of -o, \
      --into and --replace. With --replace it replaces the old file in one step; an \
      archive that was not encrypted gets the suffix .age.

      This does not revoke the old keys: whoever has a copy of the old file and an old \
      key can still read it, and many disks keep the bytes of a removed file. If a \
      key was stolen, change the secrets in the archive as well.

      Examples:
        drydock rekey A.tar.zst.age --identity old.txt --recipient age1… --into USB
        drydock rekey -r Backups --identity old.txt --recipients-file new --replace
        drydock rekey Plain.tar.zst --recipient age1… --replace
      """)

  @OptionGroup var archives: ArchivesOptions
  @Flag(help: "Replace each old archive with the new one.") var replace = false
  @OptionGroup var copy: CopyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.limits) var wait: RepositoryWaitOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    let configuration = try common.configuration()
    let target = try target()
    guard let encryption = try copy.recipients.encryption(configuration) else {
      throw UsageError(
        "no recipients are given; use --recipient age1… or --passphrase-file FILE "
          + "(`drydock export --no-encryption` writes an unencrypted copy)")
    }
    var keys = try copy.key.keys()
    let names = try names(configuration, keys)
    let limit = try expansion.limit()
    let signing = try copy.signing.copies(configuration)
    var (rekeyed, failed): ([ResultObject], [ResultObject]) = ([], [])
    var reports: [CopyReport] = []
    var firstFailure: Failure?
    let display = try showing.display()
    defer { display.end() }
    for (index, name) in names.enumerated() {
      var path = name
      if names.count > 1 { display.progress?.begin(item: index + 1, of: names.count) }
      do {
        path = try archives.repository.archive(name, configuration, keys)
        let report = try Repository.rekey(
          path, keys: keys.opening(path), limit: limit, to: target, encryption: encryption,
          signing: signing, lockTimeout: wait.timeout(), progress: display.progress)
        reports.append(report)
        if report.losesSignature {
          Output.warning("the archive is signed, and the copy is not; --sign FILE signs it: \(report.path)")
        }
        rekeyed.append([
          "source": path, "path": report.path, "header": report.header,
          "archive_bytes": report.archiveBytes,
        ])
        if !common.json { Output.line(report.path) }
      } catch {
        guard let failure = Failure(known: error) else { throw error }
        firstFailure = firstFailure ?? failure
        failed.append(["path": path, "code": failure.code, "error": failure.message])
        // The error of the only archive is the command's.
        if archives.names.count == 1 { throw error }
        Output.error("rekey failed: \(failure.text)")
      }
    }
    let warnings = ((try? Repository.rekeyWarnings(about: reports, keys: keys.quick)) ?? [])
      .map { Advice.added(to: $0) }
    for warning in warnings { Output.warning(warning) }
    if common.json { Output.json(["archives": rekeyed, "failed": failed, "warnings": warnings]) }
    if names.isEmpty && !common.json { Output.line("no archives") }
    guard let firstFailure else { return }
    throw (rekeyed.isEmpty ? firstFailure.status : .incomplete).code
  }

  /// Where the copies go; nil to replace the archives.
  private func target() throws -> ArchiveTarget? {
    let target = try copy.target()
    guard replace != (target != nil) else {
      throw UsageError(
        replace
          ? "give one of -o FILE, --into DIRECTORY and --replace"
          : "no place for the copy; give -o FILE or --into DIRECTORY, or --replace")
    }
    if copy.output != nil, archives.names.count != 1 {
      throw UsageError("-o FILE is for one archive; give --into DIRECTORY")
    }
    return target
  }

  private func names(_ configuration: ContainerConfiguration, _ keys: ArchiveKeys) throws -> [String] {
    guard let listing = try archives.listing(configuration, keys, "rekey") else { return archives.names }
    return listing.items.map(\.path) + listing.locked.map(\.path) + listing.unreadable.map(\.path)
  }
}
