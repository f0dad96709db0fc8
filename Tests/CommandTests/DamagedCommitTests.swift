import Foundation
import TestSupport
import Testing

/// A commit was killed, and its record in the journal is damaged or lost: whatever the stage holds may be the only copy.
@Suite struct DamagedCommitTests {
  /// What happens to the journal `$0`.
  private static let damages = [
    "truncate -s -1 \"$0\"", #"sed -i '/"step":"commit"/d' "$0""#,
    #"sed -i '/"commit"/s/rootAfter/rootAfuer/' "$0""#, #"sed -i '/"commit"/s/rootBefore/rootBefose/' "$0""#,
    #"sed -i '/"commit"/s/"transaction":"20/"transaction":"21/' "$0""#,
  ]
  private static let moments = [("in-place", "moved:1"), ("in-place", "moved:3"), ("exchange", "exchanged")]

  @Test(arguments: damages)
  func `Nothing is removed, and no command says that all is well`(_ damage: String) throws {
    for (way, step) in Self.moments {
      try Sandbox.with(commit: way) { sandbox in
        try sandbox.create()
        try sandbox.kill("migrate Notes", at: step)
        let state = try sandbox.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
        try sandbox.run("/bin/sh", "-c", damage, sandbox(state + "/journal"))
        let before = try (sandbox.tree(), sandbox.tree(state))
        for command in ["recover Notes", "migrate Notes", "rollback Notes", "snapshot Notes -o A"] {
          try sandbox.drydock(command).expect(exit: 1, errors: "journal")
        }
        try sandbox.tree().expectSame(as: before.0, comparing: TreeListing.untouched)
        try sandbox.tree(state).expectSame(as: before.1, comparing: TreeListing.copied)
      }
    }
  }

  /// A double fault: the container is moved away right before the exchange, and the exchange back fails.
  @Test func `Another directory at the container's place is never removed`() throws {
    try Sandbox.with(commit: "exchange") { sandbox in
      try sandbox.create()
      let running = try Command.spawn(
        Tools.system("strace"),
        [
          "--seccomp-bpf", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,renameat2",
          "-e", "inject=fsync,fdatasync:delay_exit=300000", "-e", "inject=renameat2:error=EIO:when=3",
          sandbox.program, "migrate", "Notes",
        ], environment: sandbox.environment, input: [], directory: sandbox.directory.path)
      func isCommitted() throws -> Bool {
        guard let state = try sandbox.names().first(where: { $0.hasPrefix(".drydock-") }),
          sandbox.exists(state + "/journal")
        else { return false }
        return try sandbox.text(state + "/journal").contains(#""commit""#)
      }
      while try running.isRunning && !isCommitted() { usleep(1000) }
      let script = "cd \"$0\"; mv Notes Moved; mkdir Notes; echo 1 > Notes/precious"
      try sandbox.run("/bin/sh", "-ec", script, sandbox(""))
      let failed = try running.wait()
      #expect(failed.exitCode != 0 && failed.errors.contains("could not be reverted"), "\(failed)")
      for command in ["recover Notes", "migrate Notes", "log Notes"] {
        let result = try sandbox.drydock(command)
        let found = try sandbox.run("/usr/bin/find", sandbox(""), "-name", "precious")
        #expect(found.split(separator: "\n").count == 1, "\(command): \(result)")
      }
    }
  }

  @Test(arguments: [("exchange", "trees"), ("in-place", "plan")])
  func `Killed while a commit's list is written, all is old`(way: String, file: String) throws {
    try Sandbox.with(commit: way) { sandbox in
      try sandbox.create()
      let folders = ["Notes/Documents", "Notes/Library"]
      let old = try folders.map { try sandbox.tree($0) }
      try sandbox.kill("migrate Notes", at: "tree-built")
      let state = try sandbox.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
      try sandbox.run("/bin/sh", "-c", "cd \"$0\"/stage/*/ && : > $1.new && rm $1", sandbox(state), file)
      try sandbox.succeed("recover Notes")
      for (folder, old) in zip(folders, old) {
        try sandbox.tree(folder).expectSame(as: old, comparing: TreeListing.copied)
      }
    }
  }
}
