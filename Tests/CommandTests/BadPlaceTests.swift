import Foundation
import TestSupport
import Testing

/// Full ones are in `FullDiskTests`; mount points, and file systems inside, in `ImpossibleTests` of transactions.
@Suite(.serialized) struct BadPlaceTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test func `A read-only file system: changes are refused; what only reads works`() throws {
    let archive = try placed()
    let space = try Namespace(
      sandbox, "mount --bind \"$0/Place\" \"$0/Place\"; mount -o remount,bind,ro \"$0/Place\"")
    let before = try space.tree("Place")
    for command in [
      ["migrate", "Place/Notes"], ["restore", archive, "Place/Notes"],
      ["baseline", "Place/Notes", "--to", "1"],
    ] {
      try space.drydock(command).expectError(exit: 1, ["Place", "cannot be written"])
    }
    for reader in [
      ["inspect"], ["status"], ["migrate", "--dry-run"], ["snapshot", "-r", "Backups"], ["log"],
    ] {
      try space.drydock([reader[0], "Place/Notes"] + reader.dropFirst()).expect()
    }
    try space.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
  }

  /// Lets another user enter the sandbox, and read its migrations and the archive.
  private func open(_ archive: String) throws {
    try sandbox.openToOthers("Migrations", "Backups")
    try sandbox.run(Tools.system("chmod"), "644", archive)
  }

  @Test func `Another user's directory around the container: changed in place`() throws {
    let archive = try placed()
    // The sandbox may be entered and the container is the user's own; the directory around it is not.
    try open(archive)
    try sandbox.mode("Place", 0o755)
    try sandbox.giveToOther("Place/Notes")
    try expectInPlace(
      archive, "cannot be written",
      readers: Self.readers + [["snapshot", "-o", "tmp/A.tar.zst"]],
      tree: { try sandbox.tree("Place/Notes") }
    ) { try sandbox.asOther($0) }
    // Where only the owner of a name may move it, it is no use that the directory can be written.
    try sandbox.mode("Place", 0o1777)
    try #require(chown(sandbox("Place/Notes"), 0, 65534) == 0)
    try sandbox.mode("Place/Notes", 0o777)
    try expectInPlace(
      archive, "move the container", restores: false, tree: { try sandbox.tree("Place/Notes") }
    ) { try sandbox.asOther($0) }
  }

  @Test func `A neighbour that belongs to another user, and may not be linked: changed in place`() throws {
    let setting = try String(contentsOfFile: "/proc/sys/fs/protected_hardlinks", encoding: .utf8)
    try #require(setting == "1\n", "the system's usual setting")
    let archive = try placed()
    try open(archive)
    try sandbox.giveToOther("Place")
    try sandbox.write("Place/Notes/Documents/foreign.txt", "of another user\n")
    try expectInPlace(
      archive, "this user may not link Documents/foreign.txt", restores: false,
      tree: { try sandbox.tree("Place/Notes") }
    ) { try sandbox.asOther($0) }
  }

  @Test func `Another user who may only read takes a snapshot of databases, and changes nothing`() throws {
    let archive = try placed()
    try open(archive)
    try sandbox.run(Tools.system("chmod"), "-R", "a+rX,a-w", sandbox("Place/Notes"))
    var before = try sandbox.tree("Place")
    try sandbox.asOther("snapshot Place/Notes -o tmp/idle.tar.zst").expect()
    try sandbox.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
    let app = try Command.spawn(Tools.notesApp(), ["hold", sandbox("Place/Notes")])
    try app.waitForLine("ready")
    before = try sandbox.tree("Place")
    try sandbox.asOther("snapshot Place/Notes -o tmp/used.tar.zst").expect()
    try sandbox.tree("Place").expectSame(as: before, comparing: TreeListing.untouched)
    try app.finish()
  }

  /// A file system in a file, mounted at `Disk` in a namespace of its own, with a container.
  private func disk(_ make: String, megabytes: Int, _ setup: String) throws -> Namespace {
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

  /// The kernel writes times seconds after the content that a program has synced: the disk is copied in between.
  @Test func `What a power cut left newer than its times is read by snapshot and restore`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can mount a file system")
    let space = try Namespace(
      sandbox,
      """
      cd "$0"
      truncate -s 16m disk.img
      /sbin/mkfs.ext4 -q disk.img > tmp/made 2>&1
      mkdir Disk
      mount -o loop disk.img Disk
      mkdir -p Disk/Box/Documents
      printf old1 > Disk/Box/Documents/file
      umount Disk
      for time in ctime mtime; do
        /sbin/debugfs -w -R "set_inode_field /Box/Documents/file $time 20260101101010" disk.img > tmp/made 2>&1
      done
      rm tmp/made
      /sbin/losetup -f --show disk.img > loop
      mount -o commit=300 "$(cat loop)" Disk
      """)
    try space.drydock("snapshot Disk/Box -r Backups").expect()
    let cut = try space.run(
      "/bin/bash",
      [
        "-ec",
        """
        stat -c %Z.%Y Disk/Box/Documents/file
        python3 -c 'import os; f = os.open("Disk/Box/Documents/file", os.O_RDWR); os.pwrite(f, b"new2", 0); os.fdatasync(f)'
        cp disk.img later
        umount Disk
        cat later > disk.img
        blockdev --flushbufs "$(cat loop)"
        mount "$(cat loop)" Disk
        /sbin/losetup -d "$(cat loop)"
        stat -c %Z.%Y Disk/Box/Documents/file
        cat Disk/Box/Documents/file
        cat /proc/sys/kernel/random/uuid > boot
        mount --bind boot /proc/sys/kernel/random/boot_id
        """,
      ])
    let lines = cut.output.split(separator: "\n")
    try #require(cut.succeeded && lines.count == 3 && lines[0] == lines[1] && lines[2] == "new2", "\(cut)")
    let back = try space.drydock("restore -r Backups latest Disk/Box --dry-run")
    #expect(back.output.contains("Documents/file"), "\(back)")
    try space.drydock("snapshot Disk/Box -r Backups").expect()
    let restored = try space.drydock("restore -r Backups latest New")
    let content = try sandbox.read("New/Documents/file")
    #expect(restored.succeeded && content == Array("new2".utf8), "\(restored)")
  }

  @Test func `Times of whole seconds: an edit within the second is seen`() throws {
    _ = try placed()
    let space = try disk("/sbin/mkfs.ext4 -q -I 128", megabytes: 32, "")
    let place = "Disk/Place/Notes"
    let before = try space.tree(place)
    let migrated = try space.drydock("migrate", place).expect()
    #expect(!migrated.errors.contains("in place"), "\(migrated)")
    try space.drydock("rollback", place).expect()
    try space.tree(place).expectSame(as: before)
    for text in ["abcd", "efgh", "ijkl"] {
      _ = try space.run("/bin/sh", ["-c", "printf \(text) > \(place)/Documents/odd"])
      try space.drydock("snapshot", place, "-r", "Backups").expect()
      let restored = try space.drydock("restore", "-r", "Backups", "latest", "New-\(text)")
      let content = try sandbox.read("New-\(text)/Documents/odd")
      #expect(restored.succeeded && content == Array(text.utf8), "\(restored)")
    }
  }

  /// exFAT keeps the case of a name, and ignores it.
  @Test func `Names that a file system takes for one are refused; others come back`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can mount a file system")
    let space = try Namespace(
      sandbox,
      """
      cd "$0"
      truncate -s 8m disk.img
      /sbin/mkfs.exfat disk.img > tmp/made
      mkdir -p Disk Twins/Documents Single/Documents
      printf 1 > Twins/Documents/a
      printf 2 > Twins/Documents/A
      printf 3 > Single/Documents/a
      mount -t exfat-fuse -o loop,umask=077 disk.img Disk > tmp/made
      """)
    // The program behind the mount ends with it.
    defer { _ = try? space.run("umount", ["Disk"]) }
    for (name, isRefused) in [("Twins", true), ("Single", false)] {
      try space.drydock("snapshot", name, "-o", "\(name).tar.zst").expect()
      let restored = try space.drydock("restore", "\(name).tar.zst", "Disk/\(name)")
      #expect(restored.succeeded == !isRefused, "\(restored)")
      #expect(
        restored.errors.contains("cannot hold both Documents/A and Documents/a") == isRefused, "\(restored)"
      )
    }
    let seen = try space.run("/bin/sh", ["-c", "ls Disk; cat Disk/Single/Documents/A"])
    #expect(seen.output == "Single\n3", "\(seen)")
  }

  /// The flags and projects of all directories and files, as `lsattr` shows them.
  private func flags(_ space: Namespace, _ path: String) throws -> String {
    let script =
      "cd \"$0\" && find . -name .drydock-state -prune -o ! -type l -exec lsattr -pd {} + | sort -k 3"
    let result = try space.run("/bin/sh", ["-c", script, path]).expect()
    return result.output
  }

  @Test func `btrfs: a subvolume inside is changed in place; flags of directories stay`() throws {
    let archive = try placed()
    let space = try disk(
      "mkfs.btrfs -q", megabytes: 128,
      """
      chattr +C Notes/Library
      chattr +c Notes/Documents
      chattr +m Notes/Documents/Photos
      """)
    let (before, tree) = (try flags(space, "Disk/Place/Notes"), try space.tree("Disk/Place/Notes"))
    let migrated = try space.drydock("migrate Disk/Place/Notes").expect()
    #expect(!migrated.errors.contains("in place"), "\(migrated)")
    let after = try flags(space, "Disk/Place/Notes")
    for directory in ["Library", "Documents", "Documents/Photos"] {
      let line = try #require(before.split(separator: "\n").first { $0.hasSuffix(" ./\(directory)") })
      #expect(after.contains(line + "\n"), "\(after)")
    }
    try space.drydock("rollback Disk/Place/Notes").expect()
    // A database that was sealed in the undo log comes back as a new file, which btrfs compresses as its directory.
    let back = try flags(space, "Disk/Place/Notes").split(separator: "\n")
    let changed = Set(back).symmetricDifference(before.split(separator: "\n"))
    #expect(changed.allSatisfy { $0.hasSuffix(" ./Documents/database.sqlite") }, "\(changed)")
    let differences = try space.tree("Disk/Place/Notes").differences(
      from: tree, comparing: TreeListing.copied)
    #expect(differences.filter { !$0.hasSuffix("attributes was , is btrfs.compression=zlib") } == [])

    try space.run(
      "/bin/sh",
      ["-c", "cd Disk/Place/Notes/Documents && btrfs subvolume create Sub > ../../made && date > Sub/file"]
    ).expect()
    try expectInPlace(
      archive, "Documents/Sub is in another subvolume", place: "Disk/Place/Notes", restores: false,
      tree: { try space.tree("Disk/Place/Notes") }
    ) { try space.drydock($0) }
  }

  @Test func `XFS: what counts for a project counts for it afterwards, also what is new`() throws {
    let archive = try placed()
    let space = try disk(
      "mkfs.xfs -q", megabytes: 320,
      """
      cp -a Notes Other
      find Notes Other ! -type l -exec chattr -p 77 {} +
      find Notes Other -type d -exec chattr +P {} +
      """)
    let before = try flags(space, "Disk/Place/Notes")
    for number in 1...2 {
      let migrated = try space.drydock("migrate Disk/Place/Notes").expect()
      #expect(!migrated.errors.contains("in place"), "\(migrated)")
      let lines = try flags(space, "Disk/Place/Notes").split(separator: "\n")
      #expect(lines.count > 20 && lines.allSatisfy { $0.drop { $0 == " " }.hasPrefix("77 ") }, "\(lines)")
      try space.drydock("rollback Disk/Place/Notes").expect()
      let back = try flags(space, "Disk/Place/Notes")
      #expect(back == before)
      // The second time the state beside it begins in a directory that counts for another project.
      if number == 1 {
        try space.run(
          "/bin/sh", ["-c", "cd Disk/Place && rm -rf .drydock-* && chattr -p 77 . && chattr +P ."]
        ).expect()
      }
    }
    try space.run("/bin/sh", ["-c", "cd Disk/Place && chattr -p 5 ."]).expect()
    try expectInPlace(
      archive, "counts for another project", place: "Disk/Place/Other", restores: false,
      tree: { try space.tree("Disk/Place/Other") }
    ) { try space.drydock($0) }
  }

  /// One that only renames and copies would write 16 MB again.
  @Test func `XFS: a restored database shares its unchanged pages with the replaced one`() throws {
    _ = try placed()
    let space = try disk("mkfs.xfs -q", megabytes: 320, "")
    let box = "Disk/Place/Notes/Documents/database.sqlite"
    func sql(_ text: String) throws { try space.run(Tools.system("sqlite3"), [box, text]).expect() }
    func used() throws -> Int {
      var status = statvfs()
      try #require(statvfs(space("Disk"), &status) == 0)
      return Int(status.f_blocks - status.f_bfree) * Int(status.f_frsize)
    }
    try sql(
      """
      CREATE TABLE big AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        SELECT i, hex(randomblob(200)) AS text FROM n;
      """)
    try space.drydock("snapshot Disk/Place/Notes -r Backups").expect()
    let before = try RawFiles.read(Array(space(box).utf8))
    // Pages in the middle change, others follow the last one, and the header's counter moves.
    try sql(
      "UPDATE big SET text = 'again' WHERE i % 10000 = 0; INSERT INTO big SELECT * FROM big WHERE i < 900;")
    try space.run("/bin/sync", ["-f", "Disk"]).expect()
    let start = try used()
    try space.drydock("restore latest Disk/Place/Notes -r Backups --yes").expect()
    #expect(try RawFiles.read(Array(space(box).utf8)) == before)
    try space.run("/bin/sync", ["-f", "Disk"]).expect()
    #expect(try used() - start < before.count / 2)
    try space.drydock("rollback Disk/Place/Notes").expect()
    let text = try space.run(Tools.system("sqlite3"), [box, "SELECT text FROM big WHERE i = 20000"]).expect()
    #expect(text.output == "again\n")
  }

  /// What only reads a container.
  private static let readers = [["inspect"], ["status"], ["log"], ["recover"]]

  /// Migrates, rolls back and restores a container that cannot be exchanged, and is told why.
  private func expectInPlace(
    _ archive: String, _ reason: String, place: String = "Place/Notes",
    readers: [[String]] = [], restores: Bool = true,
    tree: () throws -> TreeListing, sourceLocation: SourceLocation = #_sourceLocation,
    run: ([String]) throws -> CommandResult
  ) throws {
    let aspects = TreeListing.copied
    func look() throws -> TreeListing { try tree().without(".drydock-state") }
    let before = try look()
    try run(["migrate", place]).expect(errors: "note: changed in place: ", reason)
    for reader in readers {
      try run([reader[0], place] + reader.dropFirst()).expect()
    }
    try run(["rollback", place]).expect()
    try look().expectSame(as: before, comparing: aspects, sourceLocation: sourceLocation)
    // The archive's owner and mode of the root are another user's here.
    guard restores else { return }
    try run(["restore", archive, place, "--from-other", "--yes"]).expect()
    let isBack = try look()["Documents/private.txt"] != nil
    #expect(isBack, sourceLocation: sourceLocation)
    try run(["rollback", place]).expect()
    try look().expectSame(as: before, comparing: aspects, sourceLocation: sourceLocation)
  }

  /// As the volume of a program in a container of its own: a mount is of a directory's inode, which an exchange would replace.
  @Test(arguments: ["Notes", "Notes/Documents"])
  func `In another mount namespace: what is mounted there stays the container`(_ source: String) throws {
    try sandbox.create()
    try sandbox.write("Data/empty", "")
    let space = try Namespace(sandbox, "mount --bind \"$0/\(source)\" \"$0/Data\"")
    try sandbox.drydock("migrate Notes").expect(
      errors: "changed in place: ", "is also mounted at \(sandbox("Data"))")
    try space.tree("Data").expectSame(as: sandbox.tree(source), comparing: TreeListing.copied)
    try RawFiles.write(Array("mine".utf8), to: Array(space("Data/written").utf8))
    #expect(try sandbox.read("\(source)/written") == Array("mine".utf8))
  }

  @Test func `What is mounted from beside it does not matter`() throws {
    try sandbox.create()
    try sandbox.create("Notes2")
    try sandbox.write("Data/empty", "")
    let space = try Namespace(sandbox, "mount --bind \"$0/Notes2\" \"$0/Data\"")
    let migrated = try sandbox.drydock("migrate Notes").expect()
    #expect(!migrated.errors.contains("in place"), "\(migrated)")
    try space.tree("Data").expectSame(as: sandbox.tree("Notes2"), comparing: TreeListing.copied)
  }

  @Test func `A repository that cannot be written is read, and refused as a place for archives`() throws {
    let archive = try placed()
    let space = try Namespace(
      sandbox, "mount --bind \"$0/Backups\" \"$0/Backups\"; mount -o remount,bind,ro \"$0/Backups\"")
    for reader in [
      ["list"], ["verify", "--data"], ["show", "latest"], ["restore", "latest", "Place/Notes", "--dry-run"],
      ["restore", "latest", "Place/Notes"],
    ] {
      try space.drydock(reader + ["-r", "Backups"]).expect()
    }
    try space.drydock("snapshot Place/Notes -r Backups").expectError(
      exit: 1, ["Backups", "Read-only file system", "choose another place"])
    #expect(try sandbox.names("Backups") == [(archive as NSString).lastPathComponent])
  }

  @Test func `A repository of another user is read, and refused as a place for archives`() throws {
    let archive = try placed()
    try open(archive)
    try sandbox.giveToOther("Place")
    func run(_ arguments: String...) throws -> CommandResult {
      try sandbox.asOther(arguments + ["-r", "Backups"])
    }
    for result in try [run("list"), run("verify", "latest"), run("restore", "latest", "Place/Notes")] {
      #expect(result.succeeded, "\(result)")
    }
    try run("snapshot", "Place/Notes").expectError(exit: 1, ["Backups", "Permission denied", "as its owner"])
    // An archive that may not be read is named; a repository that may not be entered, too.
    try sandbox.run(Tools.system("chmod"), "600", archive)
    let listed = try run("list")
    let reason = (archive as NSString).lastPathComponent + ": permission denied"
    #expect(listed.exitCode == 3 && listed.errors.contains(reason), "\(listed)")
    try sandbox.mode("Backups", 0o700)
    try run("list").expectError(exit: 1, ["Backups", "Permission denied"])
  }

  /// A container in a directory of its own, with an archive of it, and something for a restore to do.
  private func placed() throws -> String {
    try sandbox.create("Place/Notes")
    let archive = try sandbox.snapshot("Place/Notes")
    try sandbox.remove("Place/Notes/Documents/private.txt")
    return archive
  }
}
