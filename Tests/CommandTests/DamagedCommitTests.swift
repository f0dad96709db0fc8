import Foundation
import TestSupport
import Testing

/// A commit was killed, and its record in the journal is damaged or lost: whatever the stage holds may be the only copy.
@Suite("A damaged record of a commit")
struct DamagedCommitTests {
  /// What happens to the journal `$0`.
  private static let damages = [
    "truncate -s -1 \"$0\"",
    #"sed -i '/"step":"commit"/d' "$0""#,
    #"sed -i '/"commit"/s/rootAfter/rootAfuer/' "$0""#,
    #"sed -i '/"commit"/s/rootBefore/rootBefose/' "$0""#,
    #"sed -i '/"commit"/s/"transaction":"20/"transaction":"21/' "$0""#,
  ]
  private static let moments = [
    ("in-place", "moved:1"), ("in-place", "moved:3"), ("exchange", "exchanged"),
  ]

  @Test("Nothing is removed, and no command says that all is well", arguments: damages)
  func nothingIsRemoved(_ damage: String) throws {
    for (way, step) in Self.moments {
      try Sandbox.with { sandbox in
        var sandbox = sandbox
        sandbox.commit = way
        try sandbox.create()
        let killed = try sandbox.drydock(["migrate", "Notes"], environment: ["DRYDOCK_KILL_AT": step])
        #expect(killed.signal == SIGKILL, "\(killed)")
        let state = try sandbox.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
        try sandbox.run("/bin/sh", "-c", damage, sandbox(state + "/journal"))
        let before = try (sandbox.tree(), sandbox.tree(state))
        for command in [
          ["recover", "Notes"], ["migrate", "Notes"], ["rollback", "Notes"],
          ["snapshot", "Notes", "-o", "A"],
        ] {
          let refused = try sandbox.drydock(command)
          #expect(
            refused.exitCode == 1 && refused.errors.contains("journal"),
            "\(damage) \(way) \(step): \(refused)")
        }
        try sandbox.tree().expectSame(as: before.0, comparing: TreeListing.untouched)
        try sandbox.tree(state).expectSame(as: before.1, comparing: TreeListing.copied)
      }
    }
  }

  @Test(
    "Killed while what a commit is going to do was being written down: the container is the old one",
    arguments: [("exchange", "trees"), ("in-place", "plan")])
  func halfAList(way: String, file: String) throws {
    try Sandbox.with { sandbox in
      var sandbox = sandbox
      sandbox.commit = way
      try sandbox.create()
      let folders = ["Notes/Documents", "Notes/Library"]
      let old = try folders.map { try sandbox.tree($0) }
      let killed = try sandbox.drydock(["migrate", "Notes"], environment: ["DRYDOCK_KILL_AT": "tree-built"])
      #expect(killed.signal == SIGKILL, "\(killed)")
      let state = try sandbox.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
      try sandbox.run("/bin/sh", "-c", "cd \"$0\"/stage/*/ && : > $1.new && rm $1", sandbox(state), file)
      let recovered = try sandbox.drydock(["recover", "Notes"])
      #expect(recovered.exitCode == 0, "\(recovered)")
      for (folder, old) in zip(folders, old) {
        try sandbox.tree(folder).expectSame(as: old, comparing: TreeListing.copied)
      }
    }
  }
}
