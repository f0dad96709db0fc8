import Foundation
import TestSupport
import Testing

/// The real program with groups, killed between the exchanges of two roots.
@Suite struct GroupCommandTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  private static let migration = """
    steps:
      - defaults.set: {suite: group.one, values: {shared: true}}
      - files.move: {from: Documents/empty.txt, to: .groups/group.two/moved.txt}
    """

  @Test func `A part of an older archive is migrated on its way into a group`() throws {
    try sandbox.create()
    try sandbox.write("Groups/one/keep.txt", "one")
    try sandbox.write("Groups/two/keep.txt", "two")
    try sandbox.write("Shares/0001_share.yaml", Self.migration)
    try sandbox.write("drydock.yaml", Self.configuration)
    let archive = try sandbox.snapshot()
    try sandbox.succeed("migrate Notes -m Shares")
    let settings = try sandbox.read("Groups/one/Library/Preferences/group.one.plist")
    try sandbox.remove("Groups/one/Library")
    try sandbox.write("Groups/one/keep.txt", "changed")
    try sandbox.write("Groups/two/keep.txt", "changed")
    let part = ["--path", ".groups/group.one", "--migrate", "-m", "Shares", "--yes"]
    try sandbox.succeed(["restore", archive, "Notes"] + part)
    #expect(try sandbox.text("Groups/one/keep.txt") == "one")
    #expect(try sandbox.read("Groups/one/Library/Preferences/group.one.plist") == settings)
    #expect(try sandbox.text("Groups/two/keep.txt") == "changed" && sandbox.exists("Groups/two/moved.txt"))
  }

  private static let configuration = """
    layout: ios
    version-markers: [{defaults: dataSchemaVersion}]
    groups: {group.one: ../Groups/one, group.two: ../Groups/two}

    """

  /// `GroupTests` of transactions stops at every point.
  private static let steps: [(String, String, Bool)] = [
    ("exchange", "rewalked", false), ("exchange", "committed", false), ("exchange", "partly-exchanged", true),
    ("in-place", "moved:2", true),
  ]

  private func share(_ sandbox: Sandbox) throws {
    try sandbox.create()
    try sandbox.create("Other")
    try sandbox.write("Groups/one/keep.txt", "one")
    try sandbox.write("Groups/two/keep.txt", "two")
    try sandbox.write("Shares/0001_share.yaml", Self.migration)
    try sandbox.write("drydock.yaml", Self.configuration)
  }

  @Test("Killed before a commit or between two roots, all of them end old or new", arguments: steps)
  func killed(_ way: String, _ step: String, _ isNew: Bool) throws {
    let sandbox = self.sandbox.with(commit: way)
    try share(sandbox)
    let before = try (sandbox.tree(), sandbox.tree("Groups"))
    try sandbox.kill("migrate Notes -m Shares", at: step)

    // Another container that shares the groups does not build on half of it; before COMMIT nothing is changed in them.
    if !["tree-built", "rewalked"].contains(step) {
      let other = try sandbox.drydock("snapshot Other -r Backups")
      #expect(
        other.exitCode != 0
          && other.errors.contains("recover the container first (`drydock recover CONTAINER`)"), "\(other)")
      #expect(other.errors.contains(sandbox("Notes")))
    }
    try sandbox.succeed("recover Notes")
    if isNew {
      #expect(sandbox.exists("Groups/two/moved.txt") && !sandbox.exists("Notes/Documents/empty.txt"))
      #expect(sandbox.exists("Groups/one/Library/Preferences/group.one.plist"))
      try sandbox.succeed("rollback Notes")
    }
    let state = ".drydock-state"
    #expect(try sandbox.tree().without(state).differences(from: before.0, ignoringTimesOf: []) == [])
    #expect(try sandbox.tree("Groups").differences(from: before.1, ignoringTimesOf: [""]) == [])
    try sandbox.succeed("snapshot Other -r Backups")
  }

  @Test func `Killed between two roots and renamed then: once it is recovered, nobody is held up`() throws {
    try share(sandbox)
    try sandbox.kill("migrate Notes -m Shares", at: "partly-exchanged")
    try sandbox.shell(
      """
      state() { echo .drydock-$(printf %s "$1" | sha256sum | cut -c1-16); }
      mv $(state Notes) $(state Renamed); mv Notes Renamed
      """)
    try sandbox.drydock("recover Renamed").expect(output: "its change is now complete")
    for name in ["Other", "Renamed"] { try sandbox.succeed("snapshot", name, "-r", "Backups") }
    try sandbox.succeed("rollback Renamed")
  }
}
