import AgeEncryption
import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB
import TestSupport
import TestTransactions
import Testing

@testable import MigrationEngine

/// A container and a directory of migrations for one test. A suite may have one: it lasts as long as the test.
final class Lab {
  let directory: TemporaryDirectory
  var configuration = ContainerConfiguration()
  /// What opens the vault; none unless a test sets it.
  var deviceKeys: DeviceKeys?

  static let settings: ContainerPath = "Library/Preferences/com.example.notes.plist"
  static let group: ContainerPath = "Library/Preferences/group.notes.plist"
  static let oldDatabase: ContainerPath = "Documents/database.sqlite"
  static let newDatabase: ContainerPath = "Library/Application Support/database.sqlite"

  init() throws {
    directory = try TemporaryDirectory()
    configuration.app = "com.example.notes"
    configuration.layout = .ios
    configuration.databases = ["notes": [Self.newDatabase, Self.oldDatabase]]
    for folder in ["container/Documents", "container/Library/Preferences", "migrations"] {
      try RawFiles.createDirectories(directory(folder))
    }
  }

  /// Runs a body with a lab of its own, for tests with several, or on a thread of their own.
  static func with<T>(_ body: (Lab) throws -> T) throws -> T {
    let lab = try Lab()
    return try withExtendedLifetime(lab) { try body(lab) }
  }

  /// Otherwise to sync it, and to search other processes for open files, would take longer than most migrations here.
  var isScratch = true

  var container: Container {
    get throws {
      var container = try Container(at: directory("container"), configuration: configuration)
      container.isScratch = isScratch
      return container
    }
  }
  var options: TransactionOptions {
    var options = TransactionOptions()
    options.deviceKeys = deviceKeys
    return options
  }
  var stamp: MigrationStamp { MigrationStamp(tool: "test", transaction: "t-1") }

  func path(_ path: ContainerPath) -> String { directory("container/\(path)") }

  func write(_ path: ContainerPath, _ text: String) throws { try write(path, Array(text.utf8)) }

  func write(_ path: ContainerPath, _ bytes: [UInt8]) throws { try write(self.path(path), bytes) }

  /// Not by Foundation: its descriptor would go into a program that another test starts.
  private func write(_ full: String, _ bytes: [UInt8]) throws {
    let parent = String(full[..<(full.lastIndex(of: "/") ?? full.startIndex)])
    try RawFiles.createDirectories(parent)
    try RawFiles.write(bytes, to: Array(full.utf8))
  }

  func set(_ values: PropertyListDictionary, format: PropertyListFile.Format = .binary) throws {
    try write(Self.settings, PropertyListFile(format: format, root: values).encoded())
  }

  func write(_ path: ContainerPath, settings values: PropertyListDictionary) throws {
    try write(path, PropertyListFile(root: values).encoded())
  }

  /// A setting's change as an app makes it.
  func app(sets key: String, _ value: PropertyListValue?) throws {
    var values = try settings() ?? [:]
    values[key] = value
    try set(values)
  }

  func database(_ sql: String) throws { try database(Self.newDatabase, sql) }

  func database(_ path: ContainerPath, _ sql: String) throws {
    try write(path, "")
    try change(sql, in: path)
  }

  /// Changes a database as its app or its own tool would.
  func change(_ sql: String, in path: ContainerPath = newDatabase) throws {
    try change(path) { try $0.execute(sql: sql) }
  }

  func change<T>(_ path: ContainerPath, _ body: (Database) throws -> T) throws -> T {
    let queue = try DatabaseQueue(path: self.path(path))
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction(body)
  }

