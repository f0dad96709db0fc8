import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB
import MigrationEngine
import TestSupport

/// A container and a directory of migrations for one test. A suite may have one: it lasts as long as the test.
final class Lab {
  let directory: TemporaryDirectory
  var configuration = ContainerConfiguration()
  /// What opens the vault; none unless a test sets it.
  var deviceKeys: DeviceKeys?

  static let settings: ContainerPath = "Library/Preferences/com.example.notes.plist"
  static let oldDatabase: ContainerPath = "Documents/database.sqlite"
  static let newDatabase: ContainerPath = "Library/Application Support/database.sqlite"

  init() throws {
    directory = try TemporaryDirectory()
    configuration.app = "com.example.notes"
    configuration.layout = .ios
    configuration.databases = ["notes": [Self.newDatabase, Self.oldDatabase]]
    for folder in ["container/Documents", "container/Library/Preferences", "migrations"] {
      try FileManager.default.createDirectory(atPath: directory(folder), withIntermediateDirectories: true)
    }
  }

  /// Runs a body with a lab of its own, for tests with several, or on a thread of their own.
  static func with<T>(_ body: (Lab) throws -> T) throws -> T {
    let lab = try Lab()
    return try withExtendedLifetime(lab) { try body(lab) }
  }

  var container: Container {
    get throws { try Container(at: directory("container"), configuration: configuration) }
  }
  var options: TransactionOptions {
    var options = TransactionOptions()
    options.deviceKeys = deviceKeys
    return options
  }
  var stamp: MigrationStamp { MigrationStamp(tool: "test", transaction: "t-1") }

  // MARK: Making

  func write(_ path: ContainerPath, _ text: String) throws {
    let full = directory("container/\(path)")
    let parent = String(full[..<(full.lastIndex(of: "/") ?? full.startIndex)])
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    // Not by Foundation: its descriptor would go into a program that another test starts.
    try RawFiles.write(Array(text.utf8), to: Array(full.utf8))
  }

  func set(_ values: PropertyListDictionary, format: PropertyListFile.Format = .binary) throws {
    let bytes = try PropertyListFile(format: format, root: values).encoded()
    try RawFiles.write(bytes, to: Array(directory("container/\(Self.settings)").utf8))
  }

  func database(_ path: ContainerPath, _ sql: String) throws {
    try write(path, "")
    let queue = try DatabaseQueue(path: directory("container/\(path)"))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  /// A database of two rows with all of them in its log, as an app that was killed leaves it.
  func busyDatabase(_ path: ContainerPath) throws {
    let source = directory(path.nameString)
    let queue = try DatabaseQueue(path: source)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    }
    try write(path, "")
    try RawFiles.remove(Array(directory("container/\(path)").utf8))
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: source + suffix, toPath: directory("container/\(path)\(suffix)"))
    }
    try queue.close()
  }

  func migration(_ name: String, _ text: String) throws {
    let full = directory("migrations/" + name)
    let parent = String(full[..<(full.lastIndex(of: "/") ?? full.startIndex)])
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    // Not by Foundation: its descriptor would go into a program that another test starts.
    try RawFiles.write(Array(text.utf8), to: Array(full.utf8))
  }

  func removeMigration(_ name: String) throws {
    try FileManager.default.removeItem(atPath: directory("migrations/" + name))
  }

  /// Notes all migrations that there are as released.
  func release(_ name: String = "1.0") throws {
    var releases = try Releases.read(directory("migrations"))
    _ = try releases.add(name, try catalog())
  }

  // MARK: Running

  func catalog() throws -> MigrationCatalog { try MigrationCatalog.load(directory("migrations")) }

  func plan() throws -> MigrationStatus {
    let detected = try Transaction.inspect(try container) { try DetectedVersion.detect(in: $0) }
    return MigrationStatus(catalog: try catalog(), detected: detected)
  }

  @discardableResult
  func migrate(to target: Int? = nil) throws -> MigrationReport { try migrate(catalog(), to: target) }

  @discardableResult
  func migrate(_ catalog: MigrationCatalog, to target: Int? = nil) throws -> MigrationReport {
    try Transaction.run(on: try container, .migrate, summary: "test", options: options) { stage in
      let plan = MigrationStatus(catalog: catalog, detected: try DetectedVersion.detect(in: stage))
      return try Migrator.run(
        plan, to: target, on: stage, stamp: MigrationStamp(tool: "test", transaction: stage.transaction))
    }.value
  }

  @discardableResult
  func rollback(
    to version: Int? = nil, down: Bool = false, discardingNewer: Bool = false, redoing: Bool = false
  )
    throws -> MigrationRollback.Report
  {
    var request = MigrationRollback.Request()
    (request.version, request.bySteps) = (version, down)
    (request.discardingNewer, request.redoing) = (discardingNewer, redoing)
    return try MigrationRollback.run(try container, request, try catalog(), options: options).value
  }

  /// A setting's change as an app makes it.
  func app(sets key: String, _ value: PropertyListValue?) throws {
    var values = try settings() ?? [:]
    values[key] = value
    try set(values)
  }

  func baseline(_ version: Int) throws -> [String] {
    let catalog = try catalog()
    return try Transaction.run(on: try container, .baseline, summary: "test") { stage in
      try Baseline.set(version, catalog: catalog, on: stage, stamp: stamp)
    }.value
  }

  /// Runs steps as the only migration of a container of version 0.
  @discardableResult
  func run(_ steps: String) throws -> [String] {
    try migration("0001_test.yaml", "steps:\n" + steps)
    if try history() == nil { _ = try baseline(0) }
    return try migrate().migrations.first?.notes ?? []
  }

  // MARK: Looking

  func settings() throws -> PropertyListDictionary? {
    try Transaction.inspect(try container) { try $0.defaults(Self.settings)?.root }
  }

  func history() throws -> MigrationHistory? {
    try Transaction.inspect(try container) { try MigrationHistory.read($0) }
  }

  func exists(_ path: ContainerPath) throws -> Bool {
    try Transaction.inspect(try container) { try $0.status(of: path) != nil }
  }

  func query(_ path: ContainerPath, _ sql: String) throws -> [Row] {
    try Transaction.inspect(try container) { stage in
      try stage.readDatabase(at: path) { try Row.fetchAll($0, sql: sql) }
    }
  }
}

/// Runs a body on a thread of its own: one that waits for a script must not be one that Swift's tasks need.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
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
