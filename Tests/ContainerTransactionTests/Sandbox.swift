import Cryptography
import DrydockErrors
import Foundation
import Synchronization
import TestSupport
import TestTransactions
import Testing

@testable import AppContainer
@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem
@testable import Formats

/// A container in a temporary directory, with what the tests do to it.
struct Sandbox {
  static let settings: ContainerPath = "Library/Preferences/com.example.notes.plist"
  static let database: ContainerPath = "Documents/database.sqlite"

  let folder: TemporaryDirectory
  /// The container's root: `c` in the folder, unless it is another one.
  let root: String
  /// For tests in which no other process has it open: to search all processes takes longer than all else of a small transaction.
  var isScratch = false

  init(folder: TemporaryDirectory, root: String? = nil) {
    self.folder = folder
    self.root = root ?? folder("c")
  }

  /// A container as the sample app leaves it.
  init(notes options: [String]) throws {
    self.init(folder: try TemporaryDirectory())
    try Command.succeed(Tools.notesApp(), ["create", root] + options)
  }

  /// A small container of plain files.
  init(files: [String: String]) throws {
    self.init(folder: try TemporaryDirectory())
    try Directory(folder.path).createDirectory("c", mode: 0o755)
    for (path, text) in files { try put(path, text) }
  }

  func container() throws -> Container {
    var container = try Container(at: root)
    container.isScratch = isScratch
    return container
  }
  func live() throws -> Directory { try Directory(root) }
  /// All of the container but Drydock's own state in it.
  func listing() throws -> TreeListing { try TreeListing(root).without(".drydock-state") }

  /// Writes a file as an app does, in place when it exists.
  func put(_ path: String, _ text: String) throws {
    try live().createDirectories(ContainerPath(path).parent, mode: 0o755)
    try RawFiles.write(Array(text.utf8), to: Array("\(root)/\(path)".utf8))
  }

  /// Writes a file as an app does that saves atomically.
  func save(_ path: String, _ text: String) throws {
    try put(path + ".new", text)
    try live().rename(ContainerPath(path + ".new"), in: live(), to: ContainerPath(path))
  }

  /// Edits a file in place so that its size and modification time stay, as `cp -p` and `rsync -t --inplace` do.
  func editQuietly(_ path: ContainerPath) throws {
    let before = try #require(try live().status(path))
    let bytes = try live().contents(path).map { $0 ^ 0x20 }
    repeat {
      try RawFiles.write(bytes, to: Array("\(root)/\(path)".utf8))
      try live().setModified(before.modified, of: path)
      // The clock of a file system may tick every 10 ms only.
    } while try live().status(path)?.changed == before.changed
    let after = try #require(try live().status(path))
    #expect((after.size, after.modified, after.inode) == (before.size, before.modified, before.inode))
  }

  func text(_ path: ContainerPath) throws -> String {
    String(decoding: try live().contents(path), as: UTF8.self)
  }

  func exists(_ path: ContainerPath) throws -> Bool { try live().status(path) != nil }

  func notes(_ arguments: String...) throws -> CommandResult {
    try Command.run(try Tools.notesApp(), arguments)
  }

  // MARK: Transactions

  /// The usual change: a setting, two files, a removal, a new directory, and rows when there is a database.
  static func change(_ staged: StagedContainer) throws {
    try staged.changeSettings {
      $0["theme"] = .string("green")
      $0["user_name"] = nil
      $0["added"] = .integer(1)
    }
    if try staged.status(of: database) != nil {
      try staged.writeDatabase(at: database) { db in
        try db.execute(sql: "ALTER TABLE task RENAME COLUMN isDone TO isCompleted")
        try db.execute(sql: "UPDATE task SET title = title || '!' WHERE id < 10")
      }
    }
    try staged.write(Array("written".utf8), to: "Documents/written.txt")
    try staged.write(Array("replaced".utf8), to: "Documents/empty.txt")
    try staged.write(Array("deep".utf8), to: "Documents/new/sub/deep.txt")
    if try staged.status(of: "Documents/Inbox") != nil { try staged.remove("Documents/Inbox") }
  }

  @discardableResult
  func run(
    _ summary: String = "test", faults: Seams = .none, kind: TransactionLogEntry.Kind = .migrate,
    limits: (count: Int, bytes: UInt64) = TransactionOptions().undoLimits,
    commit: StateDirectory.Place? = nil,
    _ body: (StagedContainer) throws -> Void = change
  ) throws -> TransactionOutcome<Void> {
    var options = TransactionOptions(commit: commit, faults: faults)
    options.undoLimits = limits
    return try Transaction.run(on: container(), kind, summary: summary, options: options, body: body)
  }

