import Foundation
import TestSupport
import Testing

/// What commands say about containers that they refuse is in the session `bad-containers.txt`.
@Suite struct BadContainerTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// `InUseTests` has other uses: any file, a directory, a mapping.
  @Test func `A container in use is refused with who uses it`() throws {
    try sandbox.create(version: 3)
    let archive = try sandbox.snapshot()
    try sandbox.succeed("migrate Notes --to 5")
    try sandbox.write("Notes/Documents/later.txt", "later\n")
    let commands = [
      ["migrate", "Notes"], ["rollback", "Notes"], ["restore", archive, "Notes"],
      ["baseline", "Notes", "--to", "2"],
    ]
    let app = try sandbox.hold()
    try sandbox.expectUnchanged {
      for command in commands {
        try sandbox.expectError(
          command, exit: 5, ["in use", "process \(app.process)", "NotesApp", Sandbox.newDatabase])
      }
    }
    try app.finish()
    for command in commands {
      try sandbox.succeed(command)
    }
  }

  @Test func `A container given as a symbolic link is the container; the link stays a link`() throws {
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

  @Test func `drydock's own working directory is no use of the container`() throws {
    try sandbox.create()
    func drydock(_ arguments: String..., in directory: String) throws -> CommandResult {
      try Command.run(
        sandbox.program, arguments, environment: sandbox.environment, directory: sandbox(directory))
    }
    try drydock("migrate", ".", "--each", "--to", "2", "-m", "../Migrations", in: "Notes").expect()
    #expect(try sandbox.succeed("status Notes").hasPrefix("version 2 of 6"))
    try drydock("rollback", "..", "--to", "0", "-m", "../../Migrations", in: "Notes/Documents").expect()
    // A shell would be left in a directory that is gone.
    let shell = try Command.spawn("/bin/sh", ["-c", "echo ready; read x"], directory: sandbox("Notes"))
    try shell.waitForLine("ready")
    try sandbox.expectRefusal(
      "migrate Notes", exit: 5, ["process \(shell.process)", "leave that directory and run it again"])
    try shell.finish()
  }
}
