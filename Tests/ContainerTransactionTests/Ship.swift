import DrydockErrors
import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// A container in a temporary directory, with what the tests do to it.
struct Ship {
  static let settings: ContainerPath = "Library/Preferences/com.example.notes.plist"
  static let database: ContainerPath = "Documents/database.sqlite"

  let folder: TemporaryDirectory
  /// The container's root: `c` in the folder, unless it is another one.
  let root: String

  init(folder: TemporaryDirectory, root: String? = nil) {
    self.folder = folder
    self.root = root ?? folder("c")
  }

  /// A container as the sample app leaves it.
  static func withNotes(_ options: String..., body: (Ship) throws -> Void) throws {
    try TemporaryDirectory.with { folder in
      let made = try Command.run(try Tools.notesApp(), ["create", folder("c")] + options)
      #expect(made.succeeded, "\(made)")
      try body(Ship(folder: folder))
    }
  }

  /// A small container of plain files.
  static func withFiles(_ files: [String: String], body: (Ship) throws -> Void) throws {
    try TemporaryDirectory.with { folder in
      let ship = Ship(folder: folder)
      try Directory(folder.path).createDirectory("c", mode: 0o755)
      for (path, text) in files { try ship.put(path, text) }
      try body(ship)
    }
  }

  func container() throws -> Container { try Container(at: root) }
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
    if var file = try staged.defaults(settings) {
      file.root["theme"] = .string("green")
      file.root["user_name"] = nil
      file.root["added"] = .integer(1)
      try staged.setDefaults(file, at: settings)
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
    _ summary: String = "test", faults: FaultInjection = .none, kind: TransactionKind = .migrate,
    limits: UndoLimits = UndoLimits(), commit: CommitPreference = .automatic,
    _ body: (StagedContainer) throws -> Void = change
  ) throws -> TransactionOutcome<Void> {
    var options = TransactionOptions()
    options.faults = faults
    (options.undoLimits, options.commit) = (limits, commit)
    return try Transaction.run(on: container(), kind, summary: summary, options: options, body: body)
  }

  @discardableResult
  func rollback(
    discardingNewer: Bool = false, redoing: Bool = false, commit: CommitPreference = .automatic
  ) throws -> TransactionOutcome<RollbackReport> {
    var options = TransactionOptions()
    options.commit = commit
    return try Transaction.rollback(
      container(), discardingNewer: discardingNewer, redoing: redoing, options: options)
  }

  /// What an error says, by its code.
  func failure(_ body: () throws -> Void) -> DrydockError? {
    do {
      try body()
    } catch let error as DrydockError {
      return error
    } catch {
      Issue.record("another error: \(error)")
      return nil
    }
    Issue.record("nothing was thrown")
    return nil
  }

  /// Expects an error by its code. Closures that do something are not written inside `#expect`: the compiler (6.3)
  /// may take one that a macro copied for another one of the same function.
  func expect(
    _ code: DrydockError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
  ) {
    let error = failure(body)
    #expect(error?.code == code, sourceLocation: sourceLocation)
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