  @discardableResult
  func rollback(
    discardingNewer: Bool = false, redoing: Bool = false, commit: StateDirectory.Place? = nil,
    keys: DeviceKeys? = nil, faults: Seams = .none
  ) throws -> TransactionOutcome<RolledBack> {
    try Transaction.rollback(
      container(), discardingNewer: discardingNewer, redoing: redoing,
      options: TransactionOptions(commit: commit, keys: keys, faults: faults))
  }

  // MARK: State

  /// The state directory, nil when there is none.
  func state(_ place: StateDirectory.Place = .beside) throws -> Directory? {
    try StateDirectory.existing(for: container(), place)?.directory
  }

  /// What is left of stages, wherever they were.
  func stages() throws -> [String] {
    try StateDirectory.Place.allCases.flatMap { place -> [String] in
      guard let state = try state(place), try state.status("stage") != nil else { return [] }
      return try state.directory("stage").names().map { String(decoding: $0, as: UTF8.self) }
    }
  }

  func log() throws -> [TransactionLogEntry] { try Transaction.log(container()) }

  /// What a transaction kept aside of what an app wrote to a path.
  func conflictCopy(
    _ path: ContainerPath, of outcome: TransactionOutcome<Void>, _ place: StateDirectory.Place = .beside
  ) throws -> String {
    let copies = try #require(try state(place)).directory("conflict")
    let folder = try copies.directory(ContainerPath(#require(outcome.transaction).description))
    return String(decoding: try folder.contents(path), as: UTF8.self)
  }
}

extension StagedContainer {
  /// Changes the settings, when there are any.
  func changeSettings(_ body: (inout PropertyListDictionary) throws -> Void) throws {
    guard var file = try defaults(Sandbox.settings) else { return }
    try body(&file.root)
    try setDefaults(file, at: Sandbox.settings)
  }
}

extension TransactionOptions {
  init(commit: StateDirectory.Place? = nil, keys: DeviceKeys? = nil, faults: Seams = .none) {
    self.init()
    (self.commit, deviceKeys, seams) = (commit, keys, faults)
  }
}

extension TreeListing {
  /// Differences that matter to a test, as one text for a message.
  func changes(
    from other: TreeListing, comparing aspects: Set<TreeEntry.Aspect> = TreeListing.copied,
    ignoringTimesOf: [String] = []
  ) -> String {
    differences(from: other, comparing: aspects, ignoringTimesOf: ignoringTimesOf).joined(separator: "\n")
  }
}

/// Expects that nothing differs, and says what does.
func expectNone(_ changes: String, _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation)
{
  #expect(changes.isEmpty, "\(comment) \(changes)", sourceLocation: sourceLocation)
}

/// Ends a transaction at some point.
struct Stop: Error {}

extension Seams {
  /// Stops, or does something, when a point is reached for the nth time.
  static func at(
    _ point: FaultPoint, _ count: Int = 1, _ body: @escaping @Sendable () throws -> Void = { throw Stop() }
  ) -> Seams {
    let seen = Counter()
    return Seams { if $0 == point, seen.next() == count { try body() } }
  }
}

/// Counts from 1, on any thread.
final class Counter: Sendable {
  private let count = Mutex(0)

  func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}

/// Two containers, `c` and `d`, that share a group; `c` has another one of its own.
struct GroupSandbox {
  static let shared: ContainerPath = ".groups/group.shared"
  static let own: ContainerPath = ".groups/group.own"
  static let files = [
    "c/Documents/a.txt": "a", "c/Documents/keep/b.txt": "b", "Shared/one/note.txt": "note",
    "Shared/one/gone.txt": "gone", "Shared/one/deep/down/x.txt": "x", "Shared/two/own.txt": "own",
    "d/Documents/d.txt": "d",
  ]

  let folder: TemporaryDirectory

  init() throws {
    folder = try TemporaryDirectory()
    for (path, text) in Self.files { try put(path, text) }
    try Directory(folder("Shared")).setMode(0o750, of: "one")
  }

  private var files: Sandbox { Sandbox(folder: folder, root: folder.path) }
  func put(_ path: String, _ text: String) throws { try files.put(path, text) }
  func text(_ path: ContainerPath) throws -> String { try files.text(path) }
  func exists(_ path: ContainerPath) throws -> Bool { try files.exists(path) }

  func container(_ name: String = "c") throws -> Container {
    var configuration = ContainerConfiguration()
    configuration.groups =
      name == "c"
      ? ["group.shared": "../Shared/one", "group.own": "../Shared/two"]
      : ["group.shared": folder("Shared/one")]
    return try Container(at: folder(name), configuration: configuration)
  }

  /// All roots, without Drydock's own state in them.
  func listings() throws -> [TreeListing] {
    try ["c", "d", "Shared/one", "Shared/two"].map {
      try TreeListing(folder($0)).without(".drydock-state")
    }
  }

  /// What is not as it was, in any root.
  func changes(
    from old: [TreeListing], comparing aspects: Set<TreeEntry.Aspect> = TreeListing.copied
  ) throws -> String {
    zip(try listings(), old).map { $0.changes(from: $1, comparing: aspects) }.filter { !$0.isEmpty }
      .joined(separator: "\n")
  }

  /// Changes each of the three roots.
  static func change(_ staged: StagedContainer) throws {
    try staged.write(Array("A".utf8), to: "Documents/a.txt")
    try staged.write(Array("NOTE".utf8), to: shared.appending("note.txt"))
    try staged.remove(shared.appending("gone.txt"))
    try staged.move("Documents/keep", to: shared.appending("keep"))
    try staged.write(Array("OWN".utf8), to: own.appending("new").appending("own.txt"))
  }

  @discardableResult
  func run(
    _ name: String = "c", commit: StateDirectory.Place? = nil, faults: Seams = .none,
    _ body: (StagedContainer) throws -> Void = change
  ) throws -> TransactionOutcome<Void> {
    try Transaction.run(
      on: container(name), .migrate, summary: "test",
      options: TransactionOptions(commit: commit, faults: faults), body: body)
  }

  func rollback(redoing: Bool = false, commit: StateDirectory.Place? = nil) throws {
    _ = try Transaction.rollback(container(), redoing: redoing, options: TransactionOptions(commit: commit))
  }

  /// Whether all roots are as ``change(_:)`` makes them.
  func isNew() throws -> Bool {
    let base = try Directory(folder.path)
    return try base.contents("c/Documents/a.txt") == Array("A".utf8)
      && base.contents("Shared/one/note.txt") == Array("NOTE".utf8)
      && base.status("Shared/one/gone.txt") == nil && base.status("c/Documents/keep") == nil
      && base.contents("Shared/one/keep/b.txt") == Array("b".utf8)
      && base.contents("Shared/two/new/own.txt") == Array("OWN".utf8)
      && base.contents("Shared/one/deep/down/x.txt") == Array("x".utf8)
  }

  /// Drydock's own files that are left beside and in the groups.
  func traces() throws -> [String] {
    var found: [String] = []
    try Directory(folder("Shared")).walk { entry in
      if entry.path.nameString.hasPrefix(".drydock-") { found.append(entry.path.description) }
      return .into
    }
    return found
  }
}

/// A container with a vault, and its device's key.
struct VaultSandbox {
  static let path: ContainerPath = "Library/Vault/vault.age"

  let base: Sandbox
  let keys: DeviceKeys

  /// A container whose vault has items `s/a` and `s/b`, with the values `a` and `b`; without items there is no vault.
  init(items: [String] = ["a", "b"]) throws {
    base = try Sandbox(files: ["Documents/a.txt": "a", "Library/Preferences/x.plist": "no settings"])
    keys = try DeviceKeys(.generate())
    if items.isEmpty { return }
    try change { vault in
      for name in items { vault.put(Self.item(name, name)) }
    }
  }

  static func item(_ account: String, _ value: String) -> VaultItem {
    VaultItem(service: "s", account: account, value: SecretBytes(Array(value.utf8)))
  }

  static func id(_ account: String) -> VaultItem.ID { VaultItem.ID(service: "s", account: account) }

  /// Changes the vault in a transaction; there may be none before.
  @discardableResult
  func change(
    _ kind: TransactionLogEntry.Kind = .vault, _ body: (inout Vault) throws -> Void
  ) throws -> TransactionOutcome<Void> {
    try Transaction.run(on: base.container(), kind, summary: "changed the vault", options: .init(keys: keys))
    {
      var vault = try $0.vault() ?? Vault(new: keys)
      try body(&vault)
      try $0.setVault(vault)
    }
  }

  /// Changes the vault as an app does, past Drydock.
  func appChanges(_ body: (inout Vault) throws -> Void) throws {
    var vault = try vault()
    try body(&vault)
    try write(vault.sealed())
  }

  func write(_ bytes: [UInt8]) throws {
    try RawFiles.write(bytes, to: Array("\(base.root)/\(Self.path)".utf8))
  }

  func sealed() throws -> [UInt8] { try base.live().contents(Self.path) }
  func vault() throws -> Vault { try Vault(opening: sealed(), with: keys, path: "v") }

  /// The items as `account = value`.
  func values() throws -> [String] {
    try vault().sorted.map { item in
      "\(item.account ?? "") = \(item.value.withBytes { String(decoding: $0, as: UTF8.self) })"
    }
  }

  @discardableResult
  func rollback(_ keys: DeviceKeys?, discardingNewer: Bool = false, redoing: Bool = false) throws
    -> TransactionOutcome<RolledBack>
  {
    try base.rollback(discardingNewer: discardingNewer, redoing: redoing, keys: keys)
  }
}
