import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

/// Each operation is declared with an example: it is run, tried, undone, and reverted by steps. The guide has what the
/// declaration says.
@Suite("Operations as they are declared") struct OperationExampleTests {
  @Test("The example", arguments: Operations.all.filter { $0.example != nil }.map(\.name))
  func example(_ name: String) throws {
    let kind = try #require(Operations.all.first { $0.name == name })
    let example = try #require(kind.example)
    let (before, after) = try (ExampleContainer(example.before), ExampleContainer(example.after))
    try Lab.with { lab in
      lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
      lab.configuration.defaults["group"] = Lab.group
      try before.make(in: lab)
      _ = try lab.baseline(0)
      try lab.migration("0001_test.yaml", step: "\(name): \(example.step)")
      let asked = Array(before.entries.keys) + after.entries.keys
      func now() throws -> [String: String] { try lab.look { try ExampleContainer.entries(of: $0, asked) } }
      let old = try now()
      #expect(old.filter { before.entries[$0.key] != nil } == before.entries)

      let tried = try lab.look { stage in
        let status = MigrationStatus(
          catalog: try lab.catalog(), detected: try DetectedVersion.detect(in: stage))
        _ = try Migrator.run(status, on: stage, stamp: lab.stamp)
        return try ExampleContainer.entries(of: stage, asked)
      }
      #expect(tried == after.entries)
      #expect(try now() == old)

      try lab.migrate()
      #expect(try now() == after.entries)
      try lab.rollback()
      #expect(try now() == old)

      guard try lab.catalog().migrations.first?.isReversible == true else { return }
      try lab.migrate()
      try lab.rollback(to: 0, down: true)
      #expect(try now() == old)
    }
  }

  @Test("An example without an argument that is declared as required is refused, and so is an unknown one")
  func arguments() throws {
    for kind in Operations.all {
      guard let example = kind.example else { continue }
      let pairs = try #require(try YAMLDocument(text: example.step, file: "a").root?.mapping?.pairs)
      func isValid(_ pairs: [(key: PropertyListValue, value: YAMLNode)]) -> Bool {
        let node = YAMLNode(pairs, at: YAMLPosition(file: "a", line: 1, column: 1))
        return (try? kind.action(node, files: MigrationFiles(directory: "", isDirectory: true))) != nil
      }
      let given = pairs.map { (key: $0.key.value, value: $0.value) }
      #expect(isValid(given), "\(kind.name)")
      #expect(!isValid(given + given.prefix(1).map { (key: "unknown", value: $0.value) }), "\(kind.name)")
      for (names, text) in kind.arguments where text == "required" || text?.hasPrefix("required:") == true {
        for name in names.split(separator: ", ").map(String.init) {
          #expect(!isValid(given.filter { $0.key != .string(name) }), "\(kind.name) without \(name)")
        }
      }
    }
  }

  @Test("An argument that is declared is not ignored: null is refused")
  func unfit() throws {
    // The word `null` is one of their values, or an empty mapping: the app's own settings.
    let others = [
      "defaults.compute if-missing", "vault.compute if-missing", "files.export-column replace-with",
      "defaults.move from", "defaults.move to", "defaults.copy from", "defaults.copy to",
    ]
    for kind in Operations.all {
      guard let example = kind.example else { continue }
      let pairs = try #require(try YAMLDocument(text: example.step, file: "a").root?.mapping?.pairs)
      let null = try #require(try YAMLDocument(text: "null", file: "a").root)
      for name in kind.keys where !others.contains("\(kind.name) \(name)") {
        let given = pairs.filter { $0.key.value != .string(name) }.map {
          (key: $0.key.value, value: $0.value)
        }
        let node = YAMLNode(
          given + [(key: .string(name), value: null)], at: YAMLPosition(file: "a", line: 1, column: 1))
        #expect(throws: DrydockError.self, "\(kind.name) with \(name)") {
          try kind.action(node, files: MigrationFiles(directory: "", isDirectory: true))
        }
      }
    }
  }

  @Test("No operation declares an argument twice")
  func names() {
    for kind in Operations.all { #expect(Set(kind.keys).count == kind.keys.count, "\(kind.name)") }
  }

  @Test("Operations without an example work on what text cannot say")
  func withoutExample() {
    let others = Operations.all.filter { $0.example == nil }.map(\.name)
    #expect(
      others == [
        "files.unarchive", "script", "coredata.rename-attribute", "coredata.add-attribute",
        "coredata.rename-entity", "coredata.add-entity", "coredata.convert",
      ])
  }

  /// `UPDATE_REFERENCE=1 swift test --filter OperationExampleTests` writes it.
  @Test("The guide “Operations” has what the declarations say")
  func guide() throws {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Sources/Drydock/Drydock.docc/Operations.md").path
    let wanted = """
      # Operations

      The operations of migrations, with their arguments.

      ## Overview

      Drydock's tests write this page from what the operations declare. [Migrations](Migrations.md#operations) explains the
      arguments that several operations take, which are listed here as “also”, and how operations work together.

      \(Operations.all.map(\.section).joined(separator: "\n"))
      """
    if ProcessInfo.processInfo.environment["UPDATE_REFERENCE"] != nil {
      try wanted.write(toFile: path, atomically: true, encoding: .utf8)
    }
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let differing = zip(
      text.split(separator: "\n", omittingEmptySubsequences: false),
      wanted.split(separator: "\n", omittingEmptySubsequences: false)
    ).first { $0 != $1 }
    #expect(wanted == text, "the first line that differs: \(differing.map { "\($0)\n\($1)" } ?? "the end")")
  }
}

