import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation
import Storage
import Synchronization
import TestSupport
import TestTransactions
import Testing

@testable import BackupRepository

/// A directory with a container, a repository, and short ways to do things to them.
final class Lab {
  let directory: TemporaryDirectory
  let root: String
  var repository: String
  /// The server that has the repository; nil for a directory of this machine.
  var place: TestSupport.RemotePlace?
  private var snapshots = 0
  var configuration = ContainerConfiguration()

  /// An empty container of the generic layout or what the sample app makes; its repository is at the current kind of place.
  init(name: String = "box", notes arguments: [String]? = nil) throws {
    // The archives of a few bytes here have about the same size, so that chance would say when one is a full one.
    configuration.fullArchives.above = 100_000
    directory = try TemporaryDirectory()
    root = directory(name)
    repository = directory("repository")
    if PlaceKind.current == .directory { try make(repository) }
    try PlaceKind.current.use(for: self)
    if let arguments {
      try Self.notes(["create", root] + arguments)
    } else {
      try make(root)
      configuration.app = "com.example.lab"
    }
  }

  deinit {
    if place != nil { Places.use(nil, for: repository) }
  }

  @discardableResult
  static func notes(_ arguments: [String]) throws -> String {
    return try Command.succeed(Tools.notesApp(), arguments).output
  }

  func container(_ path: String? = nil) throws -> Container {
    try Container(at: path ?? root, configuration: configuration)
  }

  // MARK: Files

  func full(_ path: String) -> [UInt8] { Array((root + "/" + path).utf8) }

  func make(_ path: String) throws {
    try RawFiles.createDirectories(path)
  }

  func directory(in path: String) throws { try make(root + "/" + path) }

  func write(_ path: String, _ text: String) throws { try write(path, Array(text.utf8)) }

  func write(_ path: String, _ bytes: [UInt8]) throws {
    try make((root + "/" + path as NSString).deletingLastPathComponent)
    try RawFiles.write(bytes, to: full(path))
  }

  func read(_ path: String, in root: String? = nil) throws -> String {
    String(decoding: try RawFiles.read(Array(((root ?? self.root) + "/" + path).utf8)), as: UTF8.self)
  }

  func exists(_ path: String, in root: String? = nil) -> Bool {
    RawFiles.exists(Array(((root ?? self.root) + "/" + path).utf8))
  }

  func remove(_ path: String) throws { try RawFiles.remove(full(path)) }

