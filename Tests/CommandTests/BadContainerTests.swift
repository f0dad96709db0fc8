import Foundation
import TestSupport
import Testing

@Suite("Bad containers and settings are refused, and nothing changes")
struct BadContainerTests {
  static let commands: [[String]] = [
    ["inspect"], ["explain", "Documents"], ["snapshot", "-r", "Backups"], ["migrate"],
    ["migrate", "--dry-run"],
    ["status"], ["baseline", "--to", "1"], ["rollback"], ["log"], ["recover"],
  ]

  static func words(_ command: [String], _ container: String) -> [String] {
    [command[0], container] + command.dropFirst()
  }

  @Test("No such container", arguments: commands)
  func missing(_ command: [String]) throws {
    try Sandbox.with { sandbox in
      try sandbox.expectRefusal(
        Self.words(command, "Nowhere"), exit: 1, ["Nowhere", "no such container", "check the path"],
        container: nil)
      #expect(try sandbox.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }

  @Test("A file instead of a directory", arguments: commands)
  func file(_ command: [String]) throws {
    try Sandbox.with { sandbox in
      try sandbox.write("plain.txt", "a file\n")
      try sandbox.expectRefusal(
        Self.words(command, "plain.txt"), exit: 1, ["plain.txt", "is a file", "a container is a directory"],
        container: nil)
      #expect(try sandbox.read("plain.txt") == Array("a file\n".utf8))
      #expect(try sandbox.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }

  @Test("Deeper than an archive can name: the rest is stored, and the path is named")
  func tooDeep() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 4)
      let deep = Array(repeating: "d", count: 600).joined(separator: "/")
      try sandbox.run(Tools.system("mkdir"), "-p", sandbox("Notes/Documents/" + deep))
      try sandbox.write("Notes/Documents/\(deep)/leaf", "the deepest\n")
      let taken = try sandbox.drydock("snapshot", "Notes", "-o", "A.tar.zst")
      let lost = "not stored, deeper than 510 directories, or a path beyond 65,500 bytes: Documents/d/d"
      #expect(taken.exitCode == 3 && taken.errors.contains(lost), "\(taken)")
      try sandbox.write("Notes/Documents/new.txt", "newer than the archive\n")
      try sandbox.succeed("restore", "A.tar.zst", "Notes")
      #expect(try sandbox.read("Notes/Documents/\(deep)/leaf") == Array("the deepest\n".utf8))
      #expect(!RawFiles.exists(Array(sandbox("Notes/Documents/new.txt").utf8)))
    }
  }

  @Test("A restore onto a file, and into a directory that is not there")
  func restoreTargets() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let archive = try sandbox.snapshot()
      try sandbox.write("plain.txt", "a file\n")
      try sandbox.expectRefusal(["restore", archive, "plain.txt"], exit: 1, ["plain.txt", "is a file"])
      try sandbox.expectRefusal(
        ["restore", archive, "no/where"], exit: 1, ["no/where", "create the parent first"])
      try sandbox.expectRefusal(["restore", archive, "no/where", "--dry-run"], exit: 1, ["no/where"])
    }
  }

  @Test("Another instance's and another app's archive")
  func otherInstance() throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Other", version: 4, "--uuid", "0B7E2C11-1111-4222-8333-944455556666")
      let archive = try sandbox.snapshot("Other")
      try sandbox.create(version: 4)
      for arguments in [["restore", archive, "Notes"], ["restore", archive, "Notes", "--dry-run"]] {
        try sandbox.expectRefusal(
          arguments, exit: 4,
          ["0B7E2C11-1111-4222-8333-944455556666", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90", "--from-other"])
      }
      try sandbox.succeed("restore", archive, "Notes", "--from-other")
    }
  }

  @Test("A repository inside the container, and the container inside the repository")
  func overlap() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      for repository in ["Notes", "Notes/Documents", "Notes/../Notes/tmp"] {
        try sandbox.expectRefusal(
          ["snapshot", "Notes", "-r", repository], exit: 1, ["inside its own container", "outside"])
      }
      try sandbox.run(Tools.system("ln"), "-s", sandbox("Notes/Documents"), sandbox("Link"))
      try sandbox.expectRefusal(["snapshot", "Notes", "-r", "Link"], exit: 1, ["inside its own container"])
      try sandbox.expectRefusal(
        ["snapshot", "Notes", "-o", "Notes/Documents/a.tar.zst"], exit: 1, ["inside its own container"])
      try sandbox.expectRefusal(
        ["snapshot", "Notes", "-r", "."], exit: 1, ["inside the repository", "elsewhere"])
    }
  }

  @Test("An unknown key, a wrong type, and a later version's key in drydock.yaml")
  func configuration() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.write("drydock.yaml", "app: com.example.notes\nlayuot: ios\n")
      for command in Self.commands {
        try sandbox.expectRefusal(
          Self.words(command, "Notes"), exit: 4, ["drydock.yaml:2:1", "`layuot`", "did you mean `layout`?"],
          container: nil)
      }
      for (text, words) in [
        ("databases: {notes: [/etc/passwd]}", ["drydock.yaml:1:21", "/etc/passwd"]),
        ("layout: windows", ["drydock.yaml:1:9", "windows", "ios"]),
        ("app: [1, 2]", ["drydock.yaml:1:6"]),
        ("app: a\napp: b", ["drydock.yaml:1:1", "`app`", "duplicate key"]),
        ("app: [", ["drydock.yaml:"]),
        ("version-markers: [{default: x}]", ["drydock.yaml:1:20", "`default`", "`defaults`"]),
      ] {
        try sandbox.write("drydock.yaml", text + "\n")
        try sandbox.expectRefusal(["inspect", "Notes"], exit: 4, words, container: nil)
      }
    }
  }

  @Test(
    "A malformed property list stops a migration, in words", arguments: ["garbage", "cut", "xml", "empty"])
  func propertyList(_ kind: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let path = "Notes/" + Sandbox.settings
      let bytes = try sandbox.read(path)
      var random = SeededRandom(seed: 4)
      switch kind {
      case "garbage": try sandbox.write(path, bytes: random.bytes(bytes.count))
      case "cut": try sandbox.write(path, bytes: Array(bytes.prefix(bytes.count - 40)))
      case "xml": try sandbox.write(path, "<?xml version=\"1.0\"?><plist><dict><key>a</key></plist>\n")
      default: try sandbox.write(path, bytes: [])
      }
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"]] {
        try sandbox.expectRefusal(arguments, exit: 1, [Sandbox.settings])
      }
      // It is backed up all the same: that is when a backup matters.
      let archive = try sandbox.snapshot()
      try sandbox.succeed("restore", archive, "Again")
      #expect(try sandbox.read("Again/" + Sandbox.settings) == sandbox.read(path))
      #expect(try sandbox.drydock("inspect", "Notes").output.contains("cannot be read"))
    }
  }

  @Test("One database in both of its places")
  func bothPlaces() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 2)
      try sandbox.run(
        Tools.system("cp"), "-a", sandbox("Notes/" + Sandbox.oldDatabase),
        sandbox("Notes/" + Sandbox.newDatabase))
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"]] {
        try sandbox.expectRefusal(
          arguments, exit: 1, [Sandbox.oldDatabase, Sandbox.newDatabase, "0003_move_database.yaml:"])
      }
      // A backup takes both, and so does what only looks.
      #expect(try sandbox.drydock("inspect", "Notes").succeeded)
      try sandbox.succeed("show", sandbox.snapshot(), Sandbox.newDatabase)
    }
  }

  @Test(
    "A container in use is refused with who uses it",
    arguments: ["migrate", "restore", "rollback", "baseline"])
  func inUse(_ command: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 3)
      let archive = try sandbox.snapshot()
      try sandbox.succeed("migrate", "Notes")
      try sandbox.write("Notes/Documents/later.txt", "later\n")
      let arguments =
        switch command {
        case "restore": ["restore", archive, "Notes"]
        case "rollback": ["rollback", "Notes"]
        case "baseline": ["baseline", "Notes", "--to", "2"]
        default: ["migrate", "Notes"]
        }
      if command == "migrate" { try sandbox.succeed("rollback", "Notes") }
      // The database alone, then any file at all, then a working directory.
      let app = try Command.spawn(sandbox.app, ["hold", sandbox("Notes")])
      try app.waitForLine("ready")
      try sandbox.expectRefusal(
        arguments, exit: 5, ["in use", "process \(app.process)", "NotesApp", Sandbox.newDatabase])
      app.closeInput()
      _ = try app.wait()

      let reader = try Command.spawn(
        "/bin/sh", ["-c", "exec 3<\"$0\"; echo ready; read x", sandbox("Notes/Documents/later.txt")])
      try reader.waitForLine("ready")
      try sandbox.expectRefusal(arguments, exit: 5, ["process \(reader.process)", "Documents/later.txt"])
      reader.closeInput()
      _ = try reader.wait()

      let visitor = try Command.spawn(
        "/bin/sh", ["-c", "echo ready; read x"], directory: sandbox("Notes/Documents"))
      try visitor.waitForLine("ready")
      try sandbox.expectRefusal(arguments, exit: 5, ["process \(visitor.process)", "working directory"])
      visitor.closeInput()
      _ = try visitor.wait()

      let result = try sandbox.drydock(arguments)
      #expect(result.succeeded, "nobody uses it any more: \(result)")
    }
  }

  @Test("A container given as a symbolic link is the container; the link stays a link")
  func symbolicLink() throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Real/Notes", version: 1)
      try sandbox.run(Tools.system("ln"), "-s", "Real/Notes", sandbox("Link"))
      let before = try sandbox.tree("Real/Notes")
      let archive = try sandbox.snapshot("Link")
      try sandbox.succeed("migrate", "Link", "--dry-run")
      try sandbox.tree("Real/Notes").expectSame(as: before, comparing: TreeListing.untouched)
      try sandbox.succeed("migrate", "Link")
      #expect(sandbox.exists("Real/Notes/" + Sandbox.newDatabase))
      try sandbox.succeed("rollback", "Link")
      try sandbox.tree("Real/Notes").expectSame(as: before)
      try sandbox.remove("Real/Notes/Documents/private.txt")
      try sandbox.succeed("restore", archive, "Link/")
      try sandbox.tree("Real/Notes").expectSame(as: before)
      #expect(try RawFiles.linkTarget(Array(sandbox("Link").utf8)) == Array("Real/Notes".utf8))
      // State is kept beside the container, not beside the link.
      #expect(try sandbox.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }
}
