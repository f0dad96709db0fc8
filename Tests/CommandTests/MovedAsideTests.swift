import Foundation
import TestSupport
import Testing

/// A commit was killed, and then the container, or a group, was moved away: the state beside it may hold the only copy of
/// what was replaced.
@Suite struct MovedAsideTests {
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

  private func prepare(_ sandbox: Sandbox, _ migration: String) throws {
    try sandbox.create()
    try sandbox.write("Notes/Documents/only.txt", "the only copy")
    try sandbox.write("Groups/one/keep.txt", "keep")
    try sandbox.write("Drop/0001_drop.yaml", migration)
    try sandbox.write("drydock.yaml", Self.configuration)
  }

  private func kill(_ sandbox: Sandbox, _ step: String) throws {
    try sandbox.kill("migrate Notes -m Drop", at: step)
  }

  @Test(arguments: ["committed", "exchanged", "merged", "undo-kept"])
  func `A container that is not there is put back first`(_ step: String) throws {
    try Sandbox.with { sandbox in
      try prepare(sandbox, Self.migration)
      try sandbox.remove("drydock.yaml")
      try sandbox.write("drydock.yaml", Self.configuration.replacing(/groups.*\n/, with: ""))
      let archive = try sandbox.snapshot()
      try kill(sandbox, step)
      try sandbox.run(Tools.system("mv"), sandbox("Notes"), sandbox("Aside"))
      let state = try sandbox.state()
      let before = try sandbox.tree(state)
      for command in [["recover", "Notes"], ["restore", archive, "Notes"]] {
        try sandbox.drydock(command).expectError(
          exit: 5, [sandbox("Notes"), "interrupted", sandbox(state) + "/stage/"])
      }
      try sandbox.tree(state).expectSame(as: before, comparing: TreeListing.copied)
      #expect(!sandbox.exists("Notes"))
      try sandbox.run(Tools.system("mv"), sandbox("Aside"), sandbox("Notes"))
      try sandbox.succeed("recover Notes")
      if step != "committed" { try sandbox.succeed("rollback Notes") }
      #expect(try sandbox.text("Notes/Documents/only.txt") == "the only copy")
    }
  }

  @Test(arguments: ["partly-exchanged", "exchanged"])
  func `A group that is not there, or is not named`(_ step: String) throws {
    try Sandbox.with { sandbox in
      try prepare(sandbox, Self.migrationOfBoth)
      try kill(sandbox, step)
      let state = try sandbox.state()
      let before = try (sandbox.tree(state), sandbox.tree("Notes"), sandbox.tree("Groups/one"))
      func expectRefusal() throws {
        try sandbox.drydock("recover Notes").expectError(
          exit: 5, [sandbox("Groups/one"), "group.one", sandbox(state) + "/stage/"])
        try sandbox.tree(state).expectSame(as: before.0)
        try sandbox.tree("Notes").expectSame(as: before.1)
      }
      try sandbox.run(Tools.system("mv"), sandbox("Groups/one"), sandbox("Groups/aside"))
      try expectRefusal()
      try sandbox.run(Tools.system("mv"), sandbox("Groups/aside"), sandbox("Groups/one"))
      try sandbox.write("drydock.yaml", Self.configuration.replacing(/groups.*\n/, with: ""))
      try expectRefusal()
      try sandbox.tree("Groups/one").expectSame(as: before.2)
      try sandbox.write("drydock.yaml", Self.configuration)
      try sandbox.succeed("recover Notes")
      #expect(sandbox.exists("Groups/one/made.txt") && !sandbox.exists("Notes/Documents/only.txt"))
      try sandbox.succeed("rollback Notes")
      #expect(try sandbox.text("Notes/Documents/only.txt") == "the only copy")
    }
  }
}