  func overwrite(_ path: String, at offset: Int, _ text: String = "changed") throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: root + "/" + path))
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: Data(text.utf8))
    try file.close()
  }

  /// Flags a path as an app does that wants it out of backups.
  func flag(_ path: String) throws {
    try ExtendedAttributes.set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", Array("com.apple.backupd".utf8), of: full(path))
  }

  @discardableResult
  func shell(_ script: String, in directory: String? = nil) throws -> String {
    return try Command.succeed("/bin/sh", ["-ec", script], directory: directory ?? self.directory.path).output
  }

  /// Makes a file whose path is longer than the 4,096 bytes that the kernel takes at once.
  func deepen() throws {
    let name = try ContainerPath(String(repeating: "d", count: 250))
    var place = try Directory(root)
    for _ in 0..<20 {
      try place.createDirectory(name)
      place = try place.directory(name)
    }
    try place.create("leaf", Array("deep".utf8))
  }

  /// Runs SQL with a process of its own, which opens the database and closes it.
  @discardableResult
  func sql(_ database: String, _ statements: String) throws -> String {
    return try Command.succeed(Tools.system("sqlite3"), ["-bail", root + "/" + database, statements]).output
  }

  /// All that a database holds, as a hash; of a copy, because reading would change the files.
  static func rows(_ database: String) throws -> String {
    let script =
      "d=$(mktemp -d); cp \(database)* $d; sqlite3 $d/\(lastName(database)) .dump | sha256sum; rm -r $d"
    return try Command.succeed("/bin/sh", ["-ec", script]).output
  }

  // MARK: Commands

  var variables: [String: String] { place?.environment ?? [:] }

  func drydock(_ arguments: [String]) throws -> CommandResult {
    try Command.run(Tools.drydock(), arguments, environment: variables)
  }

  /// For a snapshot into the repository. In a suite for every place, each at a remote one is of another second: of archives of
  /// one second, the times of their files decide which is the newest, and servers do not say these exactly enough.
  func options() -> SnapshotOptions {
    var options = SnapshotOptions()
    if PlaceKind.current != .directory {
      snapshots += 1
      let time = Date().addingTimeInterval(Double(snapshots) - 40)
      options.seams.now = { time }
    }
    return options
  }

  @discardableResult
  func take(
    _ options: SnapshotOptions = SnapshotOptions(), to target: ArchiveTarget? = nil, _ path: String? = nil
  ) throws -> SnapshotReport {
    try Snapshot.take(container(path), to: target ?? .repository(repository), options)
  }

  /// All in a directory of this machine and in full tests; else some, from the first to the last: each takes requests.
  func sample<Value>(_ values: [Value], _ count: Int) -> [Value] {
    guard place != nil, !TestExtent.isFull, values.count > count else { return values }
    return (0..<count).map { values[$0 * (values.count - 1) / (count - 1)] }
  }

  @discardableResult
  func snapshot(
    to file: String? = nil, _ path: String? = nil, _ change: (inout SnapshotOptions) throws -> Void = { _ in }
  ) throws -> SnapshotReport {
    var options = options()
    try change(&options)
    return try take(options, to: file.map(ArchiveTarget.file), path)
  }

  /// Takes a snapshot that trusts the status of every path that was touched more than a moment ago.
  @discardableResult
  func incremental(
    trusting: Bool = true, _ change: (inout SnapshotOptions) -> Void = { _ in }
  ) throws -> SnapshotReport {
    let report = try snapshot {
      if trusting { $0.seams.settling = -3600 }
      change(&$0)
    }
    // What changes from here on gets another time: the kernel's clock ticks every few milliseconds.
    usleep(20_000)
    return report
  }

  /// Takes a snapshot during which something happens once, after that many paths were stored.
  func incremental(
    trusting: Bool = false, after count: Int, _ action: @escaping @Sendable () throws -> Void
  ) throws -> SnapshotReport {
    let stored = Mutex(0)
    return try incremental(trusting: trusting) {
      $0.seams.stores = {
        let number = stored.withLock { stored in
          stored += 1
          return stored
        }
        if number == count { #expect(throws: Never.self) { try action() } }
      }
    }
  }

  /// A script that runs SQL and leaves a log behind, as an app does that is killed.
  static func leavingTheLog(_ sql: String) -> String {
    "printf '%s\\n' '.dbconfig no_ckpt_on_close on' '\(sql.replacing("'", with: "'\\''"))' | sqlite3 db.sqlite"
  }

  @discardableResult
  func restore(
    _ archive: String, to path: String? = nil, keys: AgeKeys = AgeKeys(),
    _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> TransactionOutcome<RestoreReport> {
    let archive = try Archive(path: archive, keys: keys)
    var options = RestoreOptions()
    change(&options)
    return try Restore.run(archive, target(archive, path), options)
  }

  func dryRun(
    _ archive: String, to path: String? = nil, keys: AgeKeys = AgeKeys(),
    _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> DryRunOutcome<RestoreReport> {
    let archive = try Archive(path: archive, keys: keys)
    var options = RestoreOptions()
    change(&options)
    return try Restore.dryRun(archive, target(archive, path), options)
  }

  func target(_ archive: Archive, _ path: String? = nil) throws -> Container {
    try Restore.target(path ?? root, for: archive, configuration: configuration, fromOther: true)
  }

  /// What a restore that must be refused says; it changes nothing.
  func refusal(
    _ archive: String, _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> (any Error)? {
    let before = try TreeListing(root)
    do {
      try restore(archive, change)
      return nil
    } catch {
      let lines = try TreeListing(root).differences(from: before, comparing: TreeListing.unread)
      guard lines.isEmpty else { throw SystemFailure("refused, and changed: \(lines)") }
      return error
    }
  }
}

extension Lab {
  /// The paths whose content a restore compares by reading it.
  func compared(
    with path: String, _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> [ContainerPath] {
    let archive = try Archive(path: path)
    var options = RestoreOptions()
    options.transaction.seams.settling = -3600
    change(&options)
    return try Transaction.inspect(container()) { staged in
      let live = try LivePaths(staged)
      let recorded = try RecordedPaths(
        archive.manifest, layout: archive.header.layout, includesExcluded: false)
      var comparison = try LiveComparison(live, staged, recorded, archive, options)
      var read: [ContainerPath] = []
      try archive.manifest.entries { entry in
        // No content has this hash.
        var entry = entry
        if entry.isFile { entry.digest = nil }
        let result = try comparison.compare(entry, live[entry.path])
        if entry.isFile, case .other = result { read.append(entry.path) }
      }
      return read
    }
  }
}

extension Archive {
  func bytes(of path: ContainerPath) throws -> Data? {
    guard let entry = try manifest.entry(path) else { return nil }
    var bytes = Data()
    try content(of: entry) { bytes.append(contentsOf: $0) }
    return bytes
  }
}

extension TreeListing {
  /// What nobody may change who changes nothing, but for links that come and go.
  static let unread = untouched.subtracting([.changed])
}

extension RestoreReport {
  var restoredPaths: [String] { restored.map(\.description) }
  var removedPaths: [String] { removed.map(\.description) }
  var preservedPaths: [String] { preserved.keys.sorted().map(\.description) }
}

extension RetentionPolicy {
  /// The rules that count, by the names of their options.
  static var counts: [(name: String, path: WritableKeyPath<RetentionPolicy, Int>)] {
    [
      ("last", \.last), ("hourly", \.hourly), ("daily", \.daily), ("weekly", \.weekly),
      ("monthly", \.monthly), ("yearly", \.yearly),
    ]
  }

  static func last(_ count: Int) -> RetentionPolicy {
    var policy = RetentionPolicy()
    policy.last = count
    return policy
  }

  static func tagged(_ tag: String) -> RetentionPolicy {
    var policy = RetentionPolicy()
    policy.tags = [[tag]]
    return policy
  }
}

extension CompactionOptions {
  static func share(_ share: Double) -> CompactionOptions {
    var options = CompactionOptions()
    options.share = share
    return options
  }
}

/// The code of an error of any module, such as `damaged`.
func code(_ error: (any Error)?) -> String {
  switch error {
  case nil: "none"
  case let error as DrydockError: error.code.rawValue
  case let error?: "other: \(error)"
  }
}

/// The code of what a body throws; `none` when it throws nothing.
func code<Value>(_ body: () throws -> Value) -> String { code(failure { _ = try body() }) }

/// Expects that nobody has touched a tree.
func expectSame(
  _ after: TreeListing, as before: TreeListing,
  comparing aspects: Set<TreeEntry.Aspect> = TreeListing.untouched,
  at location: SourceLocation = #_sourceLocation
) {
  #expect(after.differences(from: before, comparing: aspects) == [], sourceLocation: location)
}

func failure(_ body: () throws -> Void) -> (any Error)? {
  do {
    try body()
    return nil
  } catch {
    return error
  }
}
