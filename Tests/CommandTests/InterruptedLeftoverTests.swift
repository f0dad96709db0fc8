import Foundation
import TestSupport
import Testing

/// What the commands know, keep and write to disk when they end what was interrupted.
@Suite("What an interruption leaves")
struct InterruptedLeftoverTests {
  private func kill(_ lab: Lab, _ step: String) throws -> (state: String, stage: String) {
    let killed = try lab.drydock(["migrate", "Notes"], environment: ["DRYDOCK_KILL_AT": step])
    #expect(killed.signal == SIGKILL, "\(killed)")
    let state = try lab.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
    return (state, state + "/stage/" + (try #require(try lab.names(state + "/stage").first)))
  }

  @Test("A damaged journal: the container is called whole only where it is", arguments: ["commit", "begin"])
  func damagedJournal(_ record: String) throws {
    for (way, step, words) in [
      ("in-place", "moved:2", ["may be a mixture"]),
      ("exchange", "exchanged", ["the container is whole, but"]),
      ("exchange", "done", ["the container is whole: no transaction was interrupted"]),
    ] {
      try Lab.with { lab in
        var lab = lab
        lab.commit = way
        try lab.create()
        let (state, stage) = try kill(lab, step)
        if step == "done" { try lab.remove(record == "commit" ? stage : state + "/stage") }
        let journal = String(decoding: try lab.read(state + "/journal"), as: UTF8.self)
        try lab.write(state + "/journal", journal.replacing("\"step\":\"\(record)\"", with: "\"step\":\"c"))
        for command in [
          ["recover", "Notes"], ["snapshot", "Notes", "-r", "Backups"], ["migrate", "Notes"],
        ] {
          let refused = try lab.drydock(command)
          let place = step == "done" ? [] : [lab(stage)]
          lab.expect(refused, refusedWith: 1, ["journal"] + words + place, #_sourceLocation)
        }
      }
    }
  }

  @Test("A pipe as journal is refused, not waited for")
  func journalThatIsNoFile() throws {
    try Lab.with { lab in
      try lab.create()
      let (state, _) = try kill(lab, "exchanged")
      try lab.remove(state + "/journal")
      try lab.shell("mkfifo \(state)/journal")
      for command in [["recover", "Notes"], ["migrate", "Notes"], ["status", "Notes"]] {
        lab.expect(
          try lab.drydock(command), refusedWith: 1,
          ["the journal is not a file", "the container is whole, but"],
          #_sourceLocation)
      }
    }
  }

  @Test("After a rollback that was killed the app goes on: its database is live, and nobody's leftover")
  func rollbackThenUse() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.succeed("migrate", "Notes")
      for step in ["exchanged", "carried", "undo-kept", "old-removed", "done"] {
        let killed = try lab.drydock(["rollback", "Notes"], environment: ["DRYDOCK_KILL_AT": step])
        #expect(killed.signal == SIGKILL, "\(step): \(killed)")
        for _ in 0..<2 {
          try lab.run(
            Tools.system("sqlite3"), lab("Notes/" + Lab.oldDatabase), "CREATE TABLE IF NOT EXISTS later(x)",
            "INSERT INTO later VALUES (1)")
          for command in [["recover", "Notes"], ["status", "Notes"]] {
            let result = try lab.drydock(command)
            #expect(result.succeeded && !result.errors.contains("still had them open"), "\(step): \(result)")
          }
        }
        try lab.succeed("rollback", "Notes", "--redo", "--discard-newer")
      }
    }
  }

  @Test(
    "What comes into the old tree after all looks is kept", arguments: ["exchanged", "carried", "undo-kept"])
  func lateFile(_ step: String) throws {
    try Lab.with { lab in
      try lab.create()
      let (state, stage) = try kill(lab, step)
      // As a program does that has a directory of the old tree open.
      try lab.write(stage + "/tree/Documents/late.txt", "late")
      let recovered = try lab.drydock("recover", "Notes")
      if step == "exchanged" {
        #expect(recovered.succeeded && lab.exists("Notes/Documents/late.txt"), "\(recovered)")
      } else {
        #expect(recovered.exitCode == 6 && recovered.output.contains("Documents/late.txt"), "\(recovered)")
        let transaction = (stage as NSString).lastPathComponent
        #expect(try lab.read("\(state)/conflict/\(transaction)/Documents/late.txt") == Array("late".utf8))
      }
      #expect(try lab.names(state + "/stage") == [])
    }
  }

  @Test("What is carried over is on disk before the journal says so")
  func syncedFirst() throws {
    try Lab.with { lab in
      try lab.create()
      let (_, stage) = try kill(lab, "exchanged")
      try lab.write(stage + "/tree/Documents/late.txt", "late")
      let traced = try Command.run(
        Tools.system("strace"),
        [
          "-f", "-o", lab("trace"), "-e", "trace=renameat2,renameat,syncfs,pwrite64", lab.program, "recover",
          "Notes",
        ],
        environment: lab.environment, directory: lab.directory.path)
      #expect(traced.succeeded, "\(traced)")
      let calls = String(decoding: try lab.read("trace"), as: UTF8.self).split(separator: "\n")
      let moved = try #require(calls.firstIndex { $0.contains("late.txt") })
      let carried = try #require(calls.firstIndex { $0.contains("pwrite64") && $0.contains("carried") })
      #expect(moved < carried && calls[moved..<carried].contains { $0.contains("syncfs") }, "\(calls)")
    }
  }

  @Test("More databases than open files are allowed: raised where it may be, else refused first")
  func manyDatabases() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.run(
        "/bin/sh", "-ec",
        "cd Notes/Documents; sqlite3 d1.db 'CREATE TABLE t(x)'; for n in $(seq 2 150); do cp d1.db d$n.db; done"
      )
      let before = try lab.tree()
      func migrate(_ soft: Int, _ hard: Int) throws -> CommandResult {
        try Command.run(
          Tools.system("prlimit"), ["--nofile=\(soft):\(hard)", lab.program, "migrate", "Notes"],
          environment: lab.environment, directory: lab.directory.path)
      }
      let refused = try migrate(100, 200)
      lab.expect(
        refused, refusedWith: 1,
        ["databases, which are kept locked", "200", "ulimit -n", "nothing was changed"],
        #_sourceLocation)
      try lab.tree().expectSame(as: before, comparing: TreeListing.untouched)
      let done = try migrate(100, 1000)
      #expect(done.succeeded, "\(done)")
    }
  }
}
