import Foundation
import TestSupport
import Testing

/// What commands say about containers that they refuse is in the session `bad-containers.txt`.
@Suite("Containers that are deep, in use, or links")
struct BadContainerTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox() }

  @Test("Deeper than an archive can name: the rest is stored, and the path is named")
  func tooDeep() throws {
    try sandbox.create(version: 4)
    let deep = Array(repeating: "d", count: 600).joined(separator: "/")
    try sandbox.run(Tools.system("mkdir"), "-p", sandbox("Notes/Documents/" + deep))
    try sandbox.write("Notes/Documents/\(deep)/leaf", "the deepest\n")
    let taken = try sandbox.drydock("snapshot Notes -o A.tar.zst")
    let lost = "not stored, deeper than 510 directories, or a path beyond 65,500 bytes: Documents/d/d"
    #expect(taken.exitCode == 3 && taken.errors.contains(lost), "\(taken)")
    try sandbox.write("Notes/Documents/new.txt", "newer than the archive\n")
    try sandbox.succeed("restore A.tar.zst Notes")
    #expect(try sandbox.text("Notes/Documents/\(deep)/leaf") == "the deepest\n")
    #expect(!RawFiles.exists(Array(sandbox("Notes/Documents/new.txt").utf8)))
  }

  @Test("A container in use is refused with who uses it: its database, any file, or a directory")
  func inUse() throws {
    try sandbox.create(version: 3)
    let archive = try sandbox.snapshot()
    try sandbox.succeed("migrate Notes --to 5")
    try sandbox.write("Notes/Documents/later.txt", "later\n")
    let commands = [
      ["migrate", "Notes"], ["rollback", "Notes"], ["restore", archive, "Notes"],
      ["baseline", "Notes", "--to", "2"],
    ]
    func expectInUse(by user: RunningCommand, _ words: [String]) throws {
      try user.waitForLine("ready")
      try sandbox.expectUnchanged {
        for command in commands {
          try sandbox.expectError(command, exit: 5, ["in use", "process \(user.process)"] + words)
        }
      }
      try user.finish()
    }
    try expectInUse(
      by: Command.spawn(sandbox.app, ["hold", sandbox("Notes")]), ["NotesApp", Sandbox.newDatabase])
    let file = sandbox("Notes/Documents/later.txt")
    try expectInUse(
      by: Command.spawn("/bin/sh", ["-c", "exec 3<\"$0\"; echo ready; read x", file]),
      ["Documents/later.txt"])
    try expectInUse(
      by: Command.spawn("/bin/sh", ["-c", "echo ready; read x"], directory: sandbox("Notes/Documents")),
      ["working directory"])
    for command in commands {
      try sandbox.succeed(command)
    }
  }

  @Test("A container given as a symbolic link is the container; the link stays a link")
  func symbolicLink() throws {
    try sandbox.create("Real/Notes", version: 1)
    try FileManager.default.createSymbolicLink(atPath: sandbox("Link"), withDestinationPath: "Real/Notes")
    let before = try sandbox.tree("Real/Notes")
    let archive = try sandbox.snapshot("Link")
    try sandbox.succeed("migrate Link --dry-run")
    try sandbox.tree("Real/Notes").expectSame(as: before, comparing: TreeListing.untouched)
    try sandbox.succeed("migrate Link")
    #expect(sandbox.exists("Real/Notes/" + Sandbox.newDatabase))
    try sandbox.succeed("rollback Link")
    try sandbox.tree("Real/Notes").expectSame(as: before)
    try sandbox.remove("Real/Notes/Documents/private.txt")
    try sandbox.succeed("restore", archive, "Link/")
    try sandbox.tree("Real/Notes").expectSame(as: before)
    #expect(try RawFiles.linkTarget(Array(sandbox("Link").utf8)) == Array("Real/Notes".utf8))
    // State is kept beside the container, not beside the link.
    #expect(try sandbox.names().filter { $0.hasPrefix(".drydock-") } == [])
  }
}
