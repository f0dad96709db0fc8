import DrydockErrors
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import ContainerTransaction
@testable import FileSystem

/// An app that starts while a transaction runs: the database is whole, and each row that the app was told is committed
/// is there.
@Suite(.serialized) struct AppStartTests {
  /// One moment at which an app starts.
  struct Moment: Sendable {
    var number: Int
    var point: FaultPoint
    var isLogged: Bool
    var isKilled: Bool
    /// Milliseconds: until the app opens the database, until the transaction goes on, until the app is killed.
    var delay: Double, pause: Double, life: Double
  }

  static let database: ContainerPath = "Documents/notes.sqlite"
  static let perPoint = TestExtent.isFull ? 60 : 10

  static func points(_ strategy: StateDirectory.Place) -> [FaultPoint] {
    let foreign: [FaultPoint] =
      strategy == .beside ? [.moved, .placed] : [.exchanged]
    return FaultPoint.allCases.filter {
      !foreign.contains($0) && ![.partlyExchanged, .sealed, .reverted].contains($0)
    }
  }

  static func moments(_ strategy: StateDirectory.Place) -> [Moment] {
    var random = SeededRandom(seed: strategy == .beside ? 11 : 12)
    var moments: [Moment] = []
    for point in points(strategy) {
      for number in 0..<perPoint {
        moments.append(
          Moment(
            number: moments.count, point: point, isLogged: number % 2 == 0,
            isKilled: number % 4 >= 2,
            delay: number % 3 == 0 ? 0 : Double.random(in: 0...12, using: &random),
            pause: number % 3 == 1 ? 0 : Double.random(in: 0...15, using: &random),
            life: Double.random(in: 1...250, using: &random)))
      }
    }
    return moments
  }

