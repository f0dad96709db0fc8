import ArgumentParser
import Drydock
import Foundation

struct ImportCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import an app's data from a device backup into a container or an archive.",
    discussion: """
      The backup is what Finder or iTunes made of an iPhone or iPad, or a file of \
      `adb backup`; it is only read. App groups are imported too. From an encrypted \
      iPhone backup, --device-key also imports the keychain items of the app's access \
      groups into the vault. The exit code is 3 if something is missing.

      Examples:
        drydock import MobileSync/Backup/UDID
        drydock import MobileSync/Backup/UDID --app com.example.notes Notes
        drydock import backup.ab --app com.example.notes -r Backups
      """)

  @Argument(
    help: ArgumentHelp(
      "The backup: the directory of one device, with Manifest.db, or a file NAME.ab.", valueName: "backup"),
    completion: .file())
  var backup: String
  @Argument(
    help: ArgumentHelp(
      "The container to create: a path where nothing is, or an empty directory.", valueName: "container"),
    completion: .file())
  var path: String?
  @Option("The app's bundle ID or package; without it, the apps are listed.", value: "id") var app: String?
  @Flag(help: "List the apps in the backup, and import nothing.") var list = false
  @Option(
    name: .shortAndLong, "Write an archive into this repository instead.", value: "repository",
    completion: .directory)
  var repository: String?
  @Option(name: .shortAndLong, "Write an archive to this new file instead.", value: "file")
  var output: String?
  @Option(
    "Open an encrypted backup with the password in this file (or named pipe, or /dev/fd/3).", value: "file")
  var passwordFile: String?
  @Option("The instance, its name in archives (default: the backup's name).", value: "name")
  var instance: String?
  @OptionGroup(title: OptionTitle.keys) var recipients: RecipientOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions
  @OptionGroup(title: OptionTitle.limits) var rate: RateOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions
  @OptionGroup(title: OptionTitle.imported) var extent: IPhoneImportOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions

  func run() throws {
    let app = try wantedApp()
    // Which of the two it is; the reader looks at the content.
    guard FollowedStatus.isDirectory(backup) else { return try importAndroid(app) }
    let found = try IPhoneBackup(at: backup)
    let opened = try found.opened(with: password(isNeeded: found.isEncrypted))
    guard let app else {
      let contents = try opened.list()
      return list(contents, DescribedBackup(found)) {
        [
          $0.kind.rawValue, $0.id, NumberText.count($0.files, "file"), NumberText.size($0.bytes),
          $0.damaged > 0 ? "\($0.damaged) damaged" : "",
        ]
      }
    }
    try run(IPhoneApp(app, in: opened, groups: extent.groups, accessGroups: extent.accessGroups))
  }

  private func importAndroid(_ app: String?) throws {
    let found = try AndroidBackup(at: backup)
    guard extent.groups.isEmpty, extent.accessGroups.isEmpty else {
      throw UsageError(
        "--group and --access-group are for the backup of an iPhone; all groups of \(backup) come")
    }
    let key = try found.key(password(isNeeded: found.isEncrypted))
    guard let app else {
      let contents = try found.list(key, limit: expansion.limit())
      return list(contents, DescribedBackup(found)) {
        [
          $0.package, NumberText.count($0.files, "file"), NumberText.size($0.bytes),
          $0.hasProgram ? "with its program" : "",
        ]
      }
    }
    try run(AndroidApp(app, in: found, key, limit: expansion.limit()))
  }

  private func list<Contents: Encodable & Sendable>(
    _ contents: [Contents], _ described: DescribedBackup, row: (Contents) -> [String]
  ) {
    if common.json { return Output.json(["backup": described, "contents": contents]) }
    described.write(backup)
    Output.table(contents.map(row))
    if contents.isEmpty { Output.note("the backup has no app with data") }
  }

  /// The app to import; nil when the apps are only listed. An import needs one target, and no variable or file names it.
  private func wantedApp() throws -> String? {
    let targets = [path, output, repository].compactMap { $0 }
    guard let app, !list else {
      if targets.isEmpty { return nil }
      throw UsageError("which app? give --app ID; without a target, the apps of the backup are listed")
    }
    guard targets.count <= 1 else {
      throw UsageError("give a container, -o FILE or -r REPOSITORY, only one of them")
    }
    guard !targets.isEmpty else {
      throw UsageError("where to? give a container to create, -o FILE or -r REPOSITORY")
    }
    guard path == nil || !recipients.isGiven else {
      throw UsageError("a container is not encrypted; give recipients or a passphrase with -o or -r")
    }
    return app
  }

  /// The backup's password: from a file, or from a person.
  private func password(isNeeded: Bool) throws -> SecretBytes? {
    guard isNeeded else { return nil }
    if let file = passwordFile ?? Environment["PASSWORD_FILE"] {
      return try Passphrase.read(file, "password")
    }
    guard Passphrase.canAsk else {
      throw UsageError(
        "\(backup) is encrypted, and asking for its password needs a terminal; give --password-file FILE")
    }
    return try Passphrase.ask("password of the backup \(backup)")
  }

  private func run(_ app: some ImportedApp) throws {
    let configuration = try common.configuration()
    let work = ContainerImport(app, configuration: configuration, instance: instance)
    var transaction = try wait.transaction(deviceKeys)
    let display = try showing.display()
    defer { display.end() }
    transaction.progress = display.progress
    let report: ImportReport
    if let path {
      let (outcome, container) = try work.create(at: path, options: transaction)
      display.end()
      report = outcome.value
      if common.json { Output.json(outcome.document(document(report, app, container))) }
      outcome.report(on: container, asJSON: common.json) { write($0, app, container) }
      if !common.json { report.warn() }
      try outcome.throwUnlessClean()
    } else {
      let options = SnapshotOptions(transaction, encryption: try recipients.encryption(configuration))
      let result = try work.snapshot(
        into: repository.map(Repository.init), orTo: output ?? "", options: options, transaction: transaction)
      display.end()
      report = result.report
      write(report, result.snapshot, app)
      if result.snapshot.isIncomplete { throw ExitStatus.incomplete.code }
    }
    if report.isIncomplete { throw ExitStatus.incomplete.code }
  }

  private static func summary(_ report: ImportReport, _ app: some ImportedApp) -> String {
    let items =
      report.vaultItems.isEmpty ? "" : ", \(NumberText.count(report.vaultItems.count, "vault item"))"
    return
      "imported \(app.app): \(NumberText.count(report.files, "file")), \(NumberText.size(report.bytes))\(items)"
  }

  private func write(
    _ report: ImportReport, _ snapshot: SnapshotReport, _ app: some ImportedApp
  ) {
    if common.json {
      return Output.json(document(report, app, nil).adding(snapshot.document))
    }
    if !common.quiet {
      Output.line(snapshot.path)
      let excluded = snapshot.excluded.count
      Output.message(
        Self.summary(report, app)
          + (excluded > 0 ? "; excluded \(NumberText.count(excluded, "path")) by rule" : ""))
      snapshot.printNotes()
    }
    snapshot.printLosses(isForeign: false)
    report.warn()
  }

  private func write(_ report: ImportReport, _ app: some ImportedApp, _ container: Container) {
    Output.line(Self.summary(report, app))
    Output.line("  \(container.root)")
    for group in container.groups {
      Output.line(
        "group \(group.id): \(NumberText.count(report.groups[group.id] ?? 0, "file"))\n  \(group.root)")
    }
    // What the directory itself does not show, other commands have to be told.
    let seen = try? Container(at: container.root)
    if container.groups.isEmpty && seen?.app == app.app && seen?.layout == app.layout { return }
    Output.line("a drydock.yaml for it:")
    Output.line("  app: \(Self.yaml(app.app))\n  layout: \(app.layout.rawValue)")
    if container.groups.isEmpty { return }
    Output.line("  groups:")
    // Relative to the container, so that both can be moved together.
    let name = ContainerImport.groupsDirectory(of: container.anchor).split(separator: "/").last ?? ""
    let folder = (container.root == container.anchor ? "../" : "../../") + name
    for group in container.groups {
      Output.line("    \(Self.yaml(group.id)): \(Self.yaml("\(folder)/\(group.id)"))")
    }
  }

  /// A name as it is written in YAML.
  private static func yaml(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy { byte in
      byte < 0x80
        && (UnicodeScalar(byte).properties.isAlphabetic || (0x30...0x39).contains(byte)
          || "._-/".utf8.contains(byte))
    }
    let escaped = name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return isPlain && !name.isEmpty ? name : "\"\(escaped)\""
  }

  private func document(
    _ report: ImportReport, _ app: some ImportedApp, _ container: Container?
  ) -> ResultObject {
    [
      "app": app.app, "layout": app.layout, "container": container?.root,
      "groups": container.map { Dictionary(uniqueKeysWithValues: $0.groups.map { ($0.id, $0.root) }) },
      "files": report.files, "bytes": report.bytes, "vault_items": report.vaultItems,
      "left_out": report.leftOut, "missing_files": report.missingFiles, "notes": report.notes,
    ]
  }
}

