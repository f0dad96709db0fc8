import Foundation
import GRDB
import TestSupport
import Testing

@testable import ContainerDiff
@testable import ContainerTransaction

@Suite struct DryRunTests {
  @Test(arguments: ["--leave-wal", "--rollback-journal"]) func touchesNothing(option: String) throws {
    let sandbox = try Sandbox(notes: [option])
    let before = try TreeListing(sandbox.folder.path)
    let outcome = try Transaction.dryRun(on: sandbox.container(), body: Sandbox.change)
    expectNone(try TreeListing(sandbox.folder.path).changes(from: before, comparing: TreeListing.untouched))
    let difference = outcome.difference
    #expect(difference.settings.map(\.key).sorted() == ["added", "theme", "user_name"])
    let theme = difference.settings.first { $0.key == "theme" }
    #expect(theme?.change == .added && theme?.after == "\"green\"" && theme?.before == nil)
    #expect(difference.settings.first { $0.key == "user_name" }?.change == .removed)
    #expect(difference.databases.count == 1)
    let tables = try #require(difference.databases.first).tables
    #expect(
      tables.map(\.name) == ["task"] && tables[0].changed == 9 && tables[0].added + tables[0].removed == 0)
    #expect(
      tables[0].columns.map(\.name) == ["title", "isDone", "isCompleted"]
        && tables[0].columns[0].changed == 9)
    #expect(
      difference.databases.first?.schema.contains { $0.name == "task" && $0.change == .changed } == true)
    let files = Dictionary(difference.files.map { ($0.path, $0.change) }, uniquingKeysWith: { a, _ in a })
    #expect(
      files == [
        "Documents/written.txt": .added, "Documents/empty.txt": .changed, "Documents/new": .added,
        "Documents/new/sub": .added, "Documents/new/sub/deep.txt": .added, "Documents/Inbox": .removed,
      ])
    // The same with a state directory there, in which it stages then.
    try sandbox.run("first") { try $0.write([1], to: "Documents/x") }
    let second = try sandbox.listing()
    _ = try Transaction.dryRun(on: sandbox.container(), body: Sandbox.change)
    _ = try Transaction.inspect(sandbox.container()) { try $0.isDatabase(Sandbox.database) }
    expectNone(try sandbox.listing().changes(from: second, comparing: TreeListing.untouched))
    #expect(try sandbox.stages().isEmpty)
  }

  @Test(arguments: [[], ["--rollback-journal"]]) func worksWhileTheAppWrites(options: [String]) throws {
    let sandbox = try Sandbox(notes: options)
    let writer = try Command.spawn(try Tools.notesApp(), ["write", sandbox.root])
    try writer.waitForLine("ready")
    let database = ["", "-wal", "-shm", "-journal"].map { "Documents/database.sqlite" + $0 }
    // Listed while the app is stopped: its journal comes and goes.
    func listing() throws -> TreeListing {
      writer.kill(SIGSTOP)
      defer { writer.kill(SIGCONT) }
      return try sandbox.listing().without(database)
    }
    let before = try listing()
    for _ in 0..<5 {
      let outcome = try Transaction.dryRun(on: sandbox.container()) { staged in
        try Sandbox.change(staged)
        return try staged.readDatabase(at: Sandbox.database) {
          try Int.fetchOne($0, sql: "SELECT sum(balance) FROM account")
        }
      }
      #expect(outcome.value == 200_000)
    }
    // The journal of a database in rollback mode moves its directory's times.
    let aspects =
      options.isEmpty
      ? TreeListing.untouched : TreeListing.untouched.subtracting([.modified, .changed])
    expectNone(try listing().changes(from: before, comparing: aspects))
    #expect(try writer.finish().succeeded)
  }

  @Test func nothingToChangeIsNoTransaction() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    let outcome = try sandbox.run { staged in
      _ = try staged.readDatabase(at: Sandbox.database) {
        try Int.fetchOne($0, sql: "SELECT count(*) FROM task")
      }
      _ = try staged.defaults(Sandbox.settings)
    }
    #expect(outcome.transaction == nil && outcome.changes == 0)
    expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    #expect(try sandbox.stages().isEmpty && sandbox.log().isEmpty)
  }

  @Test func aFailingBodyChangesNothing() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    do {
      try sandbox.run {
        try Sandbox.change($0)
        throw Stop()
      }
      Issue.record("nothing was thrown")
    } catch is Stop {}
    expectError(.checkFailed) {
      try sandbox.run { staged in
        try staged.writeDatabase(at: Sandbox.database) { try $0.execute(sql: "BEGIN; DELETE FROM task") }
      }
    }
    expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    #expect(try sandbox.stages().isEmpty)
    #expect(try sandbox.log().isEmpty)
  }
}

@Suite("Planning")
struct PlanningTests {
  private func run(
    _ sandbox: Sandbox, planning: @escaping (StagedContainer) throws -> Void = { _ in },
    hasChange: Bool = true
  ) throws -> TransactionOutcome<String> {
    try Transaction.run(on: sandbox.container(), .migrate) { staged -> TransactionPlan<String, String> in
      let text = String(decoding: try staged.read("Documents/a.txt"), as: UTF8.self)
      try planning(staged)
      return hasChange ? .change(text + "!", summary: "test") : .unchanged(text)
    } body: { staged, text in
      try staged.write(Array(text.utf8), to: "Documents/a.txt")
      return text
    }
  }

  @Test("A plan is carried out; one without a change writes nothing and looks for no users")
  func plans() throws {
    do {
      let sandbox = try Sandbox(files: ["Documents/a.txt": "a"])
      let file = try sandbox.live().open("Documents/a.txt", .readOnly)
      defer { try? file.close() }
      let unchanged = try run(sandbox, hasChange: false)
      #expect((unchanged.value, unchanged.transaction, unchanged.isFinished) == ("a", nil, true))
      #expect(try sandbox.state() == nil)
      expectError(.inUse) { _ = try run(sandbox) }
      #expect(try sandbox.state() == nil)
    }
    let sandbox = try Sandbox(files: ["Documents/a.txt": "a"])
    let changed = try run(sandbox)
    #expect(changed.value == "a!")
    #expect(try sandbox.text("Documents/a.txt") == "a!")
    #expect(try sandbox.log().map(\.summary) == ["test"])
  }

  @Test("What the plan has read must not change before the stage begins")
  func changes() throws {
    let edits: [(Sandbox) throws -> Void] = [
      { try $0.put("Documents/a.txt", "other") }, { try $0.editQuietly("Documents/a.txt") },
      { try $0.put("Documents/b.txt", "made") }, { try $0.live().removeFile("Documents/a.txt") },
    ]
    for edit in edits {
      let sandbox = try Sandbox(files: ["Documents/a.txt": "a"])
      expectError(.changedMeanwhile) {
        _ = try run(sandbox) { staged in
          _ = try staged.status(of: "Documents/b.txt")
          try edit(sandbox)
        }
      }
      let state = try sandbox.state()
      #expect(state == nil)
    }
  }
}
