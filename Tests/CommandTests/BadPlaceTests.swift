import Foundation
import TestSupport
import Testing

@Suite("Full, read-only and mounted places", .serialized)
struct BadPlaceTests {
  // MARK: No space left

  /// A tmpfs in the sandbox with a container, all but filled.
  ///
  /// - Parameter free: kilobytes that are left.
  private func fullDisk(_ sandbox: Sandbox, free: Int) throws -> Namespace {
    try sandbox.run(Tools.system("mkdir"), sandbox("Disk"))
    return try Namespace(
      sandbox,
      """
      mount -t tmpfs -o size=8m none "$0/Disk"
      cp -a "$0/Notes" "$0/Disk/Notes"
      if [ -e "$0"/.drydock-* ]; then cp -a "$0"/.drydock-* "$0/Disk/"; fi
      left=$(df -k --output=avail "$0/Disk" | tail -1)
      head -c $(( (left - \(free)) * 1024 )) /dev/zero > "$0/Disk/filler"
      """)
  }

  @Test("No space for a migration", arguments: [0, 16, 60])
  func fullMigrate(_ free: Int) throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes", version: 0, "--bulk-mb", "1")
      let disk = try fullDisk(sandbox, free: free)
      try expectFull(sandbox, disk, disk.tree("Disk/Notes"), ["migrate", "Disk/Notes"])
    }
  }

  @Test("No space for a restore", arguments: [0, 16, 100])
  func fullRestore(_ free: Int) throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes", version: 4, photos: 8)
      let archive = try sandbox.snapshot()
      try sandbox.remove("Notes/Documents/Photos")
      try sandbox.write("Notes/Documents/new.txt", "new\n")
      let disk = try fullDisk(sandbox, free: free)
      // A container that is not there yet does not appear in part.
      let result = try disk.drydock("restore", archive, "Disk/New")
      sandbox.expect(result, refusedWith: 1, ["free some space"], #_sourceLocation)
      #expect(!RawFiles.exists(Array(disk("Disk/New").utf8)))
      try expectFull(sandbox, disk, disk.tree("Disk/Notes"), ["restore", archive, "Disk/Notes"])
    }
  }

  @Test("No space for a rollback")
  func fullRollback() throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes", version: 0)
      try sandbox.succeed("migrate", "Notes")
      try sandbox.run(sandbox.app, "touch-settings", sandbox("Notes"), "lastSearch", "dock")
      let disk = try fullDisk(sandbox, free: 0)
      try expectFull(sandbox, disk, disk.tree("Disk/Notes"), ["rollback", "Disk/Notes"])
    }
  }

  /// It fails in words, the container stays as it is, and with space the same command does its work.
  private func expectFull(
    _ sandbox: Sandbox, _ disk: Namespace, _ before: TreeListing, _ arguments: [String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try disk.run(sandbox.program, arguments)
    sandbox.expect(result, refusedWith: 1, ["free some space"], sourceLocation)
    let aspects = TreeListing.untouched.subtracting([.changed])
    let after = try disk.tree("Disk/Notes").differences(from: before, comparing: aspects)
    #expect(after == [], "\(result)", sourceLocation: sourceLocation)
    let inspected = try disk.drydock("inspect", "Disk/Notes")
    #expect(
      inspected.succeeded, "what only looks needs no space there: \(inspected)",
      sourceLocation: sourceLocation)

    try RawFiles.remove(Array(disk("Disk/filler").utf8))
    let again = try disk.run(sandbox.program, arguments)
    #expect(again.succeeded, "\(again)", sourceLocation: sourceLocation)
    #expect(try !disk.tree("Disk/Notes").differences(from: before).isEmpty, sourceLocation: sourceLocation)
  }

  @Test("No space for an archive, at once and in the middle", arguments: [0, 64, 300])
  func fullSnapshot(_ free: Int) throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes", version: 2, photos: 8)
      let before = try sandbox.tree()
      let disk = try fullDisk(sandbox, free: free)
      try RawFiles.remove(Array(disk("Disk/Notes").utf8))
      let taken = try disk.run(
        "/bin/sh", ["-c", "cat /dev/zero > Disk/more; truncate -s -\(free)k Disk/more; df -k Disk"])
      #expect(taken.succeeded, "\(taken)")
      for place in [["-r", "Disk"], ["-o", "Disk/a.tar.zst"]] {
        let result = try disk.run(sandbox.program, ["snapshot", "Notes"] + place)
        sandbox.expect(result, refusedWith: 1, ["No space left"], #_sourceLocation)
        let names = try RawFiles.names(in: Array(disk("Disk").utf8)).map { readable($0) }
        #expect(names == ["filler", "more"], "neither an archive nor a part of one is left")
      }
      try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
      try RawFiles.remove(Array(disk("Disk/filler").utf8))
      #expect(try disk.drydock("snapshot", "Notes", "-r", "Disk").succeeded)
    }
  }

  // MARK: Read-only

  static let changes: [[String]] = [
    ["migrate", "Place/Notes"], ["restore", "{A}", "Place/Notes"], ["baseline", "Place/Notes", "--to", "1"],
  ]

  @Test("A read-only file system: refused, nothing changed; what only reads works", arguments: changes)
  func readOnly(_ command: [String]) throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      let space = try Namespace(
        sandbox, "mount --bind \"$0/Place\" \"$0/Place\"; mount -o remount,bind,ro \"$0/Place\"")
      let before = try space.tree("Place")
      let result = try space.run(sandbox.program, command.map { $0 == "{A}" ? archive : $0 })
      sandbox.expect(result, refusedWith: 1, ["Place", "cannot be written"], #_sourceLocation)
      for reader in [
        ["inspect"], ["status"], ["migrate", "--dry-run"], ["snapshot", "-r", "Backups"], ["log"],
      ] {
        let result = try space.run(sandbox.program, [reader[0], "Place/Notes"] + reader.dropFirst())
        #expect(result.succeeded, "\(reader) \(result)")
      }
      try space.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
    }
  }

  /// Lets another user enter the sandbox, and read its migrations and the archive.
  private func openToOthers(_ sandbox: Sandbox, _ archive: String) throws {
    for path in ["", "Migrations", "Backups"] {
      try sandbox.run(Tools.system("chmod"), "0755", sandbox(path))
    }
    try sandbox.run(Tools.system("chmod"), "0644", archive)
    try sandbox.run(Tools.system("chmod"), "0777", sandbox("tmp"))
  }

  @Test("Another user's directory around the container: changed in place")
  func otherUser() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      // The sandbox may be entered and the container is the user's own; the directory around it is not.
      try openToOthers(sandbox, archive)
      let user = ["--reuid=65534", "--regid=65534", "--clear-groups"]
      // Where only the owner of a name may move it, it is no use that the directory can be written.
      for mode in ["0755", "1777"] {
        try sandbox.run(Tools.system("chmod"), mode, sandbox("Place"))
        try sandbox.run(Tools.system("chown"), "-Rh", "65534:65534", sandbox("Place/Notes"))
        if mode == "1777" { try sandbox.run(Tools.system("chown"), "0", sandbox("Place/Notes")) }
        if mode == "1777" { try sandbox.run(Tools.system("chmod"), "0777", sandbox("Place/Notes")) }
        try expectInPlace(
          sandbox, archive, mode == "0755" ? "cannot be written" : "move the container",
          readers: [["snapshot", "Place/Notes", "-o", "tmp/\(mode).tar.zst"]], restores: mode == "0755",
          tree: { try sandbox.tree("Place/Notes") }
        ) { arguments in
          try Command.run(
            Tools.system("setpriv"), user + [sandbox.program] + arguments, environment: sandbox.environment,
            directory: sandbox.directory.path)
        }
      }
    }
  }

  @Test("A neighbour that belongs to another user, and may not be linked: changed in place")
  func protectedHardLinks() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    let setting = try String(contentsOfFile: "/proc/sys/fs/protected_hardlinks", encoding: .utf8)
    try #require(setting == "1\n", "the system's usual setting")
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      for path in ["", "Migrations"] { try sandbox.run(Tools.system("chmod"), "0755", sandbox(path)) }
      try sandbox.run(Tools.system("chmod"), "0777", sandbox("tmp"))
      try sandbox.run(Tools.system("chown"), "-Rh", "65534:65534", sandbox("Place"))
      try sandbox.write("Place/Notes/Documents/foreign.txt", "of another user\n")
      try expectInPlace(
        sandbox, archive, "this user may not link Documents/foreign.txt", readers: [], restores: false,
        tree: { try sandbox.tree("Place/Notes") }
      ) { arguments in
        try Command.run(
          Tools.system("setpriv"),
          ["--reuid=65534", "--regid=65534", "--clear-groups", sandbox.program] + arguments,
          environment: sandbox.environment, directory: sandbox.directory.path)
      }
    }
  }

  // MARK: Other file systems

  /// A file system in a file, mounted at `Disk` in a namespace of its own, with a container.
  private func disk(_ sandbox: Sandbox, _ make: String, megabytes: Int, _ setup: String) throws -> Namespace {
    try #require(getuid() == 0, "run as root, as CI does: only root can mount a file system")
    return try Namespace(
      sandbox,
      """
      truncate -s \(megabytes)m "$0/disk.img"
      \(make) "$0/disk.img" > "$0/tmp/made"
      rm "$0/tmp/made"
      mkdir "$0/Disk"
      mount -o loop "$0/disk.img" "$0/Disk"
      mkdir "$0/Disk/Place"
      cp -a "$0/Place/Notes" "$0/Disk/Place/Notes"
      cd "$0/Disk/Place"
      \(setup)
      """)
  }

  /// The flags and projects of all directories and files, as `lsattr` shows them.
  private func flags(_ space: Namespace, _ path: String) throws -> String {
    let script =
      "cd \"$0\" && find . -name .drydock-state -prune -o ! -type l -exec lsattr -pd {} + | sort -k 3"
    let result = try space.run("/bin/sh", ["-c", script, path])
    #expect(result.succeeded, "\(result)")
    return result.output
  }

  @Test("btrfs: a subvolume inside is changed in place; flags of directories stay")
  func subvolume() throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      let space = try disk(
        sandbox, "mkfs.btrfs -q", megabytes: 128,
        """
        chattr +C Notes/Library
        chattr +c Notes/Documents
        chattr +m Notes/Documents/Photos
        """)
      let (before, tree) = (try flags(space, "Disk/Place/Notes"), try space.tree("Disk/Place/Notes"))
      let migrated = try space.drydock("migrate", "Disk/Place/Notes")
      #expect(migrated.succeeded && !migrated.errors.contains("in place"), "\(migrated)")
      let after = try flags(space, "Disk/Place/Notes")
      for directory in ["Library", "Documents", "Documents/Photos"] {
        let line = try #require(before.split(separator: "\n").first { $0.hasSuffix(" ./\(directory)") })
        #expect(after.contains(line + "\n"), "\(after)")
      }
      let rolledBack = try space.drydock("rollback", "Disk/Place/Notes")
      #expect(rolledBack.succeeded, "\(rolledBack)")
      let back = try flags(space, "Disk/Place/Notes")
      #expect(back == before)
      try space.tree("Disk/Place/Notes").expectSame(as: tree)

      let made = try space.run(
        "/bin/sh",
        ["-c", "cd Disk/Place/Notes/Documents && btrfs subvolume create Sub > ../../made && date > Sub/file"])
      #expect(made.succeeded, "\(made)")
      try expectInPlace(
        sandbox, archive, "Documents/Sub is in another subvolume", place: "Disk/Place/Notes", readers: [],
        restores: false, tree: { try space.tree("Disk/Place/Notes") }
      ) { try space.run(sandbox.program, $0) }
    }
  }

  @Test("XFS: what counts for a project counts for it afterwards, also what is new")
  func projects() throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      let space = try disk(
        sandbox, "mkfs.xfs -q", megabytes: 320,
        """
        cp -a Notes Other
        find Notes Other ! -type l -exec chattr -p 77 {} +
        find Notes Other -type d -exec chattr +P {} +
        """)
      let before = try flags(space, "Disk/Place/Notes")
      for number in 1...2 {
        let migrated = try space.drydock("migrate", "Disk/Place/Notes")
        #expect(migrated.succeeded && !migrated.errors.contains("in place"), "\(migrated)")
        let lines = try flags(space, "Disk/Place/Notes").split(separator: "\n")
        #expect(lines.count > 20 && lines.allSatisfy { $0.drop { $0 == " " }.hasPrefix("77 ") }, "\(lines)")
        let rolledBack = try space.drydock("rollback", "Disk/Place/Notes")
        #expect(rolledBack.succeeded, "\(rolledBack)")
        let back = try flags(space, "Disk/Place/Notes")
        #expect(back == before)
        // The second time the state beside it begins in a directory that counts for another project.
        if number == 1 {
          let moved = try space.run(
            "/bin/sh", ["-c", "cd Disk/Place && rm -rf .drydock-* && chattr -p 77 . && chattr +P ."])
          #expect(moved.succeeded, "\(moved)")
        }
      }
      let other = try space.run("/bin/sh", ["-c", "cd Disk/Place && chattr -p 5 ."])
      #expect(other.succeeded, "\(other)")
      try expectInPlace(
        sandbox, archive, "counts for another project", place: "Disk/Place/Other", readers: [],
        restores: false,
        tree: { try space.tree("Disk/Place/Other") }
      ) { try space.run(sandbox.program, $0) }
    }
  }

  @Test("Who may only read a container, as another user: a snapshot of its databases, nothing changed")
  func readOnlyDatabases() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      try openToOthers(sandbox, archive)
      try sandbox.run(Tools.system("chmod"), "-R", "a+rX,a-w", sandbox("Place/Notes"))
      let user = ["--reuid=65534", "--regid=65534", "--clear-groups"]
      func snapshot(_ name: String) throws -> CommandResult {
        try Command.run(
          Tools.system("setpriv"), user + [sandbox.program, "snapshot", "Place/Notes", "-o", name],
          environment: sandbox.environment, directory: sandbox.directory.path)
      }
      var before = try sandbox.tree("Place")
      let idle = try snapshot("tmp/idle.tar.zst")
      #expect(idle.succeeded, "\(idle)")
      try sandbox.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
      let app = try Command.spawn(Tools.notesApp(), ["hold", sandbox("Place/Notes")])
      try app.waitForLine("ready")
      before = try sandbox.tree("Place")
      let used = try snapshot("tmp/used.tar.zst")
      #expect(used.succeeded, "\(used)")
      try sandbox.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
      app.closeInput()
      _ = try app.wait()
    }
  }

  // MARK: Mount points

  @Test("A container that is a mount point is changed in place", arguments: ["bind", "tmpfs", "inside"])
  func mountPoint(_ kind: String) throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      if kind != "inside" {
        try sandbox.run(Tools.system("mv"), sandbox("Place/Notes"), sandbox("Real"))
        try sandbox.run(Tools.system("mkdir"), sandbox("Place/Notes"))
      }
      try sandbox.run(
        Tools.system("mkdir"), sandbox(kind == "inside" ? "Place/Notes/Documents/Mounted" : "unused"))
      let mounts = [
        "bind": "mount --bind \"$0/Real\" \"$0/Place/Notes\"",
        "tmpfs": "mount -t tmpfs none \"$0/Place/Notes\"; cp -a \"$0/Real/.\" \"$0/Place/Notes/\"",
        "inside":
          "mount -t tmpfs none \"$0/Place/Notes/Documents/Mounted\"; echo mail > \"$0/Place/Notes/Documents/Mounted/mail\"",
      ]
      let space = try Namespace(sandbox, mounts[kind] ?? "")
      try expectInPlace(
        sandbox, archive, "mounted", readers: [["snapshot", "Place/Notes", "-r", "Backups"]],
        tree: { try space.tree("Place/Notes") }
      ) { try space.run(sandbox.program, $0) }
      if kind == "inside" {
        #expect(try RawFiles.read(Array(space("Place/Notes/Documents/Mounted/mail").utf8)).count == 5)
      }
    }
  }

  @Test("A container that is bind-mounted elsewhere stays in step with itself, in place")
  func mountedElsewhere() throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      try sandbox.run(Tools.system("mkdir"), sandbox("Elsewhere"))
      let space = try Namespace(sandbox, "mount --bind \"$0/Place/Notes\" \"$0/Elsewhere\"")
      try expectInPlace(
        sandbox, archive, "mounted", place: "Elsewhere", readers: [], tree: { try space.tree("Place/Notes") }
      ) { try space.run(sandbox.program, $0) }
    }
  }

  /// Migrates, rolls back and restores a container that cannot be exchanged, and is told why.
  private func expectInPlace(
    _ sandbox: Sandbox, _ archive: String, _ reason: String, place: String = "Place/Notes",
    readers: [[String]],
    restores: Bool = true,
    tree: () throws -> TreeListing, sourceLocation: SourceLocation = #_sourceLocation,
    run: ([String]) throws -> CommandResult
  ) throws {
    let aspects = TreeListing.copied
    func look() throws -> TreeListing { try tree().without(".drydock-state") }
    let before = try look()
    let migrated = try run(["migrate", place])
    #expect(migrated.succeeded, "\(migrated)", sourceLocation: sourceLocation)
    #expect(
      migrated.errors.contains("note: changed in place: ") && migrated.errors.contains(reason), "\(migrated)",
      sourceLocation: sourceLocation)
    for reader in [["inspect", place], ["status", place], ["log", place], ["recover", place]] + readers {
      let result = try run(reader)
      #expect(result.succeeded, "\(reader) \(result)", sourceLocation: sourceLocation)
    }
    let rolledBack = try run(["rollback", place])
    #expect(rolledBack.succeeded, "\(rolledBack)", sourceLocation: sourceLocation)
    try look().expectSame(as: before, comparing: aspects, sourceLocation: sourceLocation)
    // The archive's owner and mode of the root are another user's here.
    guard restores else { return }
    let restored = try run(["restore", archive, place, "--from-other", "--yes"])
    #expect(restored.succeeded, "\(restored)", sourceLocation: sourceLocation)
    let isBack = try look()["Documents/private.txt"] != nil
    #expect(isBack, sourceLocation: sourceLocation)
    let undone = try run(["rollback", place])
    #expect(undone.succeeded, "\(undone)", sourceLocation: sourceLocation)
    try look().expectSame(as: before, comparing: aspects, sourceLocation: sourceLocation)
  }

  // MARK: Repositories

  @Test("A repository on a medium that cannot be written: read, and refused as a place for archives")
  func readOnlyRepository() throws {
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      let space = try Namespace(
        sandbox, "mount --bind \"$0/Backups\" \"$0/Backups\"; mount -o remount,bind,ro \"$0/Backups\"")
      for reader in [
        ["list"], ["verify", "--data"], ["show", "latest"],
        ["restore", "latest", "Place/Notes", "--dry-run"],
        ["restore", "latest", "Place/Notes"],
      ] {
        let result = try space.run(sandbox.program, reader + ["-r", "Backups"])
        #expect(result.succeeded, "\(reader) \(result)")
      }
      let result = try space.drydock("snapshot", "Place/Notes", "-r", "Backups")
      sandbox.expect(
        result, refusedWith: 1, ["Backups", "Read-only file system", "choose another place"], #_sourceLocation
      )
      #expect(try sandbox.names("Backups") == [(archive as NSString).lastPathComponent])
    }
  }

  @Test("A repository of another user: read when it may be, and refused as a place for archives")
  func otherUsersRepository() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try Sandbox.with { sandbox in
      let archive = try placed(sandbox)
      for path in ["", "Backups"] { try sandbox.run(Tools.system("chmod"), "0755", sandbox(path)) }
      try sandbox.run(Tools.system("chmod"), "0644", archive)
      try sandbox.run(Tools.system("chmod"), "0777", sandbox("tmp"))
      try sandbox.run(Tools.system("chown"), "-Rh", "65534:65534", sandbox("Place"))
      func run(_ arguments: String...) throws -> CommandResult {
        try Command.run(
          Tools.system("setpriv"),
          ["--reuid=65534", "--regid=65534", "--clear-groups", sandbox.program] + arguments + [
            "-r", "Backups",
          ],
          environment: sandbox.environment, directory: sandbox.directory.path)
      }
      for result in try [run("list"), run("verify", "latest"), run("restore", "latest", "Place/Notes")] {
        #expect(result.succeeded, "\(result)")
      }
      let refused = try run("snapshot", "Place/Notes")
      sandbox.expect(
        refused, refusedWith: 1, ["Backups", "Permission denied", "as its owner"], #_sourceLocation)
      // An archive that may not be read is named; a repository that may not be entered, too.
      try sandbox.run(Tools.system("chmod"), "0600", archive)
      let listed = try run("list")
      let reason = (archive as NSString).lastPathComponent + ": permission denied"
      #expect(listed.exitCode == 3 && listed.errors.contains(reason), "\(listed)")
      try sandbox.run(Tools.system("chmod"), "0700", sandbox("Backups"))
      try sandbox.expect(run("list"), refusedWith: 1, ["Backups", "Permission denied"], #_sourceLocation)
    }
  }

  @Test("No space for an archive: none appears, nothing stays", arguments: [0, 8, 400])
  func fullRepository(_ free: Int) throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Notes", version: 4, photos: 8)
      let disk = try fullDisk(sandbox, free: free)
      let before = try sandbox.tree()
      try FileManager.default.createDirectory(
        atPath: disk("Disk/Backups"), withIntermediateDirectories: false)
      let result = try disk.drydock("snapshot", "Notes", "-r", "Disk/Backups")
      sandbox.expect(result, refusedWith: 1, ["No space left on device"], #_sourceLocation)
      #expect(try RawFiles.names(in: Array(disk("Disk/Backups").utf8)).isEmpty)
      try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
      try RawFiles.remove(Array(disk("Disk/filler").utf8))
      let again = try disk.drydock("snapshot", "Notes", "-r", "Disk/Backups")
      #expect(again.succeeded, "\(again)")
    }
  }

  /// A container in a directory of its own, with an archive of it, and something for a restore to do.
  private func placed(_ sandbox: Sandbox) throws -> String {
    try sandbox.create("Place/Notes")
    let archive = try sandbox.snapshot("Place/Notes")
    try sandbox.remove("Place/Notes/Documents/private.txt")
    return archive
  }
}