/// What is imported of an iPhone's backup, apart from what the backup says to be the app's.
struct IPhoneImportOptions: ParsableArguments {
  @Option(name: .customLong("group"), "Also import this app group; repeatable.", value: "id")
  var groups: [String] = []
  @Option(
    name: .customLong("access-group"),
    """
    Also import keychain items of this access group; repeatable (default: the app's ID, with or without a team's prefix).
    """, value: "group")
  var accessGroups: [String] = []
}

/// What a backup is: a document in JSON, or two lines.
private struct DescribedBackup: Encodable, Sendable {
  var source: DeviceSource, encrypted: Bool
  /// Of an iPhone's.
  var device: String?, system: String?, time: String?
  /// Of an Android device's.
  var version: Int?, compressed: Bool?

  init(_ backup: IPhoneBackup) {
    (source, encrypted) = (.iphoneBackup, backup.isEncrypted)
    (device, system, time) = (backup.device, backup.system, backup.time)
  }

  init(_ backup: AndroidBackup) {
    (source, encrypted) = (.androidBackup, backup.isEncrypted)
    (version, compressed) = (backup.version, backup.isCompressed)
  }

  func write(_ path: String) {
    let details = [
      device.map { "\"\($0)\"" }, system, time, version.map { "version \($0)" },
      compressed.map { $0 ? "compressed" : "not compressed" }, encrypted ? "encrypted" : "not encrypted",
    ]
    Output.line("\(source.name): \(details.compactMap(\.self).joined(separator: ", "))")
    Output.line("  \(realPath(path) ?? path)")
  }
}

