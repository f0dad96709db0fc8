import ContainerTransaction
import FileSystem
import TestSupport
import Testing

@testable import MigrationEngine

/// Several transactions, and parts of them, as one rollback.
@Suite("Going back to a version") struct MigrationRollbackTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// Six migrations over settings, a database and files; run as 1…2, 3…5 and 6.
  @discardableResult
  private func migrateInRuns(_ targets: [Int] = [2, 5, 6]) throws -> [TreeListing] {
    try lab.set(["theme": "light", "name": "Ada"])
    try lab.database(
      Lab.oldDatabase, "CREATE TABLE task(id INTEGER PRIMARY KEY, title); INSERT INTO task VALUES (1, 'a')")
    try lab.write("Documents/a.txt", "a")
    let steps = [
      "defaults.set: {values: {theme: dark}, if-exists: replace}",
      "sql: {database: notes, up: ALTER TABLE task ADD COLUMN b, down: ALTER TABLE task DROP COLUMN b}",
      "files.move: {from: Documents/a.txt, to: Documents/b.txt}",
      "sql: {database: notes, up: ALTER TABLE task ADD COLUMN d, down: ALTER TABLE task DROP COLUMN d}",
      "defaults.rename: {keys: {name: user}}",
      "files.delete: {path: Documents/b.txt, destructive: done with it}",
    ]
    for (index, step) in steps.enumerated() {
      try lab.migration("000\(index + 1)_m.yaml", step: step)
    }
    try lab.baseline(0)
    var listings = [try lab.tree()]
    for target in targets {
      try lab.migrate(to: target)
      listings.append(try lab.tree())
    }
    return listings
  }

  private func log(_ lab: Lab) throws -> [TransactionLogEntry] { try Transaction.log(lab.container) }

  private func expectSame(_ lab: Lab, _ listing: TreeListing, _ comment: String = "") throws {
    let changes = try lab.tree().differences(from: listing)
    #expect(changes == [], "\(comment)")
  }

  /// What is in the stores, without the history.
  private func stores(_ lab: Lab) throws -> [String] {
    let settings = try lab.settings() ?? [:]
    let database =
      try lab.exists(Lab.oldDatabase) ? lab.query(Lab.oldDatabase, "SELECT * FROM task ORDER BY id") : []
    let files = try ["Documents/a.txt", "Documents/b.txt"].filter { try lab.exists(ContainerPath($0)) }
    return settings.map { "\($0)=\($1)" }.sorted() + database.map(\.debugDescription) + files
  }

  @Test func severalTransactionsAsOneAndBack() throws {
    let listings = try migrateInRuns()
    let newest = try lab.tree()
    let report = try lab.rollback(to: 2)
    #expect((report.from, report.to) == (6, 2) && report.undone.count == 2 && report.migrations.isEmpty)
    try expectSame(lab, listings[1])
    let entry = try #require(try log(lab).last)
    #expect(entry.undoes == report.undone.map(\.transaction) && entry.partly == [])
    #expect(try log(lab).map(\.state) == [.undoable, .undoable, .undone, .undone, .undoable])

    try lab.rollback(redoing: true)
    let times = ["Documents", "Library/Preferences", "Library/Application Support/.drydock"]
    let now = try lab.tree()
    #expect(now.differences(from: newest, ignoringTimesOf: times) == [])
    // The redo stands for both: once more, and then all the way.
    #expect(try lab.rollback(to: 2).undone.count == 1)
    try expectSame(lab, listings[1])
    #expect(try lab.rollback(to: 0).undone.count == 1)
    try expectSame(lab, listings[0])
    #expect(try lab.history()?.version == 0)
  }

  @Test func intoTheMiddleOfATransactionAndOn() throws {
    let listings = try migrateInRuns()
    let report = try lab.rollback(to: 4)
    #expect(report.undone.count == 1 && report.migrations.map(\.number) == [5])
    #expect(try lab.history()?.version == 4)
    #expect(try lab.settings()?["name"] == "Ada" && lab.exists("Documents/b.txt"))
    let entry = try #require(try log(lab).last)
    #expect(entry.partly.count == 1 && entry.undoes == report.undone.map(\.transaction))
    // A part is gone; the rest can still be undone as a whole, without a conflict.
    #expect(try lab.rollback(to: 3).migrations.map(\.number) == [4])
    #expect(try lab.rollback(to: 2).undone.count == 1)
    try expectSame(lab, listings[1])
    try lab.rollback(redoing: true)
    #expect(try lab.history()?.version == 3)
    try lab.rollback(redoing: true)
    #expect(try lab.history()?.version == 4)
  }

  @Test func thePartThatIsRedoneIsThere() throws {
    let listings = try migrateInRuns([5])
    let newest = try stores(lab)
    try lab.rollback(to: 3)
    try lab.rollback(redoing: true)
    #expect(try stores(lab) == newest && lab.history()?.version == 5)
    // The redo leaves nothing of its own to undo.
    #expect(try lab.rollback().undone.count == 1)
    try expectSame(lab, listings[0])
  }

  @Test func byStepsWhenTheUndoIsGone() throws {
    try migrateInRuns()
    let newest = try stores(lab)
    let state = try #require(try StateDirectory.existing(for: lab.container)).directory
    try state.removeTree("undo")
    try state.createDirectories("undo")
    // 6 deleted a file that is kept nowhere now, and 1 has forgotten what it replaced.
    #expect(failure { try lab.rollback(to: 5) }.code == .stepFailed)
    #expect(try stores(lab) == newest)
    try lab.write("Documents/b.txt", "again")
    try lab.migration("0006_m.yaml", step: "defaults.set-default: {values: {x: 1}}")
    #expect(failure { try lab.rollback(to: 2) }.code == .edited)
  }

  @Test func upAndDownGiveEqualStores() throws {
    try migrateInRuns([6])
    try lab.rollback()
    let before = try stores(lab)
    try lab.migrate(to: 5)
    let after = try stores(lab)
    #expect(after != before)
    let report = try lab.rollback(down: true)
    #expect(report.migrations.map(\.number) == [5, 4, 3, 2, 1] && report.undone.isEmpty)
    #expect(try stores(lab) == before)
    // Taken back as a whole: there is nothing left to undo, but it can be redone.
    let undoable = try log(lab).filter { $0.state == .undoable }.map(\.kind)
    #expect(undoable == [.baseline, .rollback], "\(undoable)")
    try lab.rollback(redoing: true)
    #expect(try stores(lab) == after && lab.history()?.version == 5)
    // What the steps had written down came along with the redo.
    try lab.rollback(to: 0, down: true)
    #expect(try stores(lab) == before)
  }

  @Test func aConflictNamesTheOtherWays() throws {
    try migrateInRuns()
    try lab.write("Documents/b.txt", "the app's")
    try lab.app(sets: "user", "Grace")
    try lab.app(sets: "own", 1)
    let before = try lab.tree()
    let error = expectError(.conflict, "changed by the app", "Down migrations") { try lab.rollback(to: 2) }
    #expect(error?.message.contains("Documents/b.txt") == true)
    #expect(try lab.tree().differences(from: before) == [])
    let report = try lab.rollback(to: 2, down: true)
    #expect(report.migrations.map(\.number) == [6, 5, 4, 3])
    #expect(report.migrations[0].notes.contains { $0.contains("exists: left unchanged") })
    // Newer data went back under its old name.
    #expect(try lab.settings()?["name"] == "Grace" && lab.settings()?["own"] == 1)
    #expect(try lab.exists("Documents/a.txt") && lab.history()?.version == 2)
  }

  @Test func whatIsGivenUpIsToldForAll() throws {
    let listings = try migrateInRuns()
    try lab.app(sets: "user", "Grace")
    try lab.app(sets: "theme", "sepia")
    let report = try lab.rollback(to: 0, discardingNewer: true)
    #expect(report.discarded.map(\.key) == ["user", "theme"])
    let changes = try lab.tree().differences(from: listings[0], comparing: [.type, .mode, .content])
    #expect(changes == [])
  }

  @Test func whatMakesNoSense() throws {
    try migrateInRuns()
    #expect(failure { try lab.rollback(to: 7) }.code == .usage)
    #expect(failure { try lab.rollback(to: -1, down: true) }.code == .usage)
    let before = try lab.tree()
    #expect(try lab.rollback(to: 6).undone == [])
    #expect(try lab.tree().differences(from: before) == [])
    try lab.rollback(to: 0)
    #expect(failure { try lab.rollback(down: true) }.code == .usage)
  }

  @Test func theDryRunIsTheRealRun() throws {
    try migrateInRuns()
    let before = try lab.tree()
    var request = MigrationRollback.Request()
    request.version = 3
    let dry = try MigrationRollback.dryRun(lab.container, request, lab.catalog(), options: lab.options)
    #expect(try lab.tree().differences(from: before) == [])
    let real = try lab.rollback(to: 3)
    #expect(dry.value.undone == real.undone && dry.value.to == real.to)
    #expect(dry.value.migrations.map(\.number) == real.migrations.map(\.number))
    #expect(dry.difference.settings.map(\.key) == ["name", "user"])
    #expect(dry.difference.databases.map(\.path) == [Lab.oldDatabase])
  }

  @Test("Killed anywhere it is old or new as a whole", arguments: FaultPoint.allCases)
  func stopped(at point: FaultPoint) throws {
    let listings = try migrateInRuns()
    struct Stop: Error {}
    var options = lab.options
    options.seams = Seams { if $0 == point { throw Stop() } }
    var request = MigrationRollback.Request()
    request.version = 4
    let before = try lab.tree()
    let outcome = try? MigrationRollback.run(lab.container, request, lab.catalog(), options: options)
    let isReached = outcome == nil || outcome?.isFinished == false
    _ = try Transaction.recover(lab.container)
    let version = try lab.history()?.version
    if outcome == nil {
      #expect(version == 6)
      #expect(try lab.tree().differences(from: before) == [])
    } else {
      #expect(version == 4)
      #expect(try lab.exists("Documents/b.txt") && lab.settings()?["name"] == "Ada")
      // What the interrupted one has undone is known to be undone.
      #expect(try log(lab).last?.undoes.count == 1 && log(lab).last?.partly.count == 1)
      try lab.rollback(to: 2)
      try expectSame(lab, listings[1], "\(point), reached: \(isReached)")
    }
  }
}
