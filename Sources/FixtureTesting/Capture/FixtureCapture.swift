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

/// Makes a fixture from a real container: secrets and what was chosen are made up, tables are cut, what no backup takes is
/// left out. The container is only read.
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

  /// Captures. The fixture appears as a whole, or not at all.
  ///
  /// - Throws: ``DrydockError`` with code `notCaptured`, which lists what keeps it from being written; `DrydockError`
  ///   when nothing says the version; `DrydockError`. Nothing was written then.
  package func run(_ transaction: TransactionOptions = TransactionOptions()) throws -> CaptureReport {
    let root = try Directory(fixtures)
    let target = try place(in: root)
    return try Transaction.inspect(container, options: transaction) { staged in
      try ScratchDirectory.withTemporary { scratch in
        let (fixture, report) = try make(staged, in: scratch, transaction.deviceKeys)
        try publish(fixture, in: root, as: target)
        return report
      }
    }
  }

  /// By chance a made-up value is one that the schema does not allow, such as the one letter that a CHECK excludes: others
  /// are made up then, so often.
  private static let attempts = 4

  private func make(
    _ staged: StagedContainer, in scratch: Directory, _ keys: DeviceKeys?
  ) throws -> (fixture: Directory, CaptureReport) {
    var attempt = 1
    while true {
      let path = try ContainerPath("fixture-\(attempt)")
      try scratch.createDirectory(path, mode: 0o755)
      let report = try write(staged, to: scratch.directory(path), keys)
      do {
        let built = try build(scratch.full(path), in: scratch.path + "/built-\(attempt)")
        try requireVersion(built, report)
        return (try scratch.directory(path), report)
      } catch let error as NotBuilt {
        if attempt == Self.attempts { throw error.error }
        attempt += 1
      }
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
    let vault = inventory.hasVault ? try CapturedVault(of: container, in: staged.live, keys) : nil
    var sources = OriginalSources(CaptureSource(staged), options)
    sources.add(directoriesOf: container)
    if let vault { try sources.add(vault) }
    for item in inventory.items { try sources.add(item) }
    let replacements = try replacements(sources)
    var writer = CaptureWriter(
      from: sources.source, to: target, ValueReplacer(replacements, options), options, report)
    try writer.describeRoot()
    for item in inventory.items { try add(item, &writer) }
    if let items = try vault?.made(&writer.replacer, &writer.report) {
      try writer.take(items, at: container.vaultPath)
    }
    try target.create("fixture.yaml", Array(description(version, writer).utf8), mode: 0o644)
    var problems = writer.replacer.problems
    if problems.isEmpty {
      problems = try CaptureScan(replacements, keeping: options.keptNames).problems(in: target)
    }
    guard problems.isEmpty else { throw Self.error(problems) }
    report = writer.report
    report.replaced = writer.replacer.counts.values.sorted { $0.place < $1.place }
    let redactor = Redactor()
    return report.shown { redactor.shown(message: replacements.replacing(in: $0) ?? $0) }
  }

  private static func error(_ problems: [String]) -> DrydockError {
    let shown = problems.prefix(10).map { "\n  - \($0)" }.joined()
    let more = problems.count > 10 ? "\n  and \(problems.count - 10) more" : ""
    return DrydockError(
      .notCaptured, "no fixture was written, since it would still contain:\(shown)\(more)")
  }

  private func replacements(_ sources: OriginalSources) throws -> Replacements {
    let known = Set(sources.columns.map { $0.lowercased() })
    if let unknown = options.columns.sorted().first(where: { !known.contains($0.lowercased()) }) {
      throw DrydockError(
        .notCaptured,
        "no database of the container has a column \(unknown); "
          + NearestWord.hint(for: unknown, among: sources.columns.sorted()))
    }
    return try Replacements(sources.collector.originals, Pseudonyms(), keeping: options.keptNames)
  }

  private func add(_ item: CaptureInventory.Item, _ writer: inout CaptureWriter) throws {
    switch item.kind {
    case .directory: try writer.add(directory: item.path)
    case .excludedDirectory: try writer.add(directory: item.path, isExcluded: true)
    case .link: try writer.add(link: item.path)
    case .file: try writer.add(file: item.path)
    case .settings: try writer.add(settings: item.path)
    case .database(let hasLog): try writer.add(database: item.path, hasLog: hasLog)
    }
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
    let app = writer.replacer.shown(container.app)
    var lines = [
      "# Made by `drydock fixture capture`: secrets, and what was chosen, are made up.",
      "description: \(GoldenYAML.quoted("A container of \(app) of version \(version.number), captured in use", isKey: false))",
      "version: \(version.number)",
    ]
    if version.isUnmarked { lines.append("unmarked: true") }
    let setup = writer.setup.lines
    if !setup.isEmpty { lines += ["container:"] + setup }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: The last steps

  /// The fixture that was written cannot be built.
  private struct NotBuilt: Error {
    let error: DrydockError
  }

  /// Builds the fixture, as `drydock test` will.
  private func build(_ directory: String, in work: String) throws -> Container {
    do {
      return try Fixture.load(directory).build(
        in: work, configuration: configuration, deviceKeys: DeviceKeys(try AgeIdentity.generate()))
    } catch let error as DrydockError {
      throw notBuilt(error.message, error.path, directory, error)
    }
  }

  private func requireVersion(_ built: Container, _ report: CaptureReport) throws {
    let found = try? Transaction.inspect(built) { try DetectedVersion.detect(in: $0, tool: tool).version }
    guard report.isUnmarked || found == report.version else {
      throw DrydockError(
        .notCaptured,
        "the fixture no longer has version \(report.version): what says so was replaced, cut or "
          + "left out; keep more rows, or see that drydock.yaml names the app and its version markers"
      )
    }
  }

  private func notBuilt(
    _ message: String, _ path: String?, _ directory: String, _ cause: any Error
  ) -> NotBuilt {
    // The temporary directory is gone by the time this is read.
    let plain = { (text: String) in
      [directory, realPath(directory) ?? directory].reduce(text) { $0.replacing($1 + "/", with: "") }
    }
    return NotBuilt(
      error: DrydockError(
        .notCaptured,
        "the fixture could not be built again: \(plain(message)); replace less, or leave the file out",
        path: path.map(plain), cause: cause))
  }

  private func publish(_ made: Directory, in root: Directory, as target: ContainerPath) throws {
    try ScratchDirectory.with(".drydock-capture-", in: root) { scratch in
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
      return try ScratchDirectory.withTemporary { scratch in
        let container = try restored(archive, in: scratch, configuration, transaction)
        return try FixtureCapture(
          of: container, as: name, in: fixtures, tool: tool, configuration: configuration, options: options
        ).run(transaction)
      }
    }
  }

  /// A private copy of what an archive holds.
  private static func restored(
    _ archive: Archive, in scratch: Directory, _ configuration: ContainerConfiguration,
    _ transaction: TransactionOptions
  ) throws -> Container {
    var configuration = configuration
    configuration.app = configuration.app ?? archive.header.app
    configuration.groups = [:]
    for (number, id) in (archive.header.groups ?? []).enumerated() {
      let name = try ContainerPath("group-\(number)")
      try scratch.createDirectory(name)
      configuration.groups[id] = scratch.full(name)
    }
    let whole = Container(
      planned: scratch.path + "/whole", layout: configuration.layout ?? archive.header.layout,
      app: archive.header.app, instance: archive.header.instance, configuration: configuration)
    var options = RestoreOptions()
    options.transaction = transaction
    _ = try Restore.run(archive, whole, options.forCopy())
    configuration.layout = whole.layout
    return try Container(at: whole.root, configuration: configuration, instance: archive.header.instance)
  }
}