extension OperationKind {
  /// What the operation does, its arguments, and its example.
  fileprivate var section: String {
    var items: [String] = []
    var also: [String] = []
    for (key, text) in arguments {
      let names = key.split(separator: ", ").map(String.init)
      if let text { items.append("\(Self.shown(names)): \(text)") } else { also += names }
    }
    if also.contains("service-prefix") {
      also.removeAll(where: VaultSelection.keys.contains)
      items.append("which [items](Migrations.md#vault-items)")
    }
    if !also.isEmpty { items.append("also \(Self.shown(also))") }
    var lines = ["## \(name)", "", summary, ""] + items.map { "- \($0)" }
    if let example { lines += ["", "```yaml", "- \(name): \(example.step)", "```"] }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func shown(_ names: [String]) -> String {
    names.map { "`\($0)`" }.joined(separator: ", ")
  }
}

/// What an example says about a container, as lines by name.
private struct ExampleContainer {
  let entries: [String: String]
  private let root: PropertyListDictionary

  init(_ text: String) throws {
    root = try YAMLDocument(text: text, file: "example").root?.pairs("an example").propertyListValues() ?? [:]
    var entries: [String: String] = [:]
    for (part, value) in root {
      switch (part, value) {
      case ("sql", _): continue
      case ("vault", .dictionary(let items)):
        for (account, item) in items {
          entries["vault \(account)"] = Self.line(Self.item(account, item))
        }
      case ("excluded", .array(let paths)): for path in paths { entries["excluded \(path.plain)"] = "true" }
      case ("settings", .dictionary(let values)), ("group", .dictionary(let values)):
        for (key, value) in values { entries["\(part) \(key)"] = "\(value)" }
      case (_, .dictionary(let values)):
        for (key, value) in values { entries["\(part) \(key)"] = value.plain }
      default: throw CocoaError(.fileReadCorruptFile)
      }
    }
    self.entries = entries
  }

  func make(in lab: Lab) throws {
    for (part, value) in root {
      switch (part, value) {
      case ("settings", .dictionary(let values)): try lab.set(values)
      case ("sql", .string(let sql)): try lab.database(Lab.oldDatabase, sql)
      case ("files", .dictionary(let files)):
        for (path, text) in files { try lab.write(ContainerPath(path), text.plain) }
      case ("vault", .dictionary(let items)):
        try lab.put(items.map { Self.item($0, $1) })
      default: throw CocoaError(.fileReadCorruptFile)
      }
    }
  }

  private static func item(_ account: String, _ value: PropertyListValue) -> VaultItem {
    guard case .dictionary(let fields) = value else {
      return VaultItem(service: "s", account: account, value: SecretBytes(Array(value.plain.utf8)))
    }
    var item = VaultItem(
      service: "s", account: account, accessGroup: fields["access-group"]?.plain,
      accessibility: fields["accessible"].flatMap { VaultItem.Accessibility(rawValue: $0.plain) }
        ?? .whenUnlocked,
      value: SecretBytes(Array((fields["value"]?.plain ?? "").utf8)))
    item.isSynchronizable = fields["synchronizable"] == true
    let flag = fields["access-control"].flatMap { VaultItem.AccessControl.Flag(rawValue: $0.plain) }
    item.accessControl = flag.map { VaultItem.AccessControl([$0]) }
    return item
  }

  private static func line(_ item: VaultItem) -> String {
    let value = item.value.withBytes { String(decoding: $0, as: UTF8.self) }
    return
      "\(item) \(item.accessibility) \(item.accessControl?.flags ?? []) \(item.isSynchronizable) \(value)"
  }

  /// What a container has.
  ///
  /// - Parameter asked: the names of what is not listed anyway: rows, attributes and directories.
  static func entries(of stage: StagedContainer, _ asked: [String]) throws -> [String: String] {
    var entries: [String: String] = [:]
    for (part, path) in [("settings", Lab.settings), ("group", Lab.group)] {
      for (key, value) in try stage.settings(path) ?? [:] { entries["\(part) \(key)"] = "\(value)" }
    }
    let others = [Lab.settings, Lab.group, stage.container.vaultPath]
    for path in try stage.descendants(of: .root) where !stage.isHistory(path) && !others.contains(path) {
      guard try stage.status(of: path)?.type == .file, try !stage.isDatabase(path) else { continue }
      entries["files \(path)"] = try stage.text(path)
    }
    for item in try stage.vault()?.sorted ?? [] { entries["vault \(item.account ?? "")"] = line(item) }
    for name in asked {
      let (part, what) = (name.prefix { $0 != " " }, String(name.drop { $0 != " " }.dropFirst()))
      switch part {
      case "files" where what.hasSuffix("/"):
        let type = try stage.status(of: ContainerPath(String(what.dropLast())))?.type
        if type == .directory { entries[name] = "directory" }
      case "rows":
        entries[name] = try stage.readDatabase(at: Lab.oldDatabase) {
          try String.fetchOne($0, sql: "SELECT CAST((\(what)) AS TEXT)")
        }
      case "excluded":
        if try stage.metadata(of: ContainerPath(what))?.hasAppleFlag == true { entries[name] = "true" }
      case "protection": entries[name] = try stage.metadata(of: ContainerPath(what))?.protection?.rawValue
      default: break
      }
    }
    return entries
  }
}

extension PropertyListValue {
  /// A text itself.
  fileprivate var plain: String { if case .string(let text) = self { text } else { description } }
}
