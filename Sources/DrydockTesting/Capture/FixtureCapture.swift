import AgeEncryption
import AppContainer
import BackupRepository
import ContainerDiff
import ContainerTransaction
import Drydock
import DrydockErrors
import FileSystem
import Formats
import Foundation
import MigrationEngine

/// Makes a fixture from a real container: secrets and what was chosen are made up, tables are cut, what no backup takes
/// is left out. The container is only read.
package struct FixtureCapture {
  private let container: Container
  private let name: String
  private let fixtures: String
  private let options: CaptureOptions
  private let tool: MigrationTool?
  /// What `drydock.yaml` will say when the fixture is tested.
  private let configuration: ContainerConfiguration

  /// A capture of a container.
  ///
  /// - Parameters:
  ///   - name: the fixture's; nothing of that name may be there.
  ///   - fixtures: the directory of fixtures.
  ///   - tool: the other tool whose files the migrations are.
  ///   - configuration: what the fixture will be tested with; the container's own, if nothing is said.
  package init(
    of container: Container, as name: String, in fixtures: String, tool: MigrationTool? = nil,
    configuration: ContainerConfiguration? = nil, options: CaptureOptions = CaptureOptions()
  ) {
    (self.container, self.name, self.fixtures) = (container, name, fixtures)
    (self.tool, self.options) = (tool, options.knowing(container))
    self.configuration = configuration ?? container.configuration
  }

  private static let attempts = 4

  /// Captures. The fixture appears as a whole, or not at all.
  ///
  /// - Throws: `DrydockError` with code `notCaptured`, which lists what prevents the capture, also an unknown version.
  ///   Nothing was written then.
  package func run(_ transaction: TransactionOptions = TransactionOptions()) throws -> CaptureReport {
    let root = try Directory(fixtures)
    let target = try place(in: root)
    let staged = try DiscardedStage(on: container, options: transaction)
    let temporary = try ScratchDirectory.temporary()
    let scratch = temporary.directory
    var attempt = 0
    while true {
      attempt += 1
      let path = try ContainerPath("fixture-\(attempt)")
      try scratch.createDirectory(path, mode: 0o755)
      let fixture = try scratch.directory(path)
      let report = try write(staged, to: fixture, transaction.deviceKeys)
      let built: Container
      do { built = try build(fixture.path, in: scratch.path + "/built-\(attempt)") } catch {
        // By chance a made-up value is one that the schema forbids, such as the one letter that a CHECK excludes.
        if attempt < Self.attempts { continue }
        throw error
      }
      try requireVersion(built, report)
      try publish(fixture, in: root, as: target)
      return report
    }
  }

  private func place(in root: Directory) throws -> ContainerPath {
    guard let target = try? ContainerPath(name), target.components.count == 1, !name.hasPrefix(".") else {
      throw DrydockError(
        .notCaptured, "the fixture's name is that of a directory, such as v5-in-use: not \(name)")
    }
    guard try root.status(target) == nil else {
      throw DrydockError(
        .notCaptured, "already exists; give another name, or remove it first", path: root.full(target))
    }
    return target
  }

  // MARK: Writing

  private func write(
    _ staged: StagedContainer, to target: Directory, _ keys: DeviceKeys?
  ) throws -> CaptureReport {
    let version = try self.version(staged)
    var report = CaptureReport(
      directory: fixtures + "/" + name, version: version.number, isUnmarked: version.isUnmarked)
    let inventory = try CaptureInventory(staged, options)
    report.dropped = inventory.dropped
    let vault = inventory.hasVault ? try vault(in: staged.live, keys) : nil
    var first = CaptureWriter(from: CaptureSource(staged), options, report)
    try first.add(inventory, of: container, vault: vault)
    try requireColumns(first.columns)
    let replacements = try Replacements(first.values.originals, keeping: options.keptNames)
    var second = CaptureWriter(from: first.source, to: target, options, report, replacing: replacements)
    try second.add(inventory, of: container, vault: vault)
    try target.create("fixture.yaml", Array(description(version, second).utf8), mode: 0o644)
    var problems = first.values.problems + second.values.problems
    if problems.isEmpty {
      problems = try CaptureScan(replacements, keeping: options.keptNames).problems(in: target)
    }
    guard problems.isEmpty else {
      let shown = problems.prefix(10).map { "\n  - \($0)" }.joined()
      let more = problems.count > 10 ? "\n  and \(problems.count - 10) more" : ""
      throw DrydockError(
        .notCaptured, "no fixture was written, since it would still contain:\(shown)\(more)")
    }
    report = second.report
    report.replaced = second.values.counts.values.sorted { $0.place < $1.place }
    let redactor = Redactor()
    return report.shown { redactor.shown(message: replacements.replacing(in: $0) ?? $0) }
  }

  /// The items of the vault; nil when there is none.
  private func vault(in root: Directory, _ keys: DeviceKeys?) throws -> [VaultItem]? {
    let path = container.vaultPath
    guard try root.status(path) != nil else { return nil }
    guard let keys else {
      throw DrydockError(
        .notCaptured,
        "\(path) is the vault: without its key its secrets cannot be found in other files; give "
          + "the device key, or leave the vault out")
    }
    return try Vault(opening: root.contents(path), with: keys, path: path.description).sorted
  }

  private func requireColumns(_ columns: Set<String>) throws {
    let known = Set(columns.map { $0.lowercased() })
    guard let unknown = options.columns.sorted().first(where: { !known.contains($0.lowercased()) }) else {
      return
    }
    throw DrydockError(
      .notCaptured,
      "no database of the container has a column \(unknown); "
        + NearestWord.hint(for: unknown, among: columns.sorted()))
  }

  // MARK: The version

  private func version(_ staged: StagedContainer) throws -> (number: Int, isUnmarked: Bool) {
    do {
      let found = try DetectedVersion.detect(in: staged, tool: tool).version
      if let said = options.version, said != found {
        throw DrydockError(
          .notCaptured, "the container has version \(found), not \(said)")
      }
      return (found, false)
    } catch let error as DrydockError where error.code == .unknownVersion {
      guard let said = options.version else {
        throw DrydockError(
          .notCaptured, "\(error.message); or give the version", path: error.path ?? container.root,
          cause: error)
      }
      return (said, true)
    }
  }

  private func description(_ version: (number: Int, isUnmarked: Bool), _ writer: CaptureWriter) -> String {
    let app = writer.values.shown(container.app)
    let summary = "A container of \(app) of version \(version.number), captured in use"
    var lines = [
      "# Made by `drydock fixture capture`: secrets, and what was chosen, are made up.",
      "description: \(GoldenYAML.quoted(summary, isKey: false))",
      "version: \(version.number)",
    ]
    if version.isUnmarked { lines.append("unmarked: true") }
    let setup = writer.setup.lines
    if !setup.isEmpty { lines += ["container:"] + setup }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: The last steps

  /// Builds the fixture, as `drydock test` will.
  private func build(_ directory: String, in work: String) throws -> Container {
    do {
      return try Fixture.load(directory).build(
        in: work, configuration: configuration, deviceKeys: DeviceKeys(try AgeIdentity.generate()))
    } catch let error as DrydockError {
      // The temporary directory is gone by the time this is read.
      let plain = { (text: String) in
        [directory, realPath(directory) ?? directory].reduce(text) { $0.replacing($1 + "/", with: "") }
      }
      throw DrydockError(
        .notCaptured,
        "the fixture could not be built again: \(plain(error.message)); replace less, or leave the file out",
        path: error.path.map(plain), cause: error)
    }
  }

  private func requireVersion(_ built: Container, _ report: CaptureReport) throws {
    let found = try? DetectedVersion.detect(in: DiscardedStage(on: built), tool: tool).version
    guard report.isUnmarked || found == report.version else {
      throw DrydockError(
        .notCaptured,
        "the fixture no longer has version \(report.version): what says so was replaced, cut or "
          + "left out; keep more rows, or see that drydock.yaml names the app and its version markers"
      )
    }
  }

  private func publish(_ made: Directory, in root: Directory, as target: ContainerPath) throws {
    let temporary = try ScratchDirectory(".drydock-capture-", in: root)
    let scratch = temporary.directory
    let fixture: ContainerPath = "fixture"
    try scratch.createDirectory(fixture, mode: 0o755)
    let copy = try scratch.directory(fixture)
    try made.walk { entry in
      switch entry.status.type {
      case .directory: try copy.createDirectory(entry.path, mode: 0o755)
      case .symbolicLink: try copy.createLink(entry.path, target: made.linkTarget(entry.path))
      default:
        try made.copyContents(of: entry.path, to: entry.path, in: copy)
        try copy.setMode(entry.status.mode & 0o100 == 0 ? 0o644 : 0o755, of: entry.path)
      }
      return .into
    }
    try scratch.renameNew(fixture, in: root, to: target)
  }
}

extension CaptureReport {
  /// The report with every place as it may be shown.
  func shown(_ text: (String) -> String) -> CaptureReport {
    var report = self
    for index in replaced.indices { report.replaced[index].place = text(replaced[index].place) }
    for index in tables.indices { report.tables[index].database = text(tables[index].database) }
    for index in dropped.indices {
      report.dropped[index].path = text(dropped[index].path)
      report.dropped[index].reason = text(dropped[index].reason)
    }
    report.binaries = binaries.map(text)
    report.notes = notes.map(text)
    return report
  }
}

/// Makes fixtures from containers and archives.
package enum Capturing {
  /// Captures what was named.
  ///
  /// - Parameters:
  ///   - operand: a container or an archive.
  ///   - name: the fixture's name.
  ///   - fixtures: the directory of fixtures.
  ///   - tool: the other tool whose files the migrations are.
  ///   - transaction: its device keys open the vault.
  /// - Throws: as ``FixtureCapture/run(_:)``; for an archive what restoring it throws.
  package static func run(
    _ operand: Comparing.Operand, as name: String, in fixtures: String, configuration: ContainerConfiguration,
    tool: MigrationTool? = nil, options: CaptureOptions = CaptureOptions(),
    transaction: TransactionOptions = TransactionOptions()
  ) throws -> CaptureReport {
    switch operand {
    case .golden(let golden):
      throw DrydockError(
        .notCaptured, "a golden is not a container: it does not hold all databases and files",
        path: golden.directory)
    case .container(let container):
      return try FixtureCapture(of: container, as: name, in: fixtures, tool: tool, options: options).run(
        transaction)
    case .archive(let archive):
      let temporary = try ScratchDirectory.temporary()
      let scratch = temporary.directory
      let container = try restored(archive, in: scratch, configuration, transaction)
      return try FixtureCapture(
        of: container, as: name, in: fixtures, tool: tool, configuration: configuration, options: options
      ).run(transaction)
    }
  }

  /// A private copy of what an archive holds.
  private static func restored(
    _ archive: Archive, in scratch: Directory, _ configuration: ContainerConfiguration,
    _ transaction: TransactionOptions
  ) throws -> Container {
    var configuration = configuration
    configuration.app = configuration.app ?? archive.header.app
    configuration.layout = configuration.layout ?? archive.header.layout
    configuration.groups = Dictionary(
      uniqueKeysWithValues: (archive.header.groups ?? []).enumerated().map { ($1, "../group-\($0)") })
    var options = RestoreOptions()
    options.transaction = transaction
    let copy = try FixturePlace(making: scratch.full("copy"), configuration).restore(
      archive, configuration, options)
    return try Container(at: copy.root, configuration: configuration, instance: archive.header.instance)
  }
}