  /// A database of two rows with all of them in its log, as an app that was killed leaves it.
  func busyDatabase(_ path: ContainerPath) throws {
    let source = directory(path.nameString)
    let queue = try DatabaseQueue(path: source)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    }
    try write(path, "")
    try RawFiles.remove(Array(self.path(path).utf8))
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: source + suffix, toPath: self.path(path) + suffix)
    }
    try queue.close()
  }

  /// A container with one of the sample databases.
  func sample(_ path: String) throws { try write(Self.newDatabase, Samples.bytes(path)) }

  /// Puts items into the vault as the app would, and makes vault and key where there is none.
  func put(_ items: [VaultItem]) throws {
    let keys = try deviceKeys ?? DeviceKeys(AgeIdentity.generate())
    deviceKeys = keys
    _ = try Transaction.run(on: try container, .vault, summary: "app", options: options) { stage in
      var vault = try stage.vault() ?? Vault(new: keys)
      for item in items { vault.put(item) }
      try stage.setVault(vault)
    }
  }

  func migration(_ name: String, _ text: String) throws {
    try write(directory("migrations/" + name), Array(text.utf8))
  }

  func migration(_ name: String, step: String) throws { try migration(name, steps: [step]) }

  /// A migration of steps, and what else it says, such as its `down` and its `verify`.
  func migration(
    _ name: String, steps: [String], _ sections: KeyValuePairs<String, [String]> = [:]
  ) throws {
    let all = [("steps", steps)] + sections.map { ($0.key, $0.value) }
    try migration(name, all.map { "\($0):\n" + Self.list($1) }.joined())
  }

  /// Files below the directory of migrations.
  func files(_ files: [String: String]) throws {
    for (name, text) in files { try migration(name, text) }
  }

  /// Migrations from 1 on, each of which sets a setting `m` with its number.
  func migrations(_ count: Int) throws {
    for number in 1...count {
      try migration("000\(number)_m.yaml", step: "defaults.set: {values: {m\(number): true}}")
    }
  }

  func removeMigration(_ name: String) throws {
    try FileManager.default.removeItem(atPath: directory("migrations/" + name))
  }

  /// Notes all migrations that there are as released.
  func release(_ name: String = "1.0") throws {
    var releases = try Releases.read(directory("migrations"))
    _ = try releases.add(name, try catalog())
  }

  /// What `drydock.yaml` says.
  func configuration(
    _ text: String, _ sections: [ConfigurationSection] = []
  ) throws -> ContainerConfiguration {
    try write(directory("drydock.yaml"), Array(text.utf8))
    return try ContainerConfiguration(file: directory("drydock.yaml"), sections: sections)
  }

  /// - Parameter tool: the tool whose migrations they are; Drydock's own without.
  func catalog(_ tool: MigrationTool? = nil, in directory: String? = nil) throws -> MigrationCatalog {
    try MigrationCatalog.load(directory ?? self.directory("migrations"), tool: tool)
  }

  func plan(_ tool: MigrationTool? = nil) throws -> MigrationStatus {
    let catalog = try catalog(tool)
    return try look { try MigrationStatus(catalog, of: $0) }
  }

  @discardableResult
  func migrate(
    _ tool: MigrationTool? = nil, to target: Int? = nil, allowingOutOfOrder: Bool = false
  ) throws -> MigrationReport {
    try migrate(catalog(tool), to: target, allowingOutOfOrder: allowingOutOfOrder)
  }

  @discardableResult
  func migrate(
    _ catalog: MigrationCatalog, to target: Int? = nil, allowingOutOfOrder: Bool = false
  ) throws -> MigrationReport {
    try Transaction.run(on: try container, .migrate, summary: "test", options: options) { stage in
      let plan = try MigrationStatus(catalog, of: stage, allowingOutOfOrder: allowingOutOfOrder)
      return try Migrator.run(
        plan, to: target, on: stage, stamp: MigrationStamp(tool: "test", transaction: stage.transaction))
    }.value
  }

  func dryRun(_ catalog: MigrationCatalog? = nil) throws -> DryRunOutcome<MigrationReport> {
    let catalog = try catalog ?? self.catalog()
    return try Transaction.dryRun(on: try container, options: options) { stage in
      try Migrator.run(MigrationStatus(catalog, of: stage), on: stage, stamp: stamp)
    }
  }

  @discardableResult
  func rollback(
    _ tool: MigrationTool? = nil, to version: Int? = nil, down: Bool = false, discardingNewer: Bool = false,
    redoing: Bool = false
  ) throws -> MigrationRollback.Report {
    var request = MigrationRollback.Request()
    (request.version, request.bySteps) = (version, down)
    (request.discardingNewer, request.redoing) = (discardingNewer, redoing)
    return try MigrationRollback.run(try container, request, try catalog(tool), options: options).value
  }

  /// Reverts the last migrations by their steps.
  func revert(to version: Int? = nil) throws -> [String] {
    try rollback(to: version, down: true).migrations.flatMap(\.notes)
  }

  @discardableResult
  func baseline(_ version: Int, _ catalog: MigrationCatalog? = nil) throws -> [String] {
    let catalog = try catalog ?? self.catalog()
    return try Transaction.run(on: try container, .baseline, summary: "test") { stage in
      try Baseline.set(version, catalog: catalog, on: stage, stamp: stamp)
    }.value
  }

  /// Runs steps as the only migration of a container of version 0.
  @discardableResult
  func run(_ steps: String...) throws -> [String] {
    try migration("0001_test.yaml", steps: steps)
    if try history() == nil { try baseline(0) }
    return try migrate().migrations.first?.notes ?? []
  }

  /// A list of steps, of which each may be a list already.
  private static func list(_ steps: [String]) -> String {
    steps.map { $0.hasPrefix(" ") ? $0 : "  - \($0)\n" }.joined()
  }

  /// What `validate` finds, without the directory of the test.
  func problems(_ tool: MigrationTool? = nil) throws -> [String] {
    try MigrationValidation.run(directory("migrations"), tool: tool, configuration).problems.map(shown)
  }

  /// What is wrong with the files themselves.
  func problemsOfReading(_ tool: MigrationTool? = nil) throws -> [String] {
    try MigrationCatalog.read(directory("migrations"), tool: tool).problems.map(shown)
  }

  private func shown(_ problem: DrydockError) -> String {
    problem.description.replacing(directory("migrations") + "/", with: "")
  }

  func look<T>(_ body: (StagedContainer) throws -> T) throws -> T {
    try Transaction.inspect(try container, options: options, body: body)
  }

  func settings(_ path: ContainerPath = settings) throws -> PropertyListDictionary? {
    try look { try $0.settings(path) }
  }

  func history() throws -> MigrationHistory? { try look { try MigrationHistory.read($0) } }

  func exists(_ path: ContainerPath) throws -> Bool { try look { try $0.status(of: path) != nil } }

  func bytes(_ path: ContainerPath) throws -> [UInt8] {
    [UInt8](try RawFiles.read(Array(self.path(path).utf8)))
  }

  func text(_ path: ContainerPath) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

  func items() throws -> [VaultItem] { try look { try $0.vault()?.sorted ?? [] } }

  func query(_ path: ContainerPath, _ sql: String) throws -> [Row] {
    try look { stage in try stage.readDatabase(at: path) { try Row.fetchAll($0, sql: sql) } }
  }

  /// The one column of a query's rows, as text.
  func column(_ sql: String, in path: ContainerPath = newDatabase) throws -> [String] {
    try query(path, sql).map { row in
      let value: DatabaseValue = row[0]
      return String.fromDatabaseValue(value) ?? Int.fromDatabaseValue(value).map(String.init) ?? ""
    }
  }

  func tables() throws -> [String] {
    try column(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
  }

  func drift(_ catalog: MigrationCatalog, at version: Int) throws -> [String] {
    guard let declared = try DeclaredSchema(catalog, configuration) else { return ["nothing is declared"] }
    return try look { try declared.drift(in: $0, at: version) }.map(\.sentence)
  }

  func tree() throws -> TreeListing { try TreeListing(directory("container")) }

  /// The files with a secret in the clear or in base64: of the container, of Drydock's state, and of the migrations.
  ///
  /// - Parameter part: what their paths contain.
  func files(with secret: String, in part: String = "") throws -> [String] {
    // Of whole groups: the base64 of what begins with them begins with theirs.
    let base64 = Data(secret.utf8.prefix(secret.utf8.count / 3 * 3)).base64EncodedData()
    return try TreeListing(directory.path).entries.filter { _, entry in
      entry.content.holds(Data(secret.utf8)) || entry.content.holds(base64)
    }.keys.map { String(decoding: $0, as: UTF8.self) }.filter { part.isEmpty || $0.contains(part) }
  }

  /// Nothing of the container has changed, not even a time.
  func expectUntouched(since before: TreeListing, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let changes = try tree().differences(from: before, comparing: TreeListing.untouched)
    #expect(changes == [], sourceLocation: sourceLocation)
  }
}

