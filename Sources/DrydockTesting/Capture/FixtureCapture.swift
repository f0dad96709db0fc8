import AgeEncryption
import AppContainer
import AppStores
import BackupRepository
import ContainerDiff
import ContainerTransaction
import Cryptography
import Drydock
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB
import MigrationEngine

/// Makes a fixture from a real container: secrets and chosen values are made up, tables are cut, and what backups exclude
/// is left out. The container is only read.
package struct FixtureCapture {
  fileprivate let container: Container
  fileprivate let name: String, fixtures: String
  fileprivate let tool: MigrationTool?
  fileprivate let options: CaptureOptions
  /// The configuration that the fixture is tested with.
  fileprivate let configuration: ContainerConfiguration

  /// Captures what an operand is: a container or an archive. The fixture appears as a whole, or not at all.
  ///
  /// - Parameters:
  ///   - configuration: the one that an archive's fixture is tested with; for a container it is the container's own.
  ///   - tool: the other tool that the migrations are written for.
  ///   - transaction: its device keys open the vault.
  /// - Throws: `DrydockError` with code `notCaptured`, which lists what prevents the capture, also an unknown version; for
  ///   an archive what restoring it throws. Nothing was written then.
  package static func run(
    _ operand: ComparisonOperand, as name: String, in fixtures: String, configuration: ContainerConfiguration,
    tool: MigrationTool? = nil, options: CaptureOptions = CaptureOptions(),
    transaction: TransactionOptions = TransactionOptions()
  ) throws -> CaptureReport {
    func capture(
      _ container: Container, testedWith configuration: ContainerConfiguration
    ) throws -> CaptureReport {
      try FixtureCapture(
        container: container, name: name, fixtures: fixtures, tool: tool, options: options,
        configuration: configuration
      ).run(transaction)
    }
    switch operand {
    case .golden(let golden):
      throw DrydockError(
        .notCaptured, "a golden is not a container: it does not hold all databases and files",
        path: golden.directory)
    case .container(let container): return try capture(container, testedWith: container.configuration)
    case .archive(let archive):
      let temporary = try ScratchDirectory.temporary()
      let scratch = temporary.directory
      var settings = configuration
      settings.app = configuration.app ?? archive.header.app
      settings.layout = configuration.layout ?? archive.header.layout
      settings.groups = Dictionary(
        uniqueKeysWithValues: (archive.header.groups ?? []).enumerated().map { ($1, "../group-\($0)") })
      var restore = RestoreOptions()
      restore.transaction = transaction
      let copy = try FixturePlace(making: scratch.full("copy"), settings).restore(
        archive, settings, restore)
      return try capture(
        Container(at: copy.root, configuration: settings, instance: archive.header.instance),
        testedWith: configuration)
    }
  }

  private func run(_ transaction: TransactionOptions) throws -> CaptureReport {
    let target = try place()
    let staged = try DiscardedStage(on: container, options: transaction)
    var attempt = 1
    while true {
      let temporary = try ScratchDirectory.temporary()
      let scratch = temporary.directory
      try scratch.createDirectory("fixture", mode: 0o755)
      let fixture = try scratch.directory("fixture")
      let report = try write(staged, to: fixture, transaction.deviceKeys)
      do {
        try check(fixture, in: scratch.full("built"), report)
      } catch let error as DrydockError where attempt < Self.attempts && error.isConstraintFailure {
        attempt += 1
        continue
      }
      try publish(fixture, in: Directory.opened(creating: fixtures), as: target)
      return report
    }
  }

  /// How often values are made up: random ones may violate a check or a unique index of the app's schema.
  private static let attempts = 5

  private func place() throws -> ContainerPath {
    guard let target = try? ContainerPath(name), target.components.count == 1, !name.hasPrefix(".") else {
      throw DrydockError(
        .notCaptured, "the fixture's name must be the name of one directory, such as v5-in-use; it is \(name)"
      )
    }
    // The directory is created only when there is something to put in it.
    guard try FollowedStatus.identity(fixtures) == nil || Directory(fixtures).status(target) == nil else {
      throw DrydockError(
        .notCaptured, "already exists; give another name, or remove it first", path: fixtures + "/" + name)
    }
    return target
  }

  // MARK: Writing

  private func write(
    _ staged: StagedContainer, to target: Directory, _ keys: DeviceKeys?
  ) throws -> CaptureReport {
    let version = try self.version(staged)
    let report = CaptureReport(
      directory: fixtures + "/" + name, version: version.number, isUnmarked: version.isUnmarked)
    var first = try CaptureWriter(staged, options, report)
    try first.addAll(keys)
    try requireFound(first)
    let replacements = try Replacements(first.values.originals, keeping: options.kept)
    var second = try CaptureWriter(
      staged, options, report, after: first, replacements: replacements, to: target)
    try second.addAll(keys)
    try target.create("fixture.yaml", Array(description(second).utf8), mode: 0o644)
    var problems = second.values.problems
    if problems.isEmpty {
      problems = try replacements.problems(in: target, keeping: options.kept)
    }
    guard problems.isEmpty else {
      let shown = problems.prefix(10).map { "\n  - \($0)" }.joined()
      let more = problems.count > 10 ? "\n  and \(problems.count - 10) more" : ""
      throw DrydockError(
        .notCaptured, "no fixture was written, since it would still contain:\(shown)\(more)")
    }
    return second.report
  }

  /// Refuses what matches nothing: because of a misspelled name, what is private would stay.
  private func requireFound(_ visit: CaptureWriter) throws {
    let known = Set(visit.columns.map { $0.lowercased() })
    for unknown in options.columns.sorted() where !known.contains(unknown.lowercased()) {
      let hint = NearestWord.hint(for: unknown, among: visit.columns.sorted())
      throw DrydockError(.usage, "no database of the container has a column \(unknown); \(hint)")
    }
    if let unknown = options.keys.subtracting(visit.values.foundKeys).min() {
      throw DrydockError(
        .usage,
        "nothing that the fixture would keep has a key \(unknown), so nothing was replaced; correct or remove it"
      )
    }
    let patterns = (options.files + options.dropped).filter { !$0.hasPrefix("!") }
    if let unknown = patterns.first(where: { !visit.foundPatterns.contains($0) }) {
      throw DrydockError(.usage, "no file of the container matches \(unknown); correct or remove it")
    }
  }

  // MARK: The version

  private func version(_ staged: StagedContainer) throws -> (number: Int, isUnmarked: Bool) {
    do {
      let found = try DetectedVersion.detect(in: staged, tool: tool).version
      if let given = options.version, given != found {
        throw DrydockError(.notCaptured, "the container has version \(found), not \(given)")
      }
      return (found, false)
    } catch let error as DrydockError where error.code == .unknownVersion {
      if let given = options.version { return (given, true) }
      throw DrydockError(
        .notCaptured, "\(error.message); or give the version", path: error.path ?? container.root,
        cause: error)
    }
  }

  private func description(_ writer: CaptureWriter) -> String {
    let (app, report) = (writer.values.shown(container.app), writer.report)
    let summary = "A container of \(app) of version \(report.version), captured in use"
    var lines = [
      "# Made by `drydock fixture capture`: secrets and chosen values are made up.",
      "description: \(GoldenYAML.quoted(summary, isKey: false))",
      "version: \(report.version)",
    ]
    if report.isUnmarked { lines.append("unmarked: true") }
    let setup = writer.setup.lines
    if !setup.isEmpty { lines += ["container:"] + setup }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: The last steps

  /// Builds the fixture, as `drydock test` does, and compares its version.
  private func check(_ fixture: Directory, in work: String, _ report: CaptureReport) throws {
    let built: Container
    do {
      built = try Fixture.load(fixture.path).build(
        in: work, configuration: configuration, deviceKeys: DeviceKeys(try AgeIdentity.generate()))
    } catch let error as DrydockError {
      // The temporary directory no longer exists when this is read.
      let plain = { (text: String) in
        [fixture.path, realPath(fixture.path) ?? fixture.path].reduce(text) {
          $0.replacing($1 + "/", with: "")
        }
      }
      throw DrydockError(
        .notCaptured,
        "the fixture cannot be built: \(plain(error.message)); capture again, since other values are made up "
          + "then, replace less, or leave the file out",
        path: error.path.map(plain), cause: error)
    }
    let found = try? DetectedVersion.detect(in: DiscardedStage(on: built), tool: tool).version
    guard report.isUnmarked || found == report.version else {
      throw DrydockError(
        .notCaptured,
        "the fixture does not have version \(report.version), because its version marker was replaced, cut or "
          + "left out; keep more rows, or check the app and the version markers in drydock.yaml")
    }
  }

  private func publish(_ made: Directory, in root: Directory, as target: ContainerPath) throws {
    let temporary = try ScratchDirectory(".drydock-capture-", in: root)
    let scratch = temporary.directory
    let fixture: ContainerPath = "fixture"
    try scratch.createDirectory(fixture, mode: 0o755)
    let copy = try scratch.directory(fixture)
    try made.walk { entry in
      try made.copy(entry, to: entry.path, in: copy)
      return .into
    }
    try scratch.renameNew(fixture, in: root, to: target)
  }
}

extension Replacements {
  /// Searches every byte and every name of a fixture for what must not be in it.
  ///
  /// - Parameter kept: names that may stay, whatever they contain.
  /// - Returns: what was found, with its place and the remedy.
  fileprivate func problems(in root: Directory, keeping kept: [String]) throws -> [String] {
    let kept = PatternIndex(kept.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
    /// The originals in bytes, except inside a kept name.
    func remaining(in bytes: [UInt8]) -> [(range: Range<Int>, original: Original)] {
      let found = found(in: bytes)
      if found.isEmpty { return [] }
      let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
      return found.filter { match in !kept.contains { $0.clamped(to: match.range) == match.range } }
    }
    func shown(_ text: String) -> String { replacing(in: text) ?? text }
    func words(_ original: Original) -> String { "\(original.kind) of \(shown(original.source))" }

    var problems: [String] = []
    try root.walk { entry in
      let path = shown(entry.path.description)
      if let (_, original) = remaining(in: entry.name.bytes).first {
        problems.append("a name in the fixture contains \(words(original)); leave the file out")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        for (range, original) in remaining(in: bytes).prefix(3) {
          let line = bytes[..<range.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
          problems.append(
            "\(path):\(line): still contains \(words(original)); if it is the app's own word, keep it, "
              + "else replace the file, or leave it out")
        }
      case .symbolicLink:
        if let (_, original) = remaining(in: try root.linkTarget(entry.path)).first {
          problems.append("\(path): the link's target contains \(words(original)); leave it out")
        }
      default: break
      }
      return .into
    }
    return problems
  }
}

extension DrydockError {
  /// Whether a constraint of a database's schema failed.
  fileprivate var isConstraintFailure: Bool {
    switch cause {
    case let error as DatabaseError: error.resultCode == .SQLITE_CONSTRAINT
    case let error as DrydockError: error.isConstraintFailure
    default: false
    }
  }
}
