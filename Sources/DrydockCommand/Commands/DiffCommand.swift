import ArgumentParser
import Drydock
import DrydockTesting
import Foundation
import Reports

struct DiffCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "diff", abstract: "Show what differs between two archives, containers or goldens.",
    discussion: """
      Compares settings by key, databases by schema and row, and everything else by \
      file: - is only in A, + is only in B, ~ differs. Secrets are not shown. Paths \
      that rules exclude from backups are ignored, except against a golden, which \
      holds a whole container; there, nondeterministic values of the fixture are \
      ignored. Containers may be in use. They are only read, but an interrupted command \
      on one is completed or reverted first.

      Examples:
        drydock diff latest Notes -r Backups
        drydock diff Before.tar.zst After.tar.zst --only databases --details
        drydock diff Fixtures/v1/expected/6 Notes --exit-code
        drydock diff A.tar.zst Notes --html difference.html
      """)

  @Argument(
    help: """
      A container, a golden, or an archive: its file, or with -r its ID, INSTANCE@latest, INSTANCE@2026-11-14 or latest.
      """,
    completion: .file())
  var a: String
  @Argument(help: "The other one. Differences are shown from A to B.", completion: .file()) var b: String
  @OptionGroup var repository: RepositoryOptions
  @Option("Only this store; repeatable.", value: "store") var only: [ContainerStore] = []
  @Option(name: .customLong("path"), "Only this path, and what is below it; repeatable.", value: "path")
  var paths: [String] = []
  @Flag(help: "Show all differences, not only the first of each part; up to 10,000 rows of a table.")
  var details =
    false
  @Flag(help: "Exit with 2 when they differ.") var exitCode = false
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    try page.reporting("Comparison", "\(a) → \(b)") {
      let configuration = try common.configuration()
      var keys = try key.keys()
      try with(a, configuration, &keys) { first, keys in
        try with(b, configuration, &keys) { second, _ in try compare(first, second, configuration) }
      }
    }
  }

  private func compare(
    _ first: ComparisonOperand, _ second: ComparisonOperand, _ configuration: ContainerConfiguration
  ) throws {
    var options = ComparisonOptions()
    if !only.isEmpty { options.stores = Set(only) }
    options.scope = try paths.map { try ContainerPath($0) }
    let rowLimit = details ? 10_000 : 5
    options.rowLimit = page.html == nil ? rowLimit : max(rowLimit, HTMLPage.rowLimit)
    var transaction = try wait.transaction(deviceKeys)
    options.redactor = transaction.redactor
    let comparison = try showing.during {
      (transaction.progress, options.progress) = ($0, $0)
      return try Comparison(
        of: first, with: second, configuration: configuration, options: options, transaction: transaction)
    }
    let (before, after) = (ComparedOperand(first, a), ComparedOperand(second, b))
    let opening = ["a: \(before.text)", "b: \(after.text)"]
    let left = only.isEmpty ? [] : ContainerStore.allCases.filter { !only.contains($0) }.map(\.rawValue)
    let without = left.isEmpty ? [] : ["not compared: \(left.joined(separator: ", "))"]
    try page.write(
      Report(
        comparing: (before.path, after.path), (opening + without).map { Report.Line($0, depth: 0) },
        comparison.difference, compared: comparison.compared, notCompared: comparison.notCompared))
    let difference = comparison.difference.listing(rows: rowLimit)
    let archives = [first, second].compactMap { operand -> Archive? in
      if case .archive(let archive) = operand { archive } else { nil }
    }
    let bytesRead = archives.isEmpty ? nil : archives.map(\.bytesRead).reduce(0, +)
    if common.json {
      Output.json([
        "a": before, "b": after, "equal": difference.isEmpty,
        "compared": comparison.compared, "not_compared": comparison.notCompared, "bytes_read": bytesRead,
        "difference": difference,
      ])
    } else {
      for line in opening { Output.line(line) }
      if difference.isEmpty {
        Output.line("no difference in \(NumberText.count(comparison.compared, "path"))")
      }
      Output.difference(difference, limit: details ? nil : 20)
      comparison.reportOmissions()
    }
    if exitCode && !difference.isEmpty { throw ExitStatus.pending.code }
    if comparison.isIncomplete { throw ExitStatus.incomplete.code }
  }

  private func with(
    _ name: String, _ configuration: ContainerConfiguration, _ keys: inout ArchiveKeys,
    _ body: (ComparisonOperand, inout ArchiveKeys) throws -> Void
  ) throws {
    if FileManager.default.fileExists(atPath: name) {
      if let source = DeviceSource.find(at: name) { throw source.error(name) }
      let opening = try keys.opening(name)
      return try ComparisonOperand.with(
        at: name, configuration: configuration, keys: opening, limit: expansion.limit()
      ) { operand in
        if case .container(let container) = operand { try ContainerOptions.recover(container) }
        try body(operand, &keys)
      }
    }
    guard repository.path(configuration) != nil, RepositoryOptions.isName(name) else {
      throw DrydockError(
        .notFound,
        "neither an archive, nor a container, nor a golden; give a path, or -r REPOSITORY with an id or "
          + "INSTANCE@latest", path: name)
    }
    let other = try? Container(at: name == a ? b : a, configuration: configuration)
    try body(.archive(repository.open(name, configuration, &keys, expansion, for: other)), &keys)
  }
}

/// What was compared, as the result names it.
struct ComparedOperand: Encodable, Sendable {
  var kind: String, path: String
  var app: String?, instance: String?, time: String?

  init(_ operand: ComparisonOperand, _ path: String) {
    self.path = path
    switch operand {
    case .archive(let archive):
      (kind, self.path) = ("archive", archive.path)
      (app, instance, time) = (archive.header.app, archive.header.instance, archive.header.time)
    case .container(let container):
      (kind, app, instance) = ("container", container.app, container.instance)
    case .golden: kind = "golden"
    }
  }

  var text: String {
    let details = [app, time].compactMap { $0 }.joined(separator: ", ")
    return "\(kind) \(path)\(details.isEmpty ? "" : " (\(details))")"
  }
}

extension Comparison {
  /// Says what was not compared.
  func reportOmissions() {
    let lost = notCompared.filter(\.isLoss)
    let rest = notCompared.count - lost.count
    if rest > 0 {
      Output.line("not compared: \(NumberText.count(rest, "path")) that a rule excludes from backups")
    }
    for path in lost { Output.warning("not compared: \(path.path) \(path.reason)") }
  }
}