extension ImportReport {
  /// Prints what is missing.
  fileprivate func warn() {
    for note in notes { Output.note(note) }
    let left = leftOut.lazy.map { "\($0.name): \($0.reason)" }
    for line in left.lines(20, more: "more of these; --json lists all") { Output.warning(line) }
    if missingFiles > 0 {
      let numbers = [missingFiles, files + missingFiles].map(NumberText.grouped)
      Output.warning("\(numbers.joined(separator: " of ")) files missing")
    }
  }
}

extension DeviceSource {
  /// Says what a backup or a simulator's device is, and which command makes a container of it.
  func show(_ path: String, asJSON: Bool) throws {
    switch self {
    case .iphoneBackup, .androidBackup:
      let backup =
        try self == .iphoneBackup
        ? DescribedBackup(IPhoneBackup(at: path)) : DescribedBackup(AndroidBackup(at: path))
      if asJSON { return Output.json(["backup": backup]) }
      backup.write(path)
      Output.advice("`drydock import \(Output.word(path)) --list` lists the apps in it")
    case .iphoneBackups, .simulator:
      if asJSON { return Output.json(["source": self, "path": path]) }
      Output.line("\(name)\n  \(realPath(path) ?? path)")
      if self == .simulator {
        Output.advice(
          "its containers are in data/Containers/Data/Application: `drydock inspect` one of them, such as the one that "
            + "`xcrun simctl get_app_container DEVICE APP data` prints")
      } else {
        for name in (try? Self.backups(in: Directory(path))) ?? [] { Output.line("  \(name)") }
        Output.advice(
          "`drydock import \(Output.word(path))/NAME --list` lists the apps in one of them")
      }
    }
  }
}