  /// A database of 60 pages in a container.
  static func make(_ path: String, isLogged: Bool) throws {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    try queue.writeWithoutTransaction { db in
      if isLogged { _ = try String.fetchOne(db, sql: "PRAGMA journal_mode=WAL") }
      try db.execute(sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
      try db.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
          INSERT INTO note(id, text) SELECT i, printf('%0500d', i) FROM n
          """)
    }
  }

  /// Moves many pages about, and leaves the app's SQL as it is.
  static func change(_ staged: StagedContainer) throws {
    try staged.writeDatabase(at: database) { db in
      try db.execute(sql: "ALTER TABLE note ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")
      try db.execute(sql: "CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT)")
      try db.execute(sql: "INSERT INTO tag(name) SELECT substr(text, 1, 200) FROM note")
      try db.execute(sql: "DELETE FROM note WHERE id % 3 = 0")
    }
  }

  /// What came of one moment.
  private struct Outcome {
    var kind: String
    /// What was lost; nil when nothing was.
    var loss: String?
  }

  /// Tries each of some moments in a container of its own, several at once.
  private func search(
    _ moments: [Moment], _ body: @Sendable (Moment, WritingApp, TemporaryDirectory) throws -> Outcome
  ) throws -> [String: Int] {
    let app = try WritingApp()
    let lost = Mutex<[String]>([])
    let counts = Mutex<[String: Int]>([:])
    let next = Mutex(0)
    try TemporaryDirectory.with { folder in
      for isLogged in [false, true] {
        try Self.make(folder(isLogged ? "wal" : "delete"), isLogged: isLogged)
      }
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        while true {
          let number = next.withLock { next in
            next += 1
            return next - 1
          }
          guard number < moments.count else { return }
          do {
            let outcome = try body(moments[number], app, folder)
            counts.withLock { $0[outcome.kind, default: 0] += 1 }
            if let loss = outcome.loss { lost.withLock { $0.append("\(moments[number]): \(loss)") } }
          } catch {
            lost.withLock { $0.append("\(moments[number]): \(error)") }
          }
        }
      }
    }
    let all = lost.withLock { $0 }
    #expect(all.isEmpty, "\(all.count) of \(moments.count):\n\(all.prefix(8).joined(separator: "\n"))")
    return counts.withLock { $0 }
  }

  private static func shown(_ counts: [String: Int]) -> String {
    counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
  }

  /// A container with one database.
  private static func sandbox(_ moment: Moment, _ name: String, _ folder: TemporaryDirectory) throws
    -> Sandbox
  {
    let base = try Directory(folder.path)
    try base.createDirectories(ContainerPath("\(name)/c/Documents"), mode: 0o755)
    let sandbox = Sandbox(folder: folder, root: folder("\(name)/c"))
    try base.copyContents(of: moment.isLogged ? "wal" : "delete", to: Self.database, in: sandbox.live())
    return sandbox
  }

  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func atEachMomentNothingIsLost(_ strategy: StateDirectory.Place) throws {
    let moments = Self.moments(strategy)
    #expect(moments.count >= 100)
    let counts = try search(moments) { moment, app, folder in
      let name = "\(strategy.rawValue)-\(moment.number)"
      let sandbox = try Self.sandbox(moment, name, folder)
      let path = sandbox.root + "/" + Self.database.description
      let faults = Seams.at(moment.point) { try app.start(name, path, at: moment) }
      var kind = "committed"
      do {
        try sandbox.run(faults: faults, commit: strategy, Self.change)
      } catch let error as DrydockError where [.inUse, .changedMeanwhile].contains(error.code) {
        kind = error.message.contains("reverted") ? "reverted" : "refused"
      }
      let report = try app.wait(name)
      if let error = report.errors.first { kind += " (\(error))" }
      return Outcome(kind: kind, loss: try Self.loss(path, report))
    }
    print("\(strategy): \(moments.count) moments: \(Self.shown(counts))")
    #expect(counts["reverted"] != nil && counts["refused"] != nil && counts["committed"] != nil, "\(counts)")
  }

  /// Nobody sees the app, as in another namespace: it gets an error for what would be lost, and a rollback takes away what
  /// made SQLite refuse.
  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func whoeverCannotBeSeenGetsAnError(_ strategy: StateDirectory.Place) throws {
    // No factor of what a moment is made by: each kind of app is among them.
    let moments = Self.moments(strategy).filter { $0.number % 7 < 3 }
    let counts = try search(moments) { moment, app, folder in
      let name = "\(strategy.rawValue)-hidden-\(moment.number)"
      let sandbox = try Self.sandbox(moment, name, folder)
      let path = sandbox.root + "/" + Self.database.description
      let before = try RawFiles.read(Array(path.utf8))
      let isStarted = Counter()
      let faults = Seams(searchesOpenFiles: false) { point in
        if point == moment.point, isStarted.next() == 1 { try app.start(name, path, at: moment) }
      }
      var kind = "committed"
      do {
        try sandbox.run(faults: faults, commit: strategy, Self.change)
      } catch let error as DrydockError where [.inUse, .changedMeanwhile].contains(error.code) {
        kind = "refused"
      }
      let report = try app.wait(name)
      if let error = report.errors.first { kind += " (\(error))" }
      if let loss = try Self.loss(path, report) { return Outcome(kind: kind, loss: loss) }
      guard kind.hasPrefix("committed"), report.rows.isEmpty else { return Outcome(kind: kind) }
      do {
        try sandbox.rollback(commit: strategy)
      } catch let error as DrydockError where error.code == .conflict && moment.isKilled {
        // Killed between its commit and the line that reports it: a rollback must not lose that row.
        return Outcome(kind: kind + " (killed after its commit)")
      }
      let isSame = try RawFiles.read(Array(path.utf8)) == before
      return Outcome(kind: kind, loss: isSame ? nil : "a rollback makes another database")
    }
    print("\(strategy), unseen: \(moments.count) moments: \(Self.shown(counts))")
    #expect(counts["committed (file is not a database)"] != nil, "\(counts)")
  }

  /// What is wrong with the database; nil when nothing is.
  static func loss(_ path: String, _ report: WritingApp.Report) throws -> String? {
    do {
      // A program that another test starts holds every lock of this process until it has become itself.
      var configuration = GRDB.Configuration()
      configuration.busyMode = .timeout(10)
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? queue.close() }
      return try queue.read { db in
        let whole = try String.fetchAll(db, sql: "PRAGMA integrity_check")
        if whole != ["ok"] { return "damaged: \(whole.prefix(2)), \(report.lines)" }
        let rows = Set(try Int.fetchAll(db, sql: "SELECT id FROM note"))
        if rows.count < 200 { return "only \(rows.count) rows" }
        let missing = report.rows.filter { !rows.contains($0) }
        return missing.isEmpty ? nil : "lost \(missing), \(report.lines)"
      }
    } catch let error as DatabaseError {
      return "cannot be read: \(error), \(report.lines)"
    }
  }
}

extension WritingApp {
  /// Starts a program that writes rows, and waits as long as the transaction is to wait.
  fileprivate func start(_ name: String, _ path: String, at moment: AppStartTests.Moment) throws {
    try start(name, .rows, path, delay: moment.delay, life: moment.isKilled ? moment.life : 0)
    usleep(UInt32(moment.pause * 1000))
  }
}
