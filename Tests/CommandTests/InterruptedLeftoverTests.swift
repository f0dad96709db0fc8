import Foundation
import TestSupport
import Testing

/// What the commands know, keep and write to disk when they end what was interrupted.
@Suite struct InterruptedLeftoverTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test func `A recovery that is killed while it removes the stage is finished by the next one`() throws {
    for (commit, step) in [("exchange", "committed"), ("in-place", "tree-built")] {
      for number in [1, 4, 8] {
        try Sandbox.with(commit: commit) { sandbox in
          try sandbox.create()
          let before = try sandbox.tree().without(".drydock-state")
          try sandbox.kill("migrate Notes", at: step)
          _ = try sandbox.traced("unlinkat", "signal=KILL:when=\(number)", ["recover", "Notes"])
          for command in ["log", "recover", "log"] { try sandbox.succeed(command, "Notes") }
          try sandbox.tree().without(".drydock-state").expectSame(as: before, ignoringTimesOf: [""])
        }
      }
    }
  }

  @Test func `A rollback that is killed before it sets a time leaves no conflict`() throws {
    try sandbox.create()
    let before = try sandbox.tree()
    try sandbox.succeed("migrate Notes")
    var kills = 0
    for number in 1...20 {
      let result = try sandbox.traced("utimensat", "signal=KILL:when=\(number)", ["rollback", "Notes"])
      guard result.signal == SIGKILL else { break }
      kills += 1
      let recovered = try sandbox.drydock("recover Notes").expect()
      #expect(!recovered.output.contains("conflict"), "\(number): \(recovered)")
    }
    #expect(kills > 2)
    _ = try sandbox.drydock("rollback Notes")
    try sandbox.tree().without(".drydock-state").expectSame(as: before, ignoringTimesOf: [""])
  }

  private func kill(_ sandbox: Sandbox, _ step: String) throws -> (state: String, stage: String) {
    try sandbox.kill("migrate Notes", at: step)
    let state = try sandbox.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
    return (state, state + "/stage/" + (try #require(try sandbox.names(state + "/stage").first)))
  }

  @Test(arguments: ["commit", "begin"])
  func `A damaged journal: the container is called whole only where it is`(_ record: String) throws {
    for (way, step, words) in [
      ("in-place", "moved:2", ["may be a mixture"]),
      ("exchange", "exchanged", ["the container is whole, but"]),
      ("exchange", "done", ["the container is whole: no transaction was interrupted"]),
    ] {
      try Sandbox.with(commit: way) { sandbox in
        try sandbox.create()
        let (state, stage) = try kill(sandbox, step)
        if step == "done" { try sandbox.remove(record == "commit" ? stage : state + "/stage") }
        let journal = try sandbox.text(state + "/journal")
        try sandbox.write(
          state + "/journal", journal.replacing("\"step\":\"\(record)\"", with: "\"step\":\"c"))
        for command in ["recover Notes", "snapshot Notes -r Backups", "migrate Notes"] {
          let refused = try sandbox.drydock(command)
          let place = step == "done" ? [] : [sandbox(stage)]
          refused.expectError(exit: 1, ["journal"] + words + place)
        }
      }
    }
  }

  @Test func `A pipe as journal is refused, not waited for`() throws {
    try sandbox.create()
    let (state, _) = try kill(sandbox, "exchanged")
    try sandbox.remove(state + "/journal")
    try sandbox.shell("mkfifo \(state)/journal")
    for command in ["recover", "migrate", "status"] {
      try sandbox.drydock(command, "Notes").expectError(
        exit: 1, ["the journal is not a file", "the container is whole, but"])
    }
  }

  @Test func `After a killed rollback the app's database is live, and nobody's leftover`() throws {
    try sandbox.create()
    try sandbox.succeed("migrate Notes")
    for step in ["exchanged", "merged", "undo-kept", "old-removed", "done"] {
      try sandbox.kill("rollback Notes", at: step)
      for _ in 0..<2 {
        try sandbox.sqlite(
          "Notes/" + Sandbox.oldDatabase,
          "CREATE TABLE IF NOT EXISTS later(x); INSERT INTO later VALUES (1)")
        for command in ["recover Notes", "status Notes"] {
          let result = try sandbox.drydock(command).expect()
          #expect(!result.errors.contains("still had them open"), "\(step): \(result)")
        }
      }
      try sandbox.succeed("rollback Notes --redo --discard-newer")
    }
  }

  @Test(arguments: ["exchanged", "merged", "undo-kept"])
  func `What comes into the old tree after all looks is kept`(_ step: String) throws {
    try sandbox.create()
    let (state, stage) = try kill(sandbox, step)
    // As a program does that has a directory of the old tree open.
    try sandbox.write(stage + "/tree/Documents/late.txt", "late")
    let recovered = try sandbox.drydock("recover Notes")
    if step == "exchanged" {
      #expect(recovered.succeeded && sandbox.exists("Notes/Documents/late.txt"), "\(recovered)")
    } else {
      #expect(recovered.exitCode == 6 && recovered.output.contains("Documents/late.txt"), "\(recovered)")
      let transaction = (stage as NSString).lastPathComponent
      #expect(try sandbox.text("\(state)/conflict/\(transaction)/Documents/late.txt") == "late")
    }
    #expect(try sandbox.names(state + "/stage") == [])
  }

  @Test func `What is merged is on disk before the journal says so`() throws {
    try sandbox.create()
    let (_, stage) = try kill(sandbox, "exchanged")
    try sandbox.write(stage + "/tree/Documents/late.txt", "late")
    try sandbox.traced("renameat2,renameat,syncfs,pwrite64", log: sandbox("trace"), ["recover", "Notes"])
      .expect()
    let calls = try sandbox.text("trace").split(separator: "\n")
    let moved = try #require(calls.firstIndex { $0.contains("late.txt") })
    let carried = try #require(calls.firstIndex { $0.contains("pwrite64") && $0.contains("carried") })
    #expect(moved < carried && calls[moved..<carried].contains { $0.contains("syncfs") }, "\(calls)")
  }

  @Test func `More databases than open files are allowed: the limit is raised, or it is refused`() throws {
    try sandbox.create()
    try sandbox.run(
      "/bin/sh", "-ec",
      "cd Notes/Documents; sqlite3 d1.db 'CREATE TABLE t(x)'; for n in $(seq 2 150); do cp d1.db d$n.db; done"
    )
    let before = try sandbox.tree()
    func migrate(_ soft: Int, _ hard: Int) throws -> CommandResult {
      try sandbox.execute(
        Tools.system("prlimit"), ["--nofile=\(soft):\(hard)", sandbox.program, "migrate", "Notes"])
    }
    try migrate(100, 200).expectError(
      exit: 1, ["databases, which are kept locked", "200", "ulimit -n", "nothing was changed"])
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
    try migrate(100, 1000).expect()
  }
}
