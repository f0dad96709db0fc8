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
      try Lab.with { lab in
        var lab = lab
        lab.commit = way
        try lab.create()
        let killed = try lab.drydock(["migrate", "Notes"], environment: ["DRYDOCK_KILL_AT": step])
        #expect(killed.signal == SIGKILL, "\(killed)")
        let state = try lab.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
        try lab.run("/bin/sh", "-c", damage, lab(state + "/journal"))
        let before = try (lab.tree(), lab.tree(state))
        for command in [
          ["recover", "Notes"], ["migrate", "Notes"], ["rollback", "Notes"],
          ["snapshot", "Notes", "-o", "A"],
        ] {
          let refused = try lab.drydock(command)
          #expect(
            refused.exitCode == 1 && refused.errors.contains("journal"),
            "\(damage) \(way) \(step): \(refused)")
        }
        try lab.tree().expectSame(as: before.0, comparing: TreeListing.untouched)
        try lab.tree(state).expectSame(as: before.1, comparing: TreeListing.copied)
      }
    }
  }

  @Test(
    "Killed while what a commit is going to do was being written down: the container is the old one",
    arguments: [("exchange", "trees"), ("in-place", "plan")])
  func halfAList(way: String, file: String) throws {
    try Lab.with { lab in
      var lab = lab
      lab.commit = way
      try lab.create()
      let folders = ["Notes/Documents", "Notes/Library"]
      let old = try folders.map { try lab.tree($0) }
      let killed = try lab.drydock(["migrate", "Notes"], environment: ["DRYDOCK_KILL_AT": "tree-built"])
      #expect(killed.signal == SIGKILL, "\(killed)")
      let state = try lab.names().first { $0.hasPrefix(".drydock-") } ?? "Notes/.drydock-state"
      try lab.run("/bin/sh", "-c", "cd \"$0\"/stage/*/ && : > $1.new && rm $1", lab(state), file)
      let recovered = try lab.drydock(["recover", "Notes"])
      #expect(recovered.exitCode == 0, "\(recovered)")
      for (folder, old) in zip(folders, old) {
        try lab.tree(folder).expectSame(as: old, comparing: TreeListing.copied)
      }
    }
  }
}
