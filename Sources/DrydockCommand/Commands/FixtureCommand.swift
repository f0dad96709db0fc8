import ArgumentParser
import Drydock
import DrydockTesting
import Foundation

struct FixtureCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fixture", abstract: "Make fixtures for migration tests.",
    discussion: """
      A fixture is a container of an old version, stored as text, with its expected \
      results. With --json each command prints one JSON document.

      Example: drydock fixture capture Notes v5-in-use --rows 20
      """,
    subcommands: [FixtureCaptureCommand.self])
}

struct FixtureCaptureCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "capture",
    abstract: "Make a fixture from a real container, without its secrets.",
    discussion: """
      What looks like a secret, the vault's values, and what you choose are replaced \
      everywhere by made-up values of the same shape; tables are cut to some rows with \
      everything they refer to. If a replaced value is left anywhere, no fixture is \
      written. Review the fixture before you share it: only you know what else in it \
      is private.

      Examples:
        drydock fixture capture Notes v5 --replace task.title --replace-key email
        drydock fixture capture latest v5 -r Backups --rows 20
      """)

  @Argument(
    help:
      "A container, or an archive: its file, or with -r its ID, INSTANCE@latest, INSTANCE@2026-11-14 or latest.",
    completion: .file())
  var source: String
  @Argument(help: "The fixture's name.") var name: String
  @Option(
    "The directory of fixtures (default: `fixtures:` of drydock.yaml, or Fixtures).", value: "directory")
  var fixtures: String?
  @Option("Rows kept of each table, at most.", value: "number") var rows = 100
  @Option(
    name: .customLong("replace"), "A column whose values are replaced; repeatable.", value: "table.column")
  var columns: [String] = []
  @Option(
    name: .customLong("replace-key"), "A key of settings or documents, likewise; repeatable.", value: "key")
  var keys: [String] = []
  @Option(name: .customLong("replace-file"), "Files whose content is replaced; repeatable.", value: "pattern")
  var files: [String] = []
  @Option("Files and directories that are left out; repeatable.", value: "pattern") var drop: [String] = []
  @Option(
    "Keep what cannot be searched or equals a replaced value: pattern, TABLE.COLUMN or name.", value: "name")
  var keep: [String] = []
  @Option("The schema version, if nothing else shows it.", value: "version") var at: Int?
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    let configuration = try common.configuration()
    try refuseSecret(as: name)
    let fixtures = FixtureOptions.directory(fixtures, configuration)
    let options = try self.options()
    var keys = try key.keys()
    let path = try repository.archive(orContainer: source, configuration, keys)
    let report = try ComparisonOperand.with(
      at: path, configuration: configuration, keys: keys.opening(path), limit: expansion.limit()
    ) { operand in
      if case .container(let container) = operand { try ContainerOptions.recover(container) }
      return try FixtureOptions.capturing(in: fixtures) {
        try FixtureCapture.run(
          operand, as: name, in: fixtures, configuration: configuration, tool: migrations.tool(configuration),
          options: options, transaction: wait.transaction(deviceKeys))
      }
    }
    if common.json { return Output.json(encoding: report) }
    report.write()
  }

  private func options() throws -> CaptureOptions {
    var options = CaptureOptions()
    guard rows > 0 else { throw UsageError("--rows is 1 or more, not \(rows)") }
    if let wrong = columns.first(where: { $0.split(separator: ".", maxSplits: 1).count != 2 }) {
      throw UsageError("--replace names TABLE.COLUMN, such as task.title; not \(wrong)")
    }
    if let at, at < 0 { throw UsageError("--at is a schema version, 0 or more; not \(at)") }
    (options.rows, options.columns, options.keys) = (rows, Set(columns), Set(keys))
    (options.files, options.dropped, options.kept, options.version) = (files, drop, keep, at)
    return options
  }
}

extension CaptureReport {
  /// The fixture's directory as the user would name it.
  var shownDirectory: String {
    FindingText.path(directory, from: FileManager.default.currentDirectoryPath)
  }

  /// Says what was kept, replaced and left out; never a value.
  ///
  /// - Parameter next: what to do next, if not to record its goldens.
  func write(next: String? = nil) {
    Output.line(directory)
    if Output.isQuiet { return }
    let marked = isUnmarked ? ", as --at says" : ""
    Output.line("schema version: \(version)\(marked)")
    Output.line("kept")
    let counts = [
      NumberText.count(settings, "settings file"), NumberText.count(files, "other file"),
      NumberText.count(vaultItems, "vault item"),
    ]
    Output.line("  \(counts.joined(separator: ", "))")
    Output.table(
      tables.map { table in
        let all = table.kept == table.of
        return [
          "\(table.database): \(table.table)",
          all ? NumberText.count(table.of, "row") : "\(table.kept) of \(NumberText.count(table.of, "row"))",
        ]
      })
    Output.line("replaced")
    if replaced.isEmpty { Output.line("  nothing: no secret was found, and no rule names a value") }
    Output.table(
      replaced.map { item in
        let parts = [
          item.secrets == 0 ? nil : NumberText.count(item.secrets, "secret"),
          item.chosen == 0 ? nil : "\(item.chosen) by rule",
          item.others == 0 ? nil : "\(item.others) with a value replaced elsewhere",
        ]
        return [item.place, parts.compactMap { $0 }.joined(separator: ", ")]
      })
    if !dropped.isEmpty {
      Output.line("left out")
      Output.table(dropped.map { [$0.path, $0.reason] })
    }
    if !binaries.isEmpty {
      Output.line("copied unchanged because they are not text; review them")
      Output.table(binaries.map { [$0] })
    }
    for note in notes { Output.note("\(note)") }
    Output.advice(
      next ?? "Next: review \(shownDirectory), then run `drydock test \(directory.lastName) --record`.")
  }
}
