import Foundation
import TestSupport
import Testing

/// What a full or failing disk does at every moment: it is told as that, with the place, and nothing is lost for it.
@Suite(.serialized) struct FullDiskTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test func `No space for a migration, a restore and a rollback: nothing changes`() throws {
    try sandbox.create("Notes", version: 0, photos: 8, "--bulk-mb", "1")
    let archive = try sandbox.snapshot()
    try sandbox.remove("Notes/Documents/Photos")
    try sandbox.write("Notes/Documents/new.txt", "new\n")
    let disk = try Namespace.disk(sandbox, megabytes: 8, "cp -a Notes Disk/Notes")
    func expectFull(leaving sizes: [Int], _ arguments: [String]) throws {
      let before = try disk.tree("Disk/Notes")
      let aspects = TreeListing.untouched.subtracting([.changed])
      for free in sizes {
        try disk.fill(leaving: free)
        let result = try disk.drydock(arguments).expectError(exit: 1, ["free some space"])
        let after = try disk.tree("Disk/Notes").differences(from: before, comparing: aspects)
        #expect(after == [], "\(arguments) \(free) \(result)")
        // A container that is not there yet does not appear in part.
        let names = try RawFiles.names(in: Array(disk("Disk").utf8)).map { readable($0) }
        #expect(names.filter { !$0.hasPrefix(".drydock-") } == ["Notes", "filler"], "\(arguments) \(free)")
      }
    }
    func expectDone(_ arguments: [String]) throws {
      let before = try disk.tree("Disk/Notes")
      try disk.drydock("inspect Disk/Notes").expect()
      try disk.empty()
      try disk.drydock(arguments).expect()
      #expect(try !disk.tree("Disk/Notes").differences(from: before).isEmpty, "\(arguments)")
    }
    let (migrate, rollback) = (["migrate", "Disk/Notes"], ["rollback", "Disk/Notes"])
    let restore = ["restore", archive, "Disk/Notes"]
    try expectFull(leaving: [0, 16, 60], migrate)
    try expectFull(leaving: [0, 16, 100], ["restore", archive, "Disk/New"])
    try expectFull(leaving: [100, 16, 0], restore)
    try expectDone(restore)
    try disk.fill(leaving: 0)
    try expectDone(migrate)
    try disk.run(sandbox.app, ["touch-settings", "Disk/Notes", "lastSearch", "dock"]).expect()
    try expectFull(leaving: [0], rollback)
    try expectDone(rollback)
  }

  @Test func `A rollback in which a copy fails is refused, or can be redone`() throws {
    // The undo keeps a database with its log: to know its content takes copies of both.
    try sandbox.create("Notes", version: 0, "--leave-wal")
    try sandbox.succeed("migrate Notes")
    try sandbox.shell("mkdir Kept; mv Notes .drydock-* Kept")
    var ends: [Int32] = []
    for count in 1...10 {
      try sandbox.shell("rm -rf Notes .drydock-*; cp -a Kept/. .")
      let before = try sandbox.tree()
      let result = try sandbox.traced("copy_file_range", "error=ENOSPC:when=\(count)", ["rollback", "Notes"])
      ends.append(result.exitCode)
      guard !result.succeeded else {
        try sandbox.succeed("rollback Notes --redo")
        continue
      }
      result.expectError(exit: 1, ["No space left on device", sandbox(".drydock-")])
      let aspects = TreeListing.untouched.subtracting([.changed])
      #expect(try sandbox.tree().differences(from: before, comparing: aspects) == [], "\(count)")
    }
    #expect(ends.first == 1 && ends.last == 0, "from the first copy to behind the last: \(ends)")
  }

  @Test func `A disk that is full in the middle of a migration's SQL is no mistake at its line`() throws {
    try sandbox.create("Notes", version: Sandbox.latest)
    try sandbox.write(
      "Migrations/0007_grow.sql",
      """
      -- drydock: database notes
      -- migrate:up
      CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
        SELECT i, randomblob(1000) AS x FROM n;
      """)
    let disk = try Namespace.disk(sandbox, megabytes: 6, "cp -a Notes Disk")
    let result = try disk.drydock("migrate Disk/Notes").expectError(
      exit: 1, [sandbox("Disk/.drydock-"), "no space is left here"])
    #expect(!result.errors.contains("0007_grow.sql"), "\(result)")
    // With another database that does not fit, before any statement.
    let json = try disk.drydock("migrate Disk/Notes --json").json()
    #expect(json["error"]["code"].text == "noSpace", "\(json)")
  }

  @Test func `Whatever has no space left names the place`() throws {
    try sandbox.create("Notes", version: 4, photos: 8, "--bulk-mb", "1")
    let recipient = try sandbox.key("key")
    try sandbox.encrypted("A", to: recipient)
    let disk = try Namespace.disk(sandbox, megabytes: 1)
    var failures = 0
    for free in [0, 12, 200] {
      try disk.fill(leaving: free)
      for (temporary, arguments) in [
        (false, ["snapshot", "Notes", "-r", "Disk"]),
        (false, ["snapshot", "Notes", "-r", "Disk", "--recipient", recipient]),
        (false, ["rekey", "A", "--identity", "key", "--recipient", recipient, "--into", "Disk"]),
        (true, ["snapshot", "Notes", "-o", "B", "--recipient", recipient]),
        (true, ["verify", "A", "--identity", "key"]), (true, ["diff", "A", "Notes", "--identity", "key"]),
      ] {
        let variable = temporary ? ["TMPDIR=\(sandbox("Disk"))"] : []
        let result = try disk.run("/usr/bin/env", variable + [sandbox.program] + arguments)
        try sandbox.shell("rm -f B")
        let isDone = result.succeeded || arguments[0] == "diff" && result.exitCode == 2
        // Of what fails, neither an archive nor a part of one is left.
        let left = try disk.run("/bin/sh", ["-c", "ls -A Disk; rm -f Disk/*.tar.zst*"]).output
        let parts = left.split(separator: "\n").filter { !isDone || !$0.contains(".tar.zst") }
        #expect(parts == ["filler"], "\(arguments) \(result) \(left)")
        if isDone { continue }
        failures += 1
        result.expectError(exit: 1, [sandbox("Disk")])
        #expect(result.errors.contains("space") || result.errors.contains("disk is full"), "\(result)")
      }
    }
    #expect(failures > 10)
  }

  @Test func `What fails after a change is made does not say that nothing was changed`() throws {
    try sandbox.create()
    try sandbox.succeed("migrate Notes")
    let state = try sandbox.state()
    let undo = try #require(try sandbox.names(state + "/undo").first)
    // The undo of what was rolled back goes with the rollback, but for what is mounted there.
    let space = try Namespace(
      sandbox,
      #"mkdir "$0/\#(state)/undo/\#(undo)/held"; mount -t tmpfs none "$0/\#(state)/undo/\#(undo)/held""#)
    let result = try space.drydock("rollback Notes").expect(
      exit: 3, errors: "the change is committed, but its cleanup failed")
    for words in ["nothing was changed", "run it again"] {
      #expect(!result.errors.contains(words), "\(result)")
    }
  }

  @Test("An archive that is published is not denied, whichever sync fails; one that is not leaves nothing")
  func syncs() throws {
    try sandbox.create()
    var (kept, gone) = (0, 0)
    for count in 1...4 {
      try sandbox.shell("rm -rf Backups; mkdir Backups")
      let result = try sandbox.traced(
        "fsync", "error=EIO:when=\(count)", ["snapshot", "Notes", "-r", "Backups"])
      let names = try sandbox.names("Backups")
      guard !result.succeeded else { continue }
      #expect(result.exitCode == 1 && names.count < 2, "\(names) \(result)")
      guard let name = names.first else {
        gone += 1
        continue
      }
      kept += 1
      #expect(result.errors.contains(name) && !result.errors.contains("nothing was changed"), "\(result)")
      try sandbox.succeed("verify", "Backups/" + name, "--data")
    }
    #expect(kept > 0 && gone > 0, "\(kept) \(gone)")
  }

  @Test func `A state that may not be read is not taken for none`() throws {
    try sandbox.create()
    try sandbox.succeed("migrate Notes")
    try sandbox.openToOthers("Migrations")
    try sandbox.mode("device.key", 0o644)
    try sandbox.giveToOther("Notes")
    for command in ["rollback", "log"] {
      try sandbox.asOther([command, "Notes"]).expectError(
        exit: 1, [".drydock-", "cannot be read", "belongs to root"])
    }
    try sandbox.succeed("rollback Notes")
  }

  /// With blocks smaller than a page SQLite's shared memory has holes; where one cannot be filled, a touch of the mapped
  /// page ends the process (SIGBUS).
  private static let migrations = """
    for free in 58 60 62 110 112; do
      rm -rf Place/Notes Place/.drydock-* Place/ballast; cp -a Notes Place/Notes; sync -f Place
      all=$(df --output=avail Place | tail -n 1); fallocate -l $((all - free))K Place/ballast; sync -f Place
      code=0; "$0" migrate Place/Notes --to 4 > output 2>&1 || code=$?
      [ $code = 0 ] || diff -r --no-dereference Notes Place/Notes
      echo "$free $code"
    done
    """

  @Test func `Blocks of 1 KiB: a migration without space fails, and no signal ends it`() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root mounts a file system in a file")
    try sandbox.create()
    let space = try Namespace(
      sandbox,
      """
      cd "$0"; truncate -s 8M disk; mkfs.ext4 -q -F -b 1024 -m 0 disk; mkdir Place; mount -o loop disk Place
      """)
    let result = try space.run("/bin/sh", ["-ec", Self.migrations, sandbox.program]).expect()
    let codes = result.output.split(separator: "\n").map { $0.split(separator: " ").last }
    #expect(codes.count == 5 && codes.allSatisfy { $0 == "0" || $0 == "1" }, "\(result.output)")
  }
}
