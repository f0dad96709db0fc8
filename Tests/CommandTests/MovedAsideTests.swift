import Foundation
import TestSupport
import Testing

/// A commit was killed, and then the container, or a group, was moved away: the state beside it may hold the only copy of
/// what was replaced.
@Suite("Interrupted, then moved aside")
struct MovedAsideTests {
  private static let configuration = """
    layout: ios
    version-markers: [{defaults: dataSchemaVersion}]
    groups: {group.one: ../Groups/one}

    """
  private static let migration = """
    steps:
      - files.delete: {path: [Documents/only.txt], destructive: a test}

    """
  private static let migrationOfBoth =
    migration + """
        - files.write: {path: .groups/group.one/made.txt, text: made}

      """

  private func prepare(_ lab: Lab, _ migration: String) throws {
    try lab.create()
    try lab.write("Notes/Documents/only.txt", "the only copy")
    try lab.write("Groups/one/keep.txt", "keep")
    try lab.write("Drop/0001_drop.yaml", migration)
    try lab.write("drydock.yaml", Self.configuration)
  }

  private func kill(_ lab: Lab, _ step: String) throws {
    let killed = try lab.drydock(["migrate", "Notes", "-m", "Drop"], environment: ["DRYDOCK_KILL_AT": step])
    #expect(killed.signal == SIGKILL, "\(killed)")
  }

  @Test(
    "A container that is not there is put back first",
    arguments: ["committed", "exchanged", "carried", "undo-kept"])
  func container(_ step: String) throws {
    try Lab.with { lab in
      try prepare(lab, Self.migration)
      try lab.remove("drydock.yaml")
      try lab.write("drydock.yaml", Self.configuration.replacing(/groups.*\n/, with: ""))
      let archive = try lab.snapshot()
      try kill(lab, step)
      try lab.run(Tools.system("mv"), lab("Notes"), lab("Aside"))
      let state = try #require(try lab.names().first { $0.hasPrefix(".drydock-") })
      let before = try lab.tree(state)
      for command in [["recover", "Notes"], ["restore", archive, "Notes"]] {
        let refused = try lab.drydock(command)
        lab.expect(
          refused, refusedWith: 5, [lab("Notes"), "interrupted", lab(state) + "/stage/"], #_sourceLocation)
      }
      try lab.tree(state).expectSame(as: before, comparing: TreeListing.copied)
      #expect(!lab.exists("Notes"))
      try lab.run(Tools.system("mv"), lab("Aside"), lab("Notes"))
      try lab.succeed("recover", "Notes")
      if step != "committed" { try lab.succeed("rollback", "Notes") }
      #expect(try lab.read("Notes/Documents/only.txt") == Array("the only copy".utf8))
    }
  }

  @Test("A group that is not there, or is not named", arguments: ["partly-exchanged", "exchanged"])
  func group(_ step: String) throws {
    try Lab.with { lab in
      try prepare(lab, Self.migrationOfBoth)
      try kill(lab, step)
      let state = try #require(try lab.names().first { $0.hasPrefix(".drydock-") })
      let before = try (lab.tree(state), lab.tree("Notes"), lab.tree("Groups/one"))
      func expectRefusal() throws {
        let refused = try lab.drydock("recover", "Notes")
        lab.expect(
          refused, refusedWith: 5, [lab("Groups/one"), "group.one", lab(state) + "/stage/"], #_sourceLocation)
        try lab.tree(state).expectSame(as: before.0)
        try lab.tree("Notes").expectSame(as: before.1)
      }
      try lab.run(Tools.system("mv"), lab("Groups/one"), lab("Groups/aside"))
      try expectRefusal()
      try lab.run(Tools.system("mv"), lab("Groups/aside"), lab("Groups/one"))
      try lab.write("drydock.yaml", Self.configuration.replacing(/groups.*\n/, with: ""))
      try expectRefusal()
      try lab.tree("Groups/one").expectSame(as: before.2)
      try lab.write("drydock.yaml", Self.configuration)
      try lab.succeed("recover", "Notes")
      #expect(lab.exists("Groups/one/made.txt") && !lab.exists("Notes/Documents/only.txt"))
      try lab.succeed("rollback", "Notes")
      #expect(try lab.read("Notes/Documents/only.txt") == Array("the only copy".utf8))
    }
  }
}
