import Foundation
import TestSupport
import Testing

/// The real program with groups, killed between the exchanges of two roots.
@Suite("Groups")
struct GroupCommandTests {
  private static let migration = """
    steps:
      - defaults.set: {suite: group.one, values: {shared: true}}
      - files.move: {from: Documents/empty.txt, to: .groups/group.two/moved.txt}
    """

  @Test("A part of an older archive is migrated on its way into a group")
  func migratedPart() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.write("Groups/one/keep.txt", "one")
      try lab.write("Groups/two/keep.txt", "two")
      try lab.write("Shares/0001_share.yaml", Self.migration)
      try lab.write("drydock.yaml", Self.configuration)
      let archive = try lab.snapshot()
      try lab.succeed("migrate", "Notes", "-m", "Shares")
      let settings = try lab.read("Groups/one/Library/Preferences/group.one.plist")
      try lab.remove("Groups/one/Library")
      try lab.write("Groups/one/keep.txt", "changed")
      try lab.write("Groups/two/keep.txt", "changed")
      let part = ["--path", ".groups/group.one", "--migrate", "-m", "Shares", "--yes"]
      let restored = try lab.drydock(["restore", archive, "Notes"] + part)
      #expect(restored.succeeded, "\(restored)")
      #expect(try lab.read("Groups/one/keep.txt") == Array("one".utf8))
      #expect(try lab.read("Groups/one/Library/Preferences/group.one.plist") == settings)
      #expect(
        try lab.read("Groups/two/keep.txt") == Array("changed".utf8) && lab.exists("Groups/two/moved.txt"))
    }
  }

  private static let configuration = """
    layout: ios
    version-markers: [{defaults: dataSchemaVersion}]
    groups: {group.one: ../Groups/one, group.two: ../Groups/two}

    """

  private static let steps: [(String, String, Bool)] = [
    ("exchange", "committed", false), ("exchange", "partly-exchanged", true),
    ("exchange", "partly-exchanged:2", true), ("exchange", "exchanged", true),
    ("in-place", "committed", true),
    ("in-place", "moved:2", true),
  ]

  /// Two containers that share two groups.
  private func share(_ lab: Lab) throws {
    try lab.create()
    try lab.create("Other")
    try lab.write("Groups/one/keep.txt", "one")
    try lab.write("Groups/two/keep.txt", "two")
    try lab.write("Shares/0001_share.yaml", Self.migration)
    try lab.write("drydock.yaml", Self.configuration)
  }

  @Test(
    "Killed between two roots: the next command finds all of them old, or makes all of them new",
    arguments: steps)
  func killed(_ way: String, _ step: String, _ isNew: Bool) throws {
    try Lab.with { lab in
      var lab = lab
      lab.commit = way
      try share(lab)
      let before = try (lab.tree(), lab.tree("Groups"))
      let killed = try lab.drydock(
        ["migrate", "Notes", "-m", "Shares"], environment: ["DRYDOCK_KILL_AT": step])
      #expect(killed.signal == SIGKILL, "\(killed)")

      // Another container that shares the groups does not build on half of it.
      let other = try lab.drydock("snapshot", "Other", "-r", "Backups")
      #expect(other.exitCode != 0 && other.errors.contains("run `drydock recover` on it"), "\(other)")
      #expect(other.errors.contains(lab("Notes")))
      let recovered = try lab.drydock("recover", "Notes")
      #expect(recovered.succeeded, "\(recovered)")
      if isNew {
        #expect(lab.exists("Groups/two/moved.txt") && !lab.exists("Notes/Documents/empty.txt"))
        #expect(lab.exists("Groups/one/Library/Preferences/group.one.plist"))
        try lab.succeed("rollback", "Notes")
      }
      let state = ".drydock-state"
      #expect(try lab.tree().without(state).differences(from: before.0, ignoringTimesOf: []) == [])
      #expect(try lab.tree("Groups").differences(from: before.1, ignoringTimesOf: [""]) == [])
      try lab.succeed("snapshot", "Other", "-r", "Backups")
    }
  }

  @Test("Killed between two roots and renamed then: once it is recovered, nobody is held up")
  func renamed() throws {
    try Lab.with { lab in
      try share(lab)
      let killed = try lab.drydock(
        ["migrate", "Notes", "-m", "Shares"], environment: ["DRYDOCK_KILL_AT": "partly-exchanged"])
      #expect(killed.signal == SIGKILL, "\(killed)")
      try lab.shell(
        """
        state() { echo .drydock-$(printf %s "$1" | sha256sum | cut -c1-16); }
        mv $(state Notes) $(state Renamed); mv Notes Renamed
        """)
      #expect(try lab.succeed("recover", "Renamed").contains("its change is now complete"))
      for name in ["Other", "Renamed"] { try lab.succeed("snapshot", name, "-r", "Backups") }
      try lab.succeed("rollback", "Renamed")
    }
  }
}
