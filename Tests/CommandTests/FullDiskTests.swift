import Foundation
import TestSupport
import Testing

/// What a full or failing disk does at every moment: it is told as that, with the place, and nothing is lost for it.
@Suite("Full and failing disks", .serialized)
struct FullDiskTests {
  /// A tmpfs in the lab, at `Disk`, with copies of all that is named.
  private func disk(_ lab: Lab, megabytes: Int, _ names: String) throws -> Namespace {
    try lab.shell("mkdir -p Disk")
    return try Namespace(
      lab,
      #"mount -t tmpfs -o size=\#(megabytes)m none "$0/Disk"; cd "$0"; for n in \#(names); do cp -a "$n" Disk/; done"#
    )
  }

  /// Leaves so much free on the disk.
  private func fill(_ disk: Namespace, leaving free: Int) throws {
    let script = """
      rm -f Disk/filler; left=$(df -k --output=avail Disk | tail -1)
      head -c $(( (left - \(free)) * 1024 )) /dev/zero > Disk/filler
      """
    let result = try disk.run("/bin/sh", ["-ec", script])
    #expect(result.succeeded, "\(result)")
  }

  @Test("A rollback in which a copy fails is refused, or can be redone: no record is made of half a copy")
  func rollback() throws {
    try Lab.with { lab in
      // The undo keeps a database with its log: to know its content takes copies of both.
      try lab.create("Notes", version: 0, "--leave-wal")
      try lab.succeed("migrate", "Notes")
      try lab.shell("mkdir Kept; mv Notes .drydock-* Kept")
      var ends: [Int32] = []
      for count in 1...10 {
        try lab.shell("rm -rf Notes .drydock-*; cp -a Kept/. .")
        let before = try lab.tree()
        let result = try traced(lab, "copy_file_range:error=ENOSPC:when=\(count)", ["rollback", "Notes"])
        ends.append(result.exitCode)
        guard !result.succeeded else {
          try lab.succeed("rollback", "Notes", "--redo")
          continue
        }
        lab.expect(result, refusedWith: 1, ["No space left on device", lab(".drydock-")], #_sourceLocation)
        let aspects = TreeListing.untouched.subtracting([.changed])
        #expect(try lab.tree().differences(from: before, comparing: aspects) == [], "\(count)")
      }
      #expect(ends.first == 1 && ends.last == 0, "from the first copy to behind the last: \(ends)")
    }
  }

  /// Runs `drydock` under `strace`, which makes one of its calls fail.
  private func traced(_ lab: Lab, _ fault: String, _ arguments: [String]) throws -> CommandResult {
    let trace = "trace=" + fault.prefix { $0 != ":" }
    return try Command.run(
      Tools.system("strace"),
      ["-f", "-qq", "-o", "/dev/null", "-e", trace, "-e", "inject=" + fault, lab.program] + arguments,
      environment: lab.environment, directory: lab.directory.path)
  }

  @Test("A disk that is full in the middle of a migration's SQL is no mistake at its line")
  func statement() throws {
    try Lab.with { lab in
      try lab.create("Notes", version: Lab.latest)
      try lab.write(
        "Migrations/0007_grow.sql",
        """
        -- drydock: database notes
        -- migrate:up
        CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
          SELECT i, randomblob(1000) AS x FROM n;
        """)
      let disk = try disk(lab, megabytes: 6, "Notes")
      let result = try disk.drydock("migrate", "Disk/Notes")
      lab.expect(result, refusedWith: 1, [lab("Disk/.drydock-"), "no space is left here"], #_sourceLocation)
      #expect(!result.errors.contains("0007_grow.sql"), "\(result)")
      // With another database that does not fit, before any statement.
      let json = try disk.drydock("migrate", "Disk/Notes", "--json")
      let error = try #require(try JSONTests.document(json)["error"] as? [String: Any])
      #expect(error["code"] as? String == "noSpace", "\(json)")
    }
  }

  @Test("Whatever has no space left names the place")
  func places() throws {
    try Lab.with { lab in
      try lab.create("Notes", version: 4, photos: 8, "--bulk-mb", "1")
      let recipient = try lab.key("key")
      try lab.sealed("A", to: recipient)
      try lab.shell("mkdir -p Disk")
      let disk = try disk(lab, megabytes: 1, "")
      var failures = 0
      for free in [0, 12, 200] {
        try fill(disk, leaving: free)
        for (temporary, arguments) in [
          (false, ["snapshot", "Notes", "-r", "Disk"]),
          (false, ["snapshot", "Notes", "-r", "Disk", "--recipient", recipient]),
          (false, ["rekey", "A", "--identity", "key", "--recipient", recipient, "--to", "Disk"]),
          (true, ["snapshot", "Notes", "-o", "B", "--recipient", recipient]),
          (true, ["verify", "A", "--identity", "key"]), (true, ["diff", "A", "Notes", "--identity", "key"]),
        ] {
          let variable = temporary ? ["TMPDIR=\(lab("Disk"))"] : []
          let result = try disk.run("/usr/bin/env", variable + [lab.program] + arguments)
          try lab.shell("rm -f B")
          let cleared = try disk.run("/bin/sh", ["-c", "rm -f Disk/*.tar.zst*; ls -A Disk"])
          #expect(cleared.output == "filler\n", "\(arguments) \(cleared)")
          if result.succeeded || arguments[0] == "diff" && result.exitCode == 2 { continue }
          failures += 1
          lab.expect(result, refusedWith: 1, [lab("Disk")], #_sourceLocation)
          #expect(result.errors.contains("space") || result.errors.contains("disk is full"), "\(result)")
        }
      }
      #expect(failures > 10)
    }
  }

  @Test("What fails after a change is made does not say that nothing was changed")
  func afterTheChange() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.succeed("migrate", "Notes")
      let state = try #require(try lab.names().first { $0.hasPrefix(".drydock-") })
      let undo = try #require(try lab.names(state + "/undo").first)
      // The undo of what was rolled back goes with the rollback, but for what is mounted there.
      let space = try Namespace(
        lab,
        #"mkdir "$0/\#(state)/undo/\#(undo)/held"; mount -t tmpfs none "$0/\#(state)/undo/\#(undo)/held""#)
      let result = try space.drydock("rollback", "Notes")
      #expect(result.exitCode == 3, "\(result)")
      #expect(result.errors.contains("the change is committed, but its cleanup failed"), "\(result)")
      for words in ["nothing was changed", "run it again"] {
        #expect(!result.errors.contains(words), "\(result)")
      }
    }
  }

  @Test("An archive that is published is not denied, whichever sync fails; one that is not leaves nothing")
  func syncs() throws {
    try Lab.with { lab in
      try lab.create()
      var (kept, gone) = (0, 0)
      for count in 1...4 {
        try lab.shell("rm -rf Backups; mkdir Backups")
        let result = try traced(lab, "fsync:error=EIO:when=\(count)", ["snapshot", "Notes", "-r", "Backups"])
        let names = try lab.names("Backups")
        guard !result.succeeded else { continue }
        #expect(result.exitCode == 1 && names.count < 2, "\(names) \(result)")
        guard let name = names.first else {
          gone += 1
          continue
        }
        kept += 1
        #expect(result.errors.contains(name) && !result.errors.contains("nothing was changed"), "\(result)")
        try lab.succeed("verify", "Backups/" + name, "--data")
      }
      #expect(kept > 0 && gone > 0, "\(kept) \(gone)")
    }
  }

  @Test("A state that may not be read is not taken for none")
  func unreadableState() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can become another user")
    try Lab.with { lab in
      try lab.create()
      try lab.succeed("migrate", "Notes")
      try lab.shell(
        "chmod 0755 . Migrations; chmod 0777 tmp; chmod 0644 device.key; chown -Rh 65534:65534 Notes")
      for command in ["rollback", "log"] {
        let result = try Command.run(
          Tools.system("setpriv"),
          ["--reuid=65534", "--regid=65534", "--clear-groups", lab.program, command, "Notes"],
          environment: lab.environment, directory: lab.directory.path)
        lab.expect(
          result, refusedWith: 1, [".drydock-", "cannot be read", "belongs to root"], #_sourceLocation)
      }
      try lab.succeed("rollback", "Notes")
    }
  }
}
