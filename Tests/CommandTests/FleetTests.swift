import Foundation
import TestSupport
import Testing

/// Many processes that share the work of one run, as a scheduler starts them.
@Suite("Fleets")
struct FleetTests {
  private static let names = (1...6).map { "c\($0)" }

  /// Six containers in `All`, copies of one.
  private func with(_ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      try FileManager.default.createDirectory(atPath: sandbox("All"), withIntermediateDirectories: false)
      try sandbox.create("All/c1", photos: 0)
      for name in Self.names.dropFirst() { try sandbox.copy("All/c1", to: "All/" + name) }
      try body(sandbox)
    }
  }

  private func lines(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\($0)")
    }
  }

  private func states(_ result: CommandResult) throws -> [String] {
    try lines(result.output).filter { $0["container"] != nil }.map {
      "\($0["container"] ?? "") \($0["state"] ?? "") \($0["exit_code"] ?? "")"
    }
  }

  private func summary(_ sandbox: Sandbox, _ files: [String]) throws -> (code: Int32, [String: Any]) {
    let result = try sandbox.drydock(["summary", "--json"] + files)
    return (result.exitCode, try JSONTests.document(result))
  }

  /// The completed transactions of a container, newest last, as the log shows them.
  private func log(_ sandbox: Sandbox, _ name: String) throws -> [[String: Any]] {
    let log = try JSONTests.document(sandbox.drydock("log", "All/" + name, "--json"))
    return try #require(log["transactions"] as? [[String: Any]])
  }

  @Test("Shards do all containers once; one that was killed is run again, and nothing is done twice")
  func killed() throws {
    try with { sandbox in
      let migrate = { (shard: Int) in
        [
          "migrate", "--all", "All", "--jobs", "1", "--run", "r1", "--shard", "\(shard)/3", "--result",
          "\(shard).jsonl",
        ]
      }
      // The largest shard, so that a container is done before the kill.
      let sizes = try (1...3).map { shard in
        try states(
          sandbox.drydock("status", "--all", "All", "--run", "s", "--shard", "\(shard)/3", "--json")
        ).count
      }
      #expect(sizes.reduce(0, +) == Self.names.count)
      let largest = try #require((1...3).max { sizes[$0 - 1] < sizes[$1 - 1] })
      let others = (1...3).filter { $0 != largest }
      let runs = try others.map { try sandbox.start(migrate($0)) }
      let killed = try sandbox.drydock(migrate(largest), environment: ["DRYDOCK_KILL_AT": "exchanged:2"])
      #expect(killed.signal != nil, "\(killed)")
      for run in runs { #expect(try run.wait().succeeded) }
      let files = (1...3).map { "\($0).jsonl" }
      let (code, first) = try summary(sandbox, files)
      let shards = try #require(first["shards"] as? [[String: Any]]).first
      #expect(code == 3 && shards?["incomplete"] as? [String] == ["\(largest)/3"], "\(first)")
      let text = try sandbox.drydock(["summary"] + files)
      #expect(
        text.errors.contains(
          "did not finish, or results of it are missing; run it again with --shard \(largest)/3 --run r1"),
        "\(text)")

      let again = try sandbox.drydock(migrate(largest))
      #expect(again.succeeded && again.errors.contains("its change is now complete"), "\(again)")
      let (done, second) = try summary(sandbox, files)
      #expect(done == 0 && second["containers"] as? Int == Self.names.count, "\(second)")
      #expect(second["changed_again_count"] as? Int == 0)
      // Also the one that the killed job could not record.
      #expect((second["states"] as? [String: Int])?["changed"] == Self.names.count, "\(second)")
      for name in Self.names {
        let log = try log(sandbox, name)
        #expect(log.count == 1 && log[0]["run"] as? String == "r1", "\(log)")
      }
    }
  }

  @Test("A full disk fails the containers on it, and no other; they are done when there is room")
  func fullDisk() throws {
    try with { sandbox in
      let disk = try Namespace(
        sandbox,
        """
        cd "$0"; mkdir Disk; mount -t tmpfs -o size=8m none Disk
        for n in c2 c5; do mv All/$n Disk/$n; ln -s ../Disk/$n All/$n; done
        head -c 100000000 /dev/zero > Disk/filler || true
        """)
      let migrate = ["migrate", "--all", "All", "--run", "r1", "--shard", "1/1", "--result", "results.jsonl"]
      let full = try disk.run(sandbox.program, migrate)
      #expect(full.exitCode == 3, "\(full)")
      let (code, first) = try summary(sandbox, ["results.jsonl"])
      let failures = try #require(first["failures"] as? [[String: Any]])
      #expect(code == 3 && failures.map { $0["code"] as? String } == ["noSpace"], "\(first)")
      #expect(failures[0]["count"] as? Int == 2 && failures[0]["container"] as? String == "c2")
      _ = try disk.run("/bin/rm", ["Disk/filler"])
      let again = try disk.run(sandbox.program, migrate)
      #expect(again.succeeded, "\(again)")
      let (done, second) = try summary(sandbox, ["results.jsonl"])
      let versions = try #require(second["versions"] as? [[String: Int]])
      #expect(done == 0 && versions == [["before": 0, "after": Sandbox.latest, "count": 6]], "\(second)")
      #expect(second["changed_again_count"] as? Int == 0)
    }
  }

  @Test("A wave does the first ones by hash; too many failures end the run, and what was not started is said")
  func waves() throws {
    try with { sandbox in
      let wave = ["migrate", "--all", "All", "--json", "--first", "2"]
      let first = try sandbox.drydock(wave)
      #expect(first.succeeded && first.errors.contains("4 containers left for later"), "\(first)")
      let chosen = try states(first)
      #expect(chosen.count == 2 && chosen.allSatisfy { $0.contains("changed 0") })
      #expect(try lines(first.output).last?["left_out"] as? Int == 4)
      // A percentage is rounded up; and it is the same containers each time.
      let same = try states(sandbox.drydock("migrate", "--all", "All", "--json", "--first", "30%"))
      #expect(same == chosen.map { $0.replacing("changed", with: "unchanged") })

      for name in Self.names { try sandbox.write("All/\(name)/" + Sandbox.settings, "bplist00 and no more") }
      let stop = ["migrate", "--all", "All", "--jobs", "1", "--json", "--max-failures"]
      let stopped = try sandbox.drydock(stop + ["1"])
      #expect(stopped.exitCode == 3, "\(stopped)")
      let failed = try states(stopped)
      #expect(failed.filter { $0.hasSuffix("failed 1") }.count == 2, "\(failed)")
      #expect(failed.filter { $0.hasSuffix("skipped 3") }.count == 4, "\(failed)")
      #expect(stopped.errors.contains("4 containers not started"), "\(stopped)")
      // Half of six may fail.
      let half = try states(sandbox.drydock(stop + ["50%"]))
      #expect(half.filter { $0.hasSuffix("skipped 3") }.count == 2, "\(half)")
      let all = try sandbox.drydock(stop + ["100%"])
      #expect(all.exitCode == 1, "all of them failed, for one reason: \(all)")
    }
  }

  @Test("What a run changed is rolled back in each container, unless something followed; once")
  func rollback() throws {
    try with { sandbox in
      let before = try sandbox.tree("All/c2")
      try sandbox.succeed("migrate", "--all", "All", "--to", "2", "--run", "older")
      let older = try sandbox.tree("All/c2")
      // Three transactions of one run.
      try sandbox.succeed("migrate", "--all", "All", "--to", "5", "--each", "--run", "newer")
      try sandbox.succeed("migrate", "All/c1", "--to", "6")
      try sandbox.create("All/c7", photos: 0)
      let undo = ["rollback", "--all", "All", "--transaction-of", "newer", "--json"]
      let dry = try sandbox.drydock(undo + ["--dry-run"])
      #expect(try states(dry)[1] == "c2 pending 0", "\(dry)")
      let result = try sandbox.drydock(undo)
      #expect(
        try states(result) == [
          "c1 failed 6", "c2 changed 0", "c3 changed 0", "c4 changed 0", "c5 changed 0", "c6 changed 0",
          "c7 unchanged 0",
        ], "\(result)")
      #expect(
        result.exitCode == 3 && result.errors.contains("a later transaction is not of run newer"), "\(result)"
      )
      try sandbox.tree("All/c2").expectSame(as: older)
      #expect(try states(sandbox.drydock(undo))[1...].allSatisfy { $0.hasSuffix("unchanged 0") })
      // The one before is the newest now.
      try sandbox.succeed("rollback", "All/c2", "--transaction-of", "older")
      try sandbox.tree("All/c2").expectSame(as: before)
      #expect(
        try sandbox.succeed("rollback", "All/c2", "--transaction-of", "older").contains("nothing to do"))
      let unknown = ["rollback", "--all", "All", "--transaction-of", "unknown"]
      let none = try sandbox.drydock(unknown)
      #expect(none.exitCode == 1 && none.output.contains("7 containers: 7 unchanged"), "\(none)")
      #expect(none.errors.contains("no container has a transaction of run unknown"), "\(none)")
      let part = try sandbox.drydock(unknown + ["--run", "u", "--shard", "1/2"])
      #expect(part.succeeded && part.errors.contains("no container of shard 1/2 has a"), "\(part)")
      let one = try sandbox.drydock("rollback", "All/c2", "--transaction-of", "unknown")
      #expect(one.exitCode == 1 && one.errors.contains("has no transaction of run unknown"), "\(one)")
    }
  }

  @Test("A redo of what a run changed is undone with the run; versions before and after are known")
  func redone() throws {
    try with { sandbox in
      let before = try sandbox.tree("All/c2")
      try sandbox.succeed("migrate", "--all", "All", "--to", "2", "--run", "r1")
      let undone = try sandbox.drydock("rollback", "--all", "All", "--transaction-of", "r1")
      let name = try #require(
        undone.output.firstMatch(of: /run ([0-9a-f]{16}); `(.*)` undoes it/), "\(undone)")
      #expect(name.output.2 == "drydock rollback --all All --redo")
      let redone = try sandbox.drydock("rollback", "--all", "All", "--redo", "--json")
      let again = try sandbox.drydock("rollback", "--all", "All", "--transaction-of", "r1", "--json")
      #expect(try states(again).allSatisfy { $0.hasSuffix(" changed 0") }, "\(again)")
      try sandbox.tree("All/c2").expectSame(as: before)
      for (result, versions) in [(redone, [0, 2]), (again, [2, 0])] {
        for line in try lines(result.output).dropLast() {
          #expect([line["version_before"], line["version_after"]] as? [Int] == versions, "\(line)")
        }
      }
    }
  }

  @Test(
    "Results have times to milliseconds; quiet prints what failed and the sum; directories of results are made"
  )
  func results() throws {
    try with { sandbox in
      try sandbox.write("All/c3/" + Sandbox.settings, "bplist00 and no more")
      let result = try sandbox.drydock("migrate", "--all", "All", "-q", "--result", "new/results/1.jsonl")
      #expect(result.exitCode == 3 && result.output.split(separator: "\n").count == 2, "\(result)")
      #expect(result.output.hasPrefix("  c3") && result.output.contains("6 containers: 5 changed, 1 failed"))
      let text = String(decoding: try sandbox.read("new/results/1.jsonl"), as: UTF8.self)
      let times = try lines(text).compactMap { $0["time"] as? String }
      #expect(times.count == 6)
      #expect(times.allSatisfy { $0.wholeMatch(of: /[-0-9]{10}T[:0-9]{8}\.[0-9]{3}Z/) != nil }, "\(times)")
    }
  }

  @Test("A link that leads nowhere has failed; the others are done")
  func brokenLink() throws {
    try with { sandbox in
      try FileManager.default.createSymbolicLink(atPath: sandbox("All/away"), withDestinationPath: "gone")
      try sandbox.write("All/README", "text")
      let result = try sandbox.drydock("migrate", "--all", "All", "--json")
      #expect(try states(result).first == "away failed 1" && states(result).count == 7, "\(result)")
      #expect(result.exitCode == 3 && result.errors.contains("the link cannot be followed"), "\(result)")
      #expect(try lines(result.output).last?["passed_over"] as? [String] == ["README"])
    }
  }

  @Test(
    "A number that is none is refused with the reason",
    arguments: [
      ("--first", "200%", "give a percentage of at most 100%"), ("--first", "-1", "give a number such as 20"),
      ("--max-failures", "-1%", "give a percentage"), ("--max-failures", "1.5", "give a number such as 20"),
    ])
  func portions(_ option: String, _ value: String, _ reason: String) throws {
    try Sandbox.with { sandbox in
      let result = try sandbox.drydock("status", "--all", "All", option, value)
      #expect(result.exitCode == 64, "\(result)")
      #expect(
        result.errors.contains("the value '\(value)' is invalid for '\(option) <number>': \(reason)"),
        "\(result)")
    }
  }

  private static let slurm = [
    "SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1",
    "SLURM_ARRAY_TASK_MAX": "8", "SLURM_ARRAY_TASK_STEP": "1", "SLURM_ARRAY_TASK_COUNT": "8",
  ]

  @Test(
    "The scheduler's variables name the shard and the run",
    arguments: [
      ("slurm", slurm, "3/8", "slurm-77"),
      (
        "slurm",
        slurm.merging(
          [
            "SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_STEP": "4",
            "SLURM_ARRAY_TASK_COUNT": "3",
          ]
        ) { $1 }, "3/3", "slurm-77"
      ),
      ("kubernetes/5", ["JOB_COMPLETION_INDEX": "0", "HOSTNAME": "move-2026-0"], "1/5", "move-2026"),
      (
        "kubernetes",
        ["JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "5", "JOB_NAME": "move", "HOSTNAME": "x-4"], "5/5",
        "move"
      ),
    ] as [(String, [String: String], String, String)])
  func scheduler(_ option: String, _ variables: [String: String], _ shard: String, _ run: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.write("list", (1...40).map { "c\($0)\n" }.joined())
      let result = try sandbox.drydock(
        ["status", "--all", "list", "--json", "--shard", option], environment: variables)
      let last = try #require(try lines(result.output).last, "\(result)")
      #expect(last["shard"] as? String == shard && last["run"] as? String == run, "\(last)")
      let same = try sandbox.drydock("status", "--all", "list", "--json", "--run", "s", "--shard", shard)
      #expect(try states(result) == states(same) && !states(same).isEmpty)
    }
  }

  @Test(
    "Missing and impossible variables are a usage error that names them",
    arguments: [
      ("slurm", [:], "needs the variable SLURM_ARRAY_TASK_ID, which is not set; run it in a job array"),
      ("slurm", slurm.merging(["SLURM_ARRAY_TASK_MAX": ""]) { $1 }, "SLURM_ARRAY_TASK_MAX, which is not set"),
      (
        "slurm", slurm.merging(["SLURM_ARRAY_TASK_ID": "three"]) { $1 },
        "SLURM_ARRAY_TASK_ID is `three`, not a number"
      ),
      ("slurm", slurm.merging(["SLURM_ARRAY_TASK_ID": "9"]) { $1 }, "do not include 9"),
      (
        "slurm", slurm.merging(["SLURM_ARRAY_TASK_COUNT": "2"]) { $1 },
        "2 tasks from 1 to 8, which are not regular"
      ),
      ("slurm", slurm.merging(["SLURM_ARRAY_TASK_STEP": "0"]) { $1 }, "steps of 0"),
      ("slurm", slurm.merging(["SLURM_ARRAY_JOB_ID": "a b"]) { $1 }, "not the name of a run"),
      (
        "slurm", slurm.merging(["SLURM_ARRAY_TASK_STEP": ""]) { $1 },
        "SLURM_ARRAY_TASK_STEP, which is not set"
      ),
      (
        "slurm", slurm.merging(["SLURM_ARRAY_TASK_COUNT": ""]) { $1 },
        "SLURM_ARRAY_TASK_COUNT, which is not set"
      ),
      (
        "slurm", slurm.merging(["SLURM_ARRAY_JOB_ID": ""]) { $1 },
        "--shard slurm needs --run ID, because the variable SLURM_ARRAY_JOB_ID is not set: all jobs of a run"
      ),
      (
        "kubernetes/2", ["JOB_COMPLETION_INDEX": "1", "HOSTNAME": "elsewhere"],
        "needs --run ID, because the variable JOB_NAME is not set"
      ),
      ("1/3", [:], "--shard 1/3 needs --run ID: all jobs of a run have the same name"),
      ("kubernetes", [:], "JOB_COMPLETION_INDEX, which is not set"),
      ("kubernetes", ["JOB_COMPLETION_INDEX": "1"], "JOB_COMPLETIONS, which is not set; set it to"),
      ("kubernetes/2", ["JOB_COMPLETION_INDEX": "2"], "the completion index 2 is beyond 2 shards"),
      ("kubernetes/x", ["JOB_COMPLETION_INDEX": "0"], "x is not a number of shards"),
      ("3", [:], "is not a part of the work"), ("4/3", [:], "is not a part of the work"),
      ("pbs", [:], "is not a part of the work"),
    ] as [(String, [String: String], String)])
  func badScheduler(_ option: String, _ variables: [String: String], _ message: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.write("list", "a\n")
      let result = try sandbox.drydock(
        ["status", "--all", "list", "--shard", option], environment: variables)
      #expect(result.exitCode == 64 && result.errors.contains(message), "\(result)")
    }
  }

  @Test("A list names containers, from a file or standard input; a missing one has failed, and stops nothing")
  func list() throws {
    try with { sandbox in
      try sandbox.write("All/list", "c2\n# comment\n\ngone\n./c1/\n")
      let listed = try sandbox.drydock("status", "--all", "All/list", "--json")
      #expect(try states(listed) == ["c1 pending 0", "c2 pending 0", "gone failed 1"], "\(listed)")
      #expect(listed.exitCode == 3)
      let piped = try Command.run(
        "/bin/sh", ["-c", "printf 'All/c3\\n' | \"$0\" status --all - --json", sandbox.program],
        environment: sandbox.environment, directory: sandbox.directory.path)
      #expect(try states(piped) == ["All/c3 pending 0"], "\(piped)")
      let empty = try sandbox.drydock("status", "--all", "drydock.yaml")
      #expect(!empty.succeeded)
    }
  }

  @Test("A file of results has complete lines only, is appended to, and belongs to one job")
  func resultFile() throws {
    try with { sandbox in
      let status = ["status", "--all", "All", "--jobs", "1", "--result", "r.jsonl"]
      #expect(
        try sandbox.drydock(status + ["--json"]).output
          == String(decoding: sandbox.read("r.jsonl"), as: UTF8.self))
      let whole = try sandbox.read("r.jsonl")
      try sandbox.write("r.jsonl", bytes: whole + whole.prefix(100))
      #expect(try sandbox.drydock(status).succeeded)
      let text = String(decoding: try sandbox.read("r.jsonl"), as: UTF8.self)
      #expect(try lines(text).count == 14 && text.hasPrefix(String(decoding: whole, as: UTF8.self)))

      let holder = try Command.spawn(
        Tools.system("python3"),
        [
          "-c",
          "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('locked', flush=True); "
            + "sys.stdin.read()", sandbox("r.jsonl"),
        ])
      try holder.waitForLine("locked")
      let locked = try sandbox.drydock(status)
      #expect(
        locked.exitCode == 5 && locked.errors.contains("another job writes its results here"), "\(locked)")
      for (path, message) in [
        ("drydock.yaml", "exists, and has no results"), ("All", "cannot be written"),
        ("/dev/null", "not a regular file"),
        ("drydock.yaml/r.jsonl", "cannot be written"), ("", "needs the name of a file"),
      ] {
        let result = try sandbox.drydock("status", "--all", "All", "--result", path)
        #expect(!result.succeeded && result.errors.contains(message), "\(result)")
      }
      #expect(String(decoding: try sandbox.read("drydock.yaml"), as: UTF8.self).contains("migrations:"))
    }
  }

  @Test("Results that do not fit on their disk are missing as whole lines, and the job has not succeeded")
  func fullResults() throws {
    try with { sandbox in
      let disk = try Namespace(sandbox, #"cd "$0"; mkdir Disk; mount -t tmpfs -o size=4k none Disk"#)
      let result = try disk.drydock("status", "--all", "All", "--result", "Disk/r.jsonl")
      #expect(result.exitCode == 1 && result.output.contains("6 containers: 6 pending"), "\(result)")
      #expect(result.errors.contains("Disk/r.jsonl: cannot write: No space left on device"), "\(result)")
      let kept = try disk.run("/bin/cat", ["Disk/r.jsonl"]).output
      #expect(kept.isEmpty || kept.hasSuffix("\n"))
      #expect(try lines(kept).count < 7)
    }
  }

  @Test("A snapshot of a run is taken once for each container, also of copies with one instance")
  func snapshots() throws {
    try with { sandbox in
      let snapshot = ["snapshot", "--all", "All", "-r", "Backups", "--run", "night-1", "--json"]
      try FileManager.default.moveItem(atPath: sandbox("All/c4"), toPath: sandbox("c4"))
      #expect(try states(sandbox.drydock(snapshot)).allSatisfy { $0.hasSuffix(" changed 0") })
      // A job that was killed before its last container, and is run again.
      try FileManager.default.moveItem(atPath: sandbox("c4"), toPath: sandbox("All/c4"))
      let again = try sandbox.drydock(snapshot)
      #expect(
        try states(again) == Self.names.map { "\($0) \($0 == "c4" ? "changed" : "unchanged") 0" }, "\(again)")
      #expect(try states(sandbox.drydock(snapshot)).allSatisfy { $0.hasSuffix(" unchanged 0") })
      let next = try sandbox.drydock(
        "snapshot", "--all", "All", "-r", "Backups", "--run", "night-2", "--json")
      #expect(try states(next).allSatisfy { $0.hasSuffix(" changed 0") })
      let archives = try sandbox.names("Backups").filter { $0.hasSuffix(".tar.zst") }
      #expect(archives.count == 12)

      let verified = try sandbox.drydock("verify", "--all", "All", "-r", "Backups", "--data", "--json")
      #expect(try verified.succeeded && states(verified).count == 6, "\(verified)")
      try FileManager.default.createDirectory(atPath: sandbox("Empty"), withIntermediateDirectories: false)
      let none = try sandbox.drydock("verify", "--all", "All", "-r", "Empty")
      #expect(none.exitCode == 1 && none.output.contains("no archive of this container"), "\(none)")
      for shard in 1...2 {
        try sandbox.succeed(
          "verify", "-r", "Backups", "--run", "v", "--shard", "\(shard)/2", "--result", "v\(shard).jsonl")
      }
      let (code, document) = try summary(sandbox, ["v1.jsonl", "v2.jsonl"])
      #expect(code == 0 && document["containers"] as? Int == 12 && document["kind"] as? String == "archive")
      #expect(try sandbox.drydock("snapshot", "--all", "All", "-o", "x.tar.zst").exitCode == 64)
    }
  }

  @Test("Audits of many containers and shards of fixtures are results like others")
  func others() throws {
    try with { sandbox in
      try sandbox.succeed("audit", "--all", "All", "--result", "a.jsonl")
      let failed = try sandbox.drydock("audit", "--all", "All", "--fail-on", "warning", "--result", "b.jsonl")
      #expect(failed.exitCode == 4, "\(failed)")
      let (code, audit) = try summary(sandbox, ["b.jsonl"])
      let causes = try #require(audit["failures"] as? [[String: Any]])
      #expect(code == 4 && causes.count == 1 && causes[0]["count"] as? Int == 6, "\(audit)")
      #expect(try sandbox.drydock("audit", "--all", "All", "--html", "x.html").exitCode == 64)
    }
    try Sandbox.with { sandbox in
      for name in ["v0", "v3"] { try sandbox.addFixture(name) }
      for shard in 1...2 {
        let result = try sandbox.drydock(
          "test", "--run", "t", "--shard", "\(shard)/2", "--result", "\(shard).jsonl")
        #expect(result.succeeded, "\(result)")
      }
      let (code, document) = try summary(sandbox, ["1.jsonl", "2.jsonl"])
      #expect(code == 0 && document["containers"] as? Int == 2, "\(document)")
      #expect(try sandbox.succeed("summary", "1.jsonl", "2.jsonl").contains("2 fixtures: 2 unchanged"))
      try sandbox.write("Fixtures/v0/expected/7/defaults.yaml", "other: 1\n")
      #expect(try sandbox.drydock("test", "--result", "3.jsonl").exitCode == 1)
      let failed = try sandbox.drydock("summary", "3.jsonl")
      #expect(
        failed.exitCode == 1 && failed.output.contains("2 fixtures: 1 unchanged, 1 failed"), "\(failed)")
    }
  }
}
