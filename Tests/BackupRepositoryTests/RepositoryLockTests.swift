import AppContainer
import Foundation
import Storage
import TestSupport
import Testing

@testable import BackupRepository

/// Writers into a repository, commands that remove from it, and killed processes.
@Suite(.everyPlace) struct RepositoryLockTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// A snapshot of a container whose database somebody holds: it is in the middle of its work for as long as the test
  /// wants.
  private final class SlowSnapshot {
    let process: RunningCommand
    let scratch: String
    private let holder: RunningCommand

    init(_ lab: Lab, _ name: String) throws {
      let root = lab.directory(name)
      try lab.make(root)
      let script = "CREATE TABLE t(x); INSERT INTO t VALUES(1)"
      try Command.succeed(Tools.system("sqlite3"), [root + "/data.db", script])
      let hold = "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; SELECT 'held';"
      holder = try Command.spawn(Tools.system("sqlite3"), ["-cmd", hold, root + "/data.db"])
      try holder.waitForLine("held")
      let before = try SlowSnapshot.writing(lab)
      process = try Command.spawn(
        Tools.drydock(), ["snapshot", root, "-r", lab.repository, "--busy-timeout", "250"], input: [])
      let end = Date().addingTimeInterval(60)
      var found: String?
      while found == nil, Date() < end, process.isRunning {
        usleep(5000)
        found = try SlowSnapshot.writing(lab).first { !before.contains($0) }
      }
      guard let found else { throw SystemFailure("no snapshot began: \(process.errors)") }
      scratch = found
    }

    func finish() throws -> CommandResult {
      holder.closeInput()
      return try process.wait()
    }

    /// What is written into the repository just now. A directory is not yet somebody's while it has nothing in it.
    static func writing(_ lab: Lab) throws -> [String] {
      try RawFiles.names(in: Array(lab.repository.utf8)).map { String(decoding: $0, as: UTF8.self) }
        .filter { name in
          name.hasPrefix(".drydock-writing-")
            && RawFiles.exists(Array((lab.repository + "/" + name + "/manifest").utf8))
        }
    }
  }

  @Test(.local("what is being written is in the directory"))
  func removalWaitsForWritersAndNotForKilledOnes() throws {
    try lab.write("file", "content")
    let repository = Repository(lab.repository)
    let report = try lab.snapshot()
    let item = try #require(repository.list().items.first)

    let killed = try SlowSnapshot(lab, "one")
    let remove = { _ = try repository.forgetEverything(app: "com.example.lab") }
    expectError(.locked, "process \(killed.process.process) (drydock)", "wait for it") { try remove() }
    expectError(.locked) { try repository.forget(keeping: .last(1)) }
    // What only looks does not wait.
    #expect(try repository.forget(keeping: .last(1), dryRun: true).kept.map(\.id) == [item.id])
    #expect(RawFiles.exists(Array(item.path.utf8)))

    // A killed writer holds nothing, and leaves no lock file.
    killed.process.kill()
    _ = try killed.process.wait()
    #expect(try SlowSnapshot.writing(lab) == [killed.scratch])
    try remove()
    #expect(!RawFiles.exists(Array(report.path.utf8)))
    expectError(.notFound) { try remove() }

    // The next writer removes what it left, and nothing of those who live.
    let slow = try SlowSnapshot(lab, "two")
    #expect(try SlowSnapshot.writing(lab) == [slow.scratch])
    let next = try lab.snapshot()
    #expect(try SlowSnapshot.writing(lab) == [slow.scratch])
    let result = try slow.finish()
    #expect(result.succeeded, "\(result)")
    let listing = try repository.list()
    #expect(listing.items.count == 2 && listing.unreadable.isEmpty)
    #expect(listing.items.contains { $0.path == next.path })
    #expect(try RawFiles.names(in: Array(lab.repository.utf8)).count == 2)
    for item in listing.items { _ = try Verification.run(Archive(path: item.path), data: true) }
  }

  @Test func writersWaitForRemoval() throws {
    try lab.write("file", "content")
    let first = try lab.snapshot()
    var holder: (any Place)? = try Repository(lab.repository).locked(exclusive: true, timeout: 0)
    expectError(.locked, lab.place == nil ? "this process itself" : "process \(getpid()) on ") {
      try lab.snapshot()
    }
    // Readers do not wait.
    #expect(try Repository(lab.repository).find("latest") == first.path)
    _ = try Verification.run(Archive(path: first.path), data: true)
    #expect(try lab.restore(first.path).transaction == nil)
    withExtendedLifetime(holder) {}
    holder = nil
    // The kernel may give the lock back a moment later: another thread is just starting a program.
    try lab.snapshot { $0.lockTimeout = 30 }
    #expect(try lab.storedNames().count == 2)
  }

  @Test(.local("an open file outlives its name")) func anOpenArchiveIsReadableAfterItsRemoval() throws {
    let content = SeededRandom.noise(9 << 20)
    try lab.write("file", content)
    let archive = try Archive(path: lab.snapshot().path)
    let repository = Repository(lab.repository)
    try repository.forgetEverything(app: "com.example.lab", lockTimeout: 30)
    #expect(try RawFiles.names(in: Array(lab.repository.utf8)).isEmpty)
    let place = lab.directory("back")
    _ = try Restore.run(archive, lab.target(archive, place))
    #expect(Array(try RawFiles.read(Array((place + "/file").utf8))) == content)
  }

  @Test(.atEachPlace) func writersAndRemovalsTogether() throws {
    try lab.write("file", SeededRandom.noise(100_000))
    let (path, kept) = (lab.repository, try lab.snapshot().path)
    // Each waits for the others' locks: with requests, and pauses of half a second.
    let (threads, rounds) = lab.place == nil || TestExtent.isFull ? (6, 4) : (3, 1)
    let roots = (0..<threads).map { lab.directory("box\($0)") }
    for root in roots { try lab.shell("cp -a '\(lab.root)' '\(root)'") }
    DispatchQueue.concurrentPerform(iterations: threads) { number in
      do {
        let repository = Repository(path)
        for _ in 0..<rounds {
          var options = SnapshotOptions()
          options.lockTimeout = 120
          let report = try Snapshot.take(Container(at: roots[number]), to: .repository(path), options)
          let forgot = try repository.forgetEverything(instance: "box\(number)", lockTimeout: 120)
          #expect(forgot.removed.flatMap(\.paths) == [report.path])
        }
      } catch {
        Issue.record(error)
      }
    }
    #expect(try lab.storedNames().count == 1)
    _ = try Verification.run(Archive(path: kept), data: true)
  }
}
