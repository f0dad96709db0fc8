import Foundation
import TestSupport
import Testing

/// What a full or failing disk does at every moment: it is told as that, with the place, and nothing is lost for it.
@Suite("Full and failing disks", .serialized)
struct FullDiskTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox() }

  /// A tmpfs in the sandbox, at `Disk`, with copies of all that is named.
  private func disk(_ sandbox: Sandbox, megabytes: Int, _ names: String) throws -> Namespace {
    try sandbox.shell("mkdir -p Disk")
    return try Namespace(
      sandbox,
      #"mount -t tmpfs -o size=\#(megabytes)m none "$0/Disk"; cd "$0"; for n in \#(names); do cp -a "$n" Disk/; done"#
    )
  }

  /// Leaves so much free on the disk.
  private func fill(_ disk: Namespace, leaving free: Int) throws {
    let script = """
      rm -f Disk/filler; left=$(df -k --output=avail Disk | tail -1)
      head -c $(( (left - \(free)) * 1024 )) /dev/zero > Disk/filler
      """
    try disk.run("/bin/sh", ["-ec", script]).expect()
  }

  @Test("A rollback in which a copy fails is refused, or can be redone: no record is made of half a copy")
  func rollback() throws {
    // The undo keeps a database with its log: to know its content takes copies of both.
    try sandbox.create("Notes", version: 0, "--leave-wal")
    try sandbox.succeed("migrate Notes")
    try sandbox.shell("mkdir Kept; mv Notes .drydock-* Kept")
    var ends: [Int32] = []
    for count in 1...10 {
      try sandbox.shell("rm -rf Notes .drydock-*; cp -a Kept/. .")
      let before = try sandbox.tree()
      let result = try traced(sandbox, "copy_file_range:error=ENOSPC:when=\(count)", ["rollback", "Notes"])
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

  /// Runs `drydock` under `strace`, which makes one of its calls fail.
  private func traced(_ sandbox: Sandbox, _ fault: String, _ arguments: [String]) throws -> CommandResult {
    let parts = fault.split(separator: ":", maxSplits: 1).map(String.init)
    return try sandbox.traced(parts[0], parts[1], arguments)
  }

  @Test("A disk that is full in the middle of a migration's SQL is no mistake at its line")
  func statement() throws {
    try sandbox.create("Notes", version: Sandbox.latest)
    try sandbox.write(
      "Migrations/0007_grow.sql",
      """
      -- drydock: database notes
      -- migrate:up
      CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
        SELECT i, randomblob(1000) AS x FROM n;
      """)
    let disk = try disk(sandbox, megabytes: 6, "Notes")
    let result = try disk.drydock("migrate Disk/Notes").expectError(
      exit: 1, [sandbox("Disk/.drydock-"), "no space is left here"])
    #expect(!result.errors.contains("0007_grow.sql"), "\(result)")
    // With another database that does not fit, before any statement.
    let json = try disk.drydock("migrate Disk/Notes --json").json()
    #expect(json["error"]["code"].text == "noSpace", "\(json)")
  }

  @Test("Whatever has no space left names the place")
  func places() throws {
    try sandbox.create("Notes", version: 4, photos: 8, "--bulk-mb", "1")
    let recipient = try sandbox.key("key")
    try sandbox.sealed("A", to: recipient)
    try sandbox.shell("mkdir -p Disk")
    let disk = try disk(sandbox, megabytes: 1, "")
    var failures = 0
    for free in [0, 12, 200] {
      try fill(disk, leaving: free)
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
        let cleared = try disk.run("/bin/sh", ["-c", "rm -f Disk/*.tar.zst*; ls -A Disk"])
        #expect(cleared.output == "filler\n", "\(arguments) \(cleared)")
        if result.succeeded || arguments[0] == "diff" && result.exitCode == 2 { continue }
        failures += 1
        result.expectError(exit: 1, [sandbox("Disk")])
        #expect(result.errors.contains("space") || result.errors.contains("disk is full"), "\(result)")
      }
    }
    #expect(failures > 10)
  }

  @Test("What fails after a change is made does not say that nothing was changed")
  func afterTheChange() throws {
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
      let result = try traced(
        sandbox, "fsync:error=EIO:when=\(count)", ["snapshot", "Notes", "-r", "Backups"])
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

  @Test("A state that may not be read is not taken for none")
  func unreadableState() throws {
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
}
