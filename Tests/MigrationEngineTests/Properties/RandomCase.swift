import AgeEncryption
import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

/// One random container with random migrations.
struct RandomCase {
  /// How many cases each property has: `MIGRATION_CASES=2000`, from the seed `MIGRATION_SEED` on, for a long run.
  static let seeds: Range<UInt64> = {
    let variables = ProcessInfo.processInfo.environment
    let first = variables["MIGRATION_SEED"].flatMap { UInt64($0) } ?? 0
    return first..<first
      + (variables["MIGRATION_CASES"].flatMap { UInt64($0) } ?? (TestExtent.isFull ? 100 : 8))
  }()

  let folder: TemporaryDirectory
  let seed: UInt64
  let keys: DeviceKeys
  let catalog: MigrationCatalog
  private let text: String

  static func with(
    _ seed: UInt64, isReversible: Bool = false, changing: (inout [String: String]) -> Void = { _ in },
    _ body: (RandomCase) throws -> Void
  ) throws {
    try TemporaryDirectory.with { folder in
      var migrations = RandomMigrations(seed: seed, isReversible: isReversible)
      var files = migrations.files()
      changing(&files)
      try RawFiles.createDirectories(folder("migrations"))
      for (name, text) in files {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder("migrations/" + name)))
      }
      let text = files.sorted { $0.key < $1.key }.map { "\($0.key)\n\($0.value)" }.joined()
      do {
        let test = RandomCase(
          folder: folder, seed: seed, keys: DeviceKeys(try AgeIdentity.generate()),
          catalog: try MigrationCatalog.load(folder("migrations")), text: text)
        try test.make("c")
        try body(test)
      } catch {
        Issue.record(error, "seed \(seed)\n\(text)")
      }
    }
  }

  /// Makes the case's container under a name; each is like the others.
  func make(_ name: String) throws {
    try RandomContainer.make(in: folder(name), seed: seed, keys: keys)
  }

  /// For messages: what has to be run again.
  var comment: Comment { "seed \(seed)\n\(text)" }

  var options: TransactionOptions {
    var options = TransactionOptions()
    options.deviceKeys = keys
    return options
  }

  func container(_ name: String = "c") throws -> Container {
    var configuration = ContainerConfiguration()
    (configuration.app, configuration.layout) = ("com.example.notes", .ios)
    configuration.defaults = [
      "standard": try ContainerPath(RandomContainer.suites[0]),
      "group": try ContainerPath(RandomContainer.suites[1]),
    ]
    for (index, database) in RandomContainer.databaseNames.enumerated() {
      configuration.databases[database] = [
        try ContainerPath(RandomContainer.moved[index]), try ContainerPath(RandomContainer.databases[index]),
      ]
    }
    configuration.versionMarkers = [.init(place: .defaults(key: "dataSchemaVersion"))]
    var container = try Container(at: folder(name), configuration: configuration)
    container.isScratch = true
    return container
  }

  func migrate(_ name: String = "c", to version: Int? = nil) throws {
    _ = try Transaction.run(on: container(name), .migrate, summary: "test", options: options) {
      try run(on: $0, to: version)
    }
  }

  /// Migrates, or gives up the case: random arguments do not always fit, and a failure must have changed nothing.
  func migrateOrLeave(_ name: String = "c") throws -> Bool {
    let before = try tree(name)
    do {
      try migrate(name)
      return true
    } catch let error as DrydockError {
      expectUntouched(try tree(name), before, "\(error)")
      return false
    }
  }

  func run(on stage: StagedContainer, to version: Int? = nil) throws -> MigrationReport {
    let status = MigrationStatus(catalog: catalog, detected: try DetectedVersion.detect(in: stage))
    return try Migrator.run(
      status, to: version, on: stage, stamp: MigrationStamp(tool: "test", transaction: stage.transaction))
  }

  func rollback(_ name: String = "c") throws {
    _ = try Transaction.rollback(container(name), options: options)
  }

  /// The paths that the last run replaced and its undo entry lacks, since an earlier step of the run had changed them: no
  /// down step can restore them.
  func lostPaths() throws -> [ContainerPath] {
    /// Ends the rollback that reads the undo entry.
    struct Found: Error {
      var bytes: [UInt8]?
    }
    do {
      _ = try Transaction.rollback(container(), summary: "read", options: options) { rollback -> Void in
        let origin = try rollback.candidates().first?.origins.first
        try rollback.openKept(of: origin)
        throw Found(bytes: try origin.flatMap { try rollback.staged.kept?.steps(of: $0) })
      }
    } catch let found as Found {
      let run = try found.bytes.map { try PriorValues.Run(decoding: $0) }
      return catalog.migrations.flatMap { run?.steps(of: $0.number) ?? [] }.flatMap(\.lost)
    }
    return []
  }

  func tree(_ name: String = "c") throws -> TreeListing {
    try TreeListing(folder(name)).without(".drydock-state")
  }
  func stores(_ name: String = "c") throws -> Stores { try Stores(tree(name), keys: keys) }

  func expectUntouched(_ tree: TreeListing, _ before: TreeListing, _ what: String = "") {
    report(tree.differences(from: before, comparing: TreeListing.untouched), what)
  }

  func expectSame(_ tree: TreeListing, _ other: TreeListing) {
    report(tree.differences(from: other, comparing: TreeListing.copied), "")
  }

  func expectSame(_ stores: Stores, _ other: Stores, _ what: String = "") {
    report(stores.differences(from: other), what)
  }

  private func report(_ differences: [String], _ what: String) {
    if differences.isEmpty { return }
    Issue.record("\(what)\n\(differences.joined(separator: "\n"))\n\(comment)")
  }
}
