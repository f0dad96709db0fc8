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
    try Lab.with { lab in
      try lab.expectRefusal(
        Self.words(command, "Nowhere"), exit: 1, ["Nowhere", "no such container", "check the path"],
        container: nil)
      #expect(try lab.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }

  @Test("A file instead of a directory", arguments: commands)
  func file(_ command: [String]) throws {
    try Lab.with { lab in
      try lab.write("plain.txt", "a file\n")
      try lab.expectRefusal(
        Self.words(command, "plain.txt"), exit: 1, ["plain.txt", "is a file", "a container is a directory"],
        container: nil)
      #expect(try lab.read("plain.txt") == Array("a file\n".utf8))
      #expect(try lab.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }

  @Test("Deeper than an archive can name: the rest is stored, and the path is named")
  func tooDeep() throws {
    try Lab.with { lab in
      try lab.create(version: 4)
      let deep = Array(repeating: "d", count: 600).joined(separator: "/")
      try lab.run(Tools.system("mkdir"), "-p", lab("Notes/Documents/" + deep))
      try lab.write("Notes/Documents/\(deep)/leaf", "the deepest\n")
      let taken = try lab.drydock("snapshot", "Notes", "-o", "A.tar.zst")
      let lost = "not stored, deeper than 510 directories, or a path beyond 65,500 bytes: Documents/d/d"
      #expect(taken.exitCode == 3 && taken.errors.contains(lost), "\(taken)")
      try lab.write("Notes/Documents/new.txt", "newer than the archive\n")
      try lab.succeed("restore", "A.tar.zst", "Notes")
      #expect(try lab.read("Notes/Documents/\(deep)/leaf") == Array("the deepest\n".utf8))
      #expect(!RawFiles.exists(Array(lab("Notes/Documents/new.txt").utf8)))
    }
  }

  @Test("A restore onto a file, and into a directory that is not there")
  func restoreTargets() throws {
    try Lab.with { lab in
      try lab.create()
      let archive = try lab.snapshot()
      try lab.write("plain.txt", "a file\n")
      try lab.expectRefusal(["restore", archive, "plain.txt"], exit: 1, ["plain.txt", "is a file"])
      try lab.expectRefusal(
        ["restore", archive, "no/where"], exit: 1, ["no/where", "create the parent first"])
      try lab.expectRefusal(["restore", archive, "no/where", "--dry-run"], exit: 1, ["no/where"])
    }
  }

  @Test("Another instance's and another app's archive")
  func otherInstance() throws {
    try Lab.with { lab in
      try lab.create("Other", version: 4, "--uuid", "0B7E2C11-1111-4222-8333-944455556666")
      let archive = try lab.snapshot("Other")
      try lab.create(version: 4)
      for arguments in [["restore", archive, "Notes"], ["restore", archive, "Notes", "--dry-run"]] {
        try lab.expectRefusal(
          arguments, exit: 4,
          ["0B7E2C11-1111-4222-8333-944455556666", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90", "--from-other"])
      }
      try lab.succeed("restore", archive, "Notes", "--from-other")
    }
  }

  @Test("A repository inside the container, and the container inside the repository")
  func overlap() throws {
    try Lab.with { lab in
      try lab.create()
      for repository in ["Notes", "Notes/Documents", "Notes/../Notes/tmp"] {
        try lab.expectRefusal(
          ["snapshot", "Notes", "-r", repository], exit: 1, ["inside its own container", "outside"])
      }
      try lab.run(Tools.system("ln"), "-s", lab("Notes/Documents"), lab("Link"))
      try lab.expectRefusal(["snapshot", "Notes", "-r", "Link"], exit: 1, ["inside its own container"])
      try lab.expectRefusal(
        ["snapshot", "Notes", "-o", "Notes/Documents/a.tar.zst"], exit: 1, ["inside its own container"])
      try lab.expectRefusal(
        ["snapshot", "Notes", "-r", "."], exit: 1, ["inside the repository", "elsewhere"])
    }
  }

  @Test("An unknown key, a wrong type, and a later version's key in drydock.yaml")
  func configuration() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.write("drydock.yaml", "app: com.example.notes\nlayuot: ios\n")
      for command in Self.commands {
        try lab.expectRefusal(
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
        try lab.write("drydock.yaml", text + "\n")
        try lab.expectRefusal(["inspect", "Notes"], exit: 4, words, container: nil)
      }
    }
  }

  @Test(
    "A malformed property list stops a migration, in words", arguments: ["garbage", "cut", "xml", "empty"])
  func propertyList(_ kind: String) throws {
    try Lab.with { lab in
      try lab.create()
      let path = "Notes/" + Lab.settings
      let bytes = try lab.read(path)
      var random = SeededRandom(seed: 4)
      switch kind {
      case "garbage": try lab.write(path, bytes: random.bytes(bytes.count))
      case "cut": try lab.write(path, bytes: Array(bytes.prefix(bytes.count - 40)))
      case "xml": try lab.write(path, "<?xml version=\"1.0\"?><plist><dict><key>a</key></plist>\n")
      default: try lab.write(path, bytes: [])
      }
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"]] {
        try lab.expectRefusal(arguments, exit: 1, [Lab.settings])
      }
      // It is backed up all the same: that is when a backup matters.
      let archive = try lab.snapshot()
      try lab.succeed("restore", archive, "Again")
      #expect(try lab.read("Again/" + Lab.settings) == lab.read(path))
      #expect(try lab.drydock("inspect", "Notes").output.contains("cannot be read"))
    }
  }

  @Test("One database in both of its places")
  func bothPlaces() throws {
    try Lab.with { lab in
      try lab.create(version: 2)
      try lab.run(
        Tools.system("cp"), "-a", lab("Notes/" + Lab.oldDatabase), lab("Notes/" + Lab.newDatabase))
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"]] {
        try lab.expectRefusal(
          arguments, exit: 1, [Lab.oldDatabase, Lab.newDatabase, "0003_move_database.yaml:"])
      }
      // A backup takes both, and so does what only looks.
      #expect(try lab.drydock("inspect", "Notes").succeeded)
      try lab.succeed("show", lab.snapshot(), Lab.newDatabase)
    }
  }

  @Test(
    "A container in use is refused with who uses it",
    arguments: ["migrate", "restore", "rollback", "baseline"])
  func inUse(_ command: String) throws {
    try Lab.with { lab in
      try lab.create(version: 3)
      let archive = try lab.snapshot()
      try lab.succeed("migrate", "Notes")
      try lab.write("Notes/Documents/later.txt", "later\n")
      let arguments =
        switch command {
        case "restore": ["restore", archive, "Notes"]
        case "rollback": ["rollback", "Notes"]
        case "baseline": ["baseline", "Notes", "--to", "2"]
        default: ["migrate", "Notes"]
        }
      if command == "migrate" { try lab.succeed("rollback", "Notes") }
      // The database alone, then any file at all, then a working directory.
      let app = try Command.spawn(lab.app, ["hold", lab("Notes")])
      try app.waitForLine("ready")
      try lab.expectRefusal(
        arguments, exit: 5, ["in use", "process \(app.process)", "NotesApp", Lab.newDatabase])
      app.closeInput()
      _ = try app.wait()

      let reader = try Command.spawn(
        "/bin/sh", ["-c", "exec 3<\"$0\"; echo ready; read x", lab("Notes/Documents/later.txt")])
      try reader.waitForLine("ready")
      try lab.expectRefusal(arguments, exit: 5, ["process \(reader.process)", "Documents/later.txt"])
      reader.closeInput()
      _ = try reader.wait()

      let visitor = try Command.spawn(
        "/bin/sh", ["-c", "echo ready; read x"], directory: lab("Notes/Documents"))
      try visitor.waitForLine("ready")
      try lab.expectRefusal(arguments, exit: 5, ["process \(visitor.process)", "working directory"])
      visitor.closeInput()
      _ = try visitor.wait()

      let result = try lab.drydock(arguments)
      #expect(result.succeeded, "nobody uses it any more: \(result)")
    }
  }

  @Test("A container given as a symbolic link is the container; the link stays a link")
  func symbolicLink() throws {
    try Lab.with { lab in
      try lab.create("Real/Notes", version: 1)
      try lab.run(Tools.system("ln"), "-s", "Real/Notes", lab("Link"))
      let before = try lab.tree("Real/Notes")
      let archive = try lab.snapshot("Link")
      try lab.succeed("migrate", "Link", "--dry-run")
      try lab.tree("Real/Notes").expectSame(as: before, comparing: TreeListing.untouched)
      try lab.succeed("migrate", "Link")
      #expect(lab.exists("Real/Notes/" + Lab.newDatabase))
      try lab.succeed("rollback", "Link")
      try lab.tree("Real/Notes").expectSame(as: before)
      try lab.remove("Real/Notes/Documents/private.txt")
      try lab.succeed("restore", archive, "Link/")
      try lab.tree("Real/Notes").expectSame(as: before)
      #expect(try RawFiles.linkTarget(Array(lab("Link").utf8)) == Array("Real/Notes".utf8))
      // State is kept beside the container, not beside the link.
      #expect(try lab.names().filter { $0.hasPrefix(".drydock-") } == [])
    }
  }
}