/// A file of SQL statements as a migration.
///
/// - Parameter words: directives besides the database, such as `irreversible`.
func sqlFile(_ up: String, down: String? = nil, _ words: String...) -> String {
  "-- drydock: database notes\n" + words.map { "-- drydock: \($0)\n" }.joined() + "-- migrate:up\n\(up)\n"
    + (down.map { "-- migrate:down\n\($0)\n" } ?? "")
}

/// Runs a body on a thread of its own: one that waits for a script must not be one that Swift's tasks need.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
}

/// There is one text, with this start and this end and all of these parts.
func expectOne(
  _ texts: [String], _ parts: String..., start: String = "", end: String = "",
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let isExpected = texts.count == 1 && texts[0].hasPrefix(start) && texts[0].hasSuffix(end)
  #expect(
    isExpected && parts.allSatisfy { texts[0].contains($0) }, "\(texts)", sourceLocation: sourceLocation)
}
/// The error that a body throws, as text without the directory of the test.
func failure(_ body: () throws -> Any) -> (code: DrydockError.Code?, text: String) {
  do {
    _ = try body()
    return (nil, "no error")
  } catch let error as DrydockError {
    return (error.code, error.description.replacing(/\/[^ :]*\/migrations\//, with: ""))
  } catch {
    return (nil, "\(type(of: error)): \(error)")
  }
}

/// A body throws an error with all of these texts.
///
/// - Parameters:
///   - start: how its text starts, such as with its place.
func expectFailure(
  _ texts: String..., start: String = "", code: DrydockError.Code? = nil,
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Any
) {
  expectFailure(texts, start: start, code: code, sourceLocation: sourceLocation, body)
}

func expectFailure(
  _ texts: [String], start: String, code: DrydockError.Code? = nil, sourceLocation: SourceLocation,
  _ body: () throws -> Any
) {
  let error = failure(body)
  let isExpected =
    error.text != "no error" && error.text.hasPrefix(start) && texts.allSatisfy(error.text.contains)
  #expect(isExpected && (code == nil || error.code == code), "\(error)", sourceLocation: sourceLocation)
}
