import Foundation
import TestSupport
import Testing

/// Many processes that share the work of one run, as a scheduler starts them. Lists of containers, and what is refused, are in
/// the session `fleet.txt`.
@Suite struct FleetTests {
  private let sandbox: Sandbox

  /// Six containers in `All`, copies of one.
  init() throws {
    sandbox = try Sandbox(creating: "All/c1", photos: 0)
    try sandbox.shell("for n in 2 3 4 5 6; do cp -a All/c1 All/c$n; done")
  }

  private static let names = (1...6).map { "c\($0)" }

  private func states(_ result: CommandResult) throws -> [String] {
    try JSONNode.lines(result.output).filter { $0["container"].exists }.map {
      "\($0["container"]) \($0["state"]) \($0["exit_code"])"
    }
  }

  private func summary(_ files: [String], exit: Int32 = 0) throws -> JSONNode {
    try sandbox.drydock(["summary", "--json"] + files).expect(exit: exit).json()
  }

  @Test func `Shards do all containers once, also when one was killed and is run again`() throws {
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
    try sandbox.kill(migrate(largest), at: "exchanged:2")
    for run in runs { try run.wait().expect() }
    let files = (1...3).map { "\($0).jsonl" }
    let first = try summary(files, exit: 3)
    #expect(first["shards"][0]["incomplete"].texts == ["\(largest)/3"], "\(first)")
    try sandbox.drydock(["summary"] + files).expect(
      exit: 3,
      errors:
        "did not finish, or results of it are missing; run it again with --shard \(largest)/3 --run r1")

    try sandbox.drydock(migrate(largest)).expect(errors: "its change is now complete")
    let second = try summary(files)
    #expect(second["containers"].number == Self.names.count && second["changed_again_count"].number == 0)
    // Also the one that the killed job could not record.
    #expect(second["states"]["changed"].number == Self.names.count, "\(second)")
    for name in Self.names {
      let log = try sandbox.document("log", "All/" + name)["transactions"]
      #expect(log.list.count == 1 && log[0]["run"].text == "r1", "\(log)")
    }
  }

  @Test func `A wave does the first ones by hash; too many failures end the run`() throws {
    let wave = ["migrate", "--all", "All", "--json", "--first", "2"]
    let first = try sandbox.drydock(wave).expect(errors: "4 containers left for later")
    let chosen = try states(first)
    #expect(chosen.count == 2 && chosen.allSatisfy { $0.contains("changed 0") })
    #expect(try JSONNode.lines(first.output).last?["left_out"].number == 4)
    // A percentage is rounded up; and it is the same containers each time.
    let same = try states(sandbox.drydock("migrate --all All --json --first 30%"))
    #expect(same == chosen.map { $0.replacing("changed", with: "unchanged") })

    for name in Self.names { try sandbox.write("All/\(name)/" + Sandbox.settings, "bplist00 and no more") }
    // Half of six may fail; a number is in the session `fleet.txt`.
    let stopped = try sandbox.drydock("migrate --all All --jobs 1 --json --max-failures 50%").expect(exit: 3)
    let failed = try states(stopped)
    #expect(failed.filter { $0.hasSuffix("failed 1") }.count == 4, "\(failed)")
    #expect(failed.filter { $0.hasSuffix("skipped 3") }.count == 2, "\(failed)")
    // That all fail alike is their failure's code.
    try sandbox.drydock("migrate --all All --jobs 1 --json --max-failures 100%").expect(exit: 1)
  }

  @Test func `What a run changed is rolled back in each container, unless something followed; once`() throws {
    let before = try sandbox.tree("All/c2")
    try sandbox.succeed("migrate --all All --to 2 --run older")
    let older = try sandbox.tree("All/c2")
    // Three transactions of one run.
    try sandbox.succeed("migrate --all All --to 5 --each --run newer")
    try sandbox.succeed("migrate All/c1 --to 6")
    try sandbox.create("All/c7", photos: 0)
    let undo = ["rollback", "--all", "All", "--transaction-of", "newer", "--json"]
    let dry = try sandbox.drydock(undo + ["--dry-run"])
    #expect(try states(dry)[1] == "c2 pending 0", "\(dry)")
    let result = try sandbox.drydock(undo).expect(exit: 3, errors: "a later transaction is not of run newer")
    #expect(
      try states(result) == [
        "c1 failed 6", "c2 changed 0", "c3 changed 0", "c4 changed 0", "c5 changed 0", "c6 changed 0",
        "c7 unchanged 0",
      ], "\(result)")
    try sandbox.tree("All/c2").expectSame(as: older)
    #expect(try states(sandbox.drydock(undo))[1...].allSatisfy { $0.hasSuffix("unchanged 0") })
    // The one before is the newest now.
    try sandbox.succeed("rollback All/c2 --transaction-of older")
    try sandbox.tree("All/c2").expectSame(as: before)
    try sandbox.drydock("rollback All/c2 --transaction-of older").expect(output: "nothing to do")
    try sandbox.drydock("rollback All/c2 --transaction-of unknown").expect(
      exit: 1, errors: "has no transaction of run unknown")
  }

  @Test func `A redo of what a run changed is undone with the run`() throws {
    let before = try sandbox.tree("All/c2")
    try sandbox.succeed("migrate --all All --to 2 --run r1")
    let undone = try sandbox.drydock("rollback --all All --transaction-of r1")
    let name = try #require(undone.output.firstMatch(of: /run ([0-9a-f]{16}); `(.*)` undoes it/), "\(undone)")
    #expect(name.output.2 == "drydock rollback --all All --redo")
    let redone = try sandbox.drydock("rollback --all All --redo --json")
    let again = try sandbox.drydock("rollback --all All --transaction-of r1 --json")
    #expect(try states(again).allSatisfy { $0.hasSuffix(" changed 0") }, "\(again)")
    try sandbox.tree("All/c2").expectSame(as: before)
    for (result, versions) in [(redone, [0, 2]), (again, [2, 0])] {
      for line in try JSONNode.lines(result.output).dropLast() {
        #expect([line["version_before"].number, line["version_after"].number] == versions, "\(line)")
      }
    }
  }

  @Test func `A list's containers are relative to its directory; directories of results are made`() throws {
    try sandbox.write("All/list", "c2\n# comment\n\ngone\n./c1/\n")
    let listed = try sandbox.drydock("status --all All/list --json").expect(exit: 3)
    #expect(try states(listed) == ["c1 pending 0", "c2 pending 0", "gone failed 1"], "\(listed)")
    try sandbox.succeed("status --all All --result new/results/1.jsonl")
    let times = try JSONNode.lines(sandbox.text("new/results/1.jsonl")).compactMap { $0["time"].text }
    #expect(times.count == 6)
    #expect(times.allSatisfy { $0.wholeMatch(of: /[-0-9]{10}T[:0-9]{8}\.[0-9]{3}Z/) != nil }, "\(times)")
  }

  /// Variables of an array job of Slurm, some of them changed.
  private static func slurm(_ changes: [String: String] = [:]) -> [String: String] {
    let usual = [
      "JOB_ID": "77", "TASK_ID": "3", "TASK_MIN": "1", "TASK_MAX": "8", "TASK_STEP": "1", "TASK_COUNT": "8",
    ]
    let all = usual.merging(changes) { $1 }
    return Dictionary(uniqueKeysWithValues: all.map { ("SLURM_ARRAY_" + $0.key, $0.value) })
  }

  private static let schedulers: [(option: String, variables: [String: String], shard: String, run: String)] =
    [
      ("slurm", slurm(), "3/8", "slurm-77"),
      (
        "slurm", slurm(["TASK_ID": "8", "TASK_MIN": "0", "TASK_STEP": "4", "TASK_COUNT": "3"]), "3/3",
        "slurm-77"
      ),
      ("kubernetes/5", ["JOB_COMPLETION_INDEX": "0", "HOSTNAME": "move-2026-0"], "1/5", "move-2026"),
      (
        "kubernetes",
        ["JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "5", "JOB_NAME": "move", "HOSTNAME": "x-4"], "5/5",
        "move"
      ),
    ]

  @Test func `The scheduler's variables name the shard and the run`() throws {
    try sandbox.write("list", (1...40).map { "c\($0)\n" }.joined())
    for (option, variables, shard, run) in Self.schedulers {
      let result = try sandbox.drydock(
        ["status", "--all", "list", "--json", "--shard", option], environment: variables)
      let last = try #require(try JSONNode.lines(result.output).last, "\(result)")
      #expect(last["shard"].text == shard && last["run"].text == run, "\(last)")
      let same = try sandbox.drydock("status", "--all", "list", "--json", "--run", "s", "--shard", shard)
      #expect(try states(result) == states(same) && !states(same).isEmpty)
    }
  }

  private static let wrongSchedulers: [(option: String, variables: [String: String], message: String)] = [
    ("slurm", slurm(["TASK_MAX": ""]), "SLURM_ARRAY_TASK_MAX, which is not set"),
    ("slurm", slurm(["TASK_ID": "three"]), "SLURM_ARRAY_TASK_ID is `three`, not a number"),
    ("slurm", slurm(["TASK_ID": "9"]), "do not include 9"),
    ("slurm", slurm(["TASK_COUNT": "2"]), "2 tasks from 1 to 8, which are not regular"),
    ("slurm", slurm(["TASK_STEP": "0"]), "steps of 0"),
    ("slurm", slurm(["JOB_ID": "a b"]), "not the name of a run"),
    ("slurm", slurm(["TASK_STEP": ""]), "SLURM_ARRAY_TASK_STEP, which is not set"),
    ("slurm", slurm(["TASK_COUNT": ""]), "SLURM_ARRAY_TASK_COUNT, which is not set"),
    (
      "slurm", slurm(["JOB_ID": ""]),
      "--shard slurm needs --run ID, because the variable SLURM_ARRAY_JOB_ID is not set: all jobs of a run"
    ),
    (
      "kubernetes/2", ["JOB_COMPLETION_INDEX": "1", "HOSTNAME": "elsewhere"],
      "needs --run ID, because the variable JOB_NAME is not set"
    ),
    ("kubernetes", ["JOB_COMPLETION_INDEX": "1"], "JOB_COMPLETIONS, which is not set; set it to"),
    ("kubernetes/2", ["JOB_COMPLETION_INDEX": "2"], "the completion index 2 is beyond 2 shards"),
    ("kubernetes/x", ["JOB_COMPLETION_INDEX": "0"], "x is not a number of shards"),
    ("3", [:], "is not a part of the work"),
    ("pbs", [:], "is not a part of the work"),
  ]

  @Test func `Missing and impossible variables are a usage error that names them`() throws {
    try sandbox.write("list", "a\n")
    for (option, variables, message) in Self.wrongSchedulers {
      try sandbox.drydock(["status", "--all", "list", "--shard", option], environment: variables).expect(
        exit: 64, errors: message)
    }
  }

  @Test func `A file of results has complete lines only, is appended to, and belongs to one job`() throws {
    let status = ["status", "--all", "All", "--jobs", "1", "--result", "r.jsonl"]
    #expect(try sandbox.drydock(status + ["--json"]).output == sandbox.text("r.jsonl"))
    let whole = try sandbox.read("r.jsonl")
    try sandbox.write("r.jsonl", bytes: whole + whole.prefix(100))
    try sandbox.succeed(status)
    let text = try sandbox.text("r.jsonl")
    #expect(try JSONNode.lines(text).count == 14 && text.hasPrefix(String(decoding: whole, as: UTF8.self)))

    let holder = try sandbox.lock("r.jsonl")
    defer { holder.kill() }
    try sandbox.drydock(status).expect(exit: 5, errors: "another job writes its results here")
    for (path, message) in [
      ("drydock.yaml", "exists, and has no results"), ("All", "cannot be written"),
      ("/dev/null", "not a regular file"),
      ("drydock.yaml/r.jsonl", "cannot be written"), ("", "needs the name of a file"),
    ] {
      let result = try sandbox.drydock("status", "--all", "All", "--result", path)
      #expect(!result.succeeded && result.errors.contains(message), "\(result)")
    }
    #expect(try sandbox.text("drydock.yaml").contains("migrations:"))
  }

  @Test func `Results that do not fit on their disk are missing as whole lines, and the job fails`() throws {
    let disk = try Namespace(sandbox, #"cd "$0"; mkdir Disk; mount -t tmpfs -o size=4k none Disk"#)
    try disk.drydock("status --all All --result Disk/r.jsonl").expect(
      exit: 1, output: "6 containers: 6 pending",
      errors: "Disk/r.jsonl: cannot write: No space left on device")
    let kept = try disk.run("/bin/cat", ["Disk/r.jsonl"]).output
    #expect(kept.isEmpty || kept.hasSuffix("\n"))
    #expect(try JSONNode.lines(kept).count < 7)
  }

  @Test func `A run takes one snapshot of each container, also of copies with one instance`() throws {
    let snapshot = ["snapshot", "--all", "All", "-r", "Backups", "--run", "night-1", "--json"]
    try FileManager.default.moveItem(atPath: sandbox("All/c4"), toPath: sandbox("c4"))
    #expect(try states(sandbox.drydock(snapshot)).allSatisfy { $0.hasSuffix(" changed 0") })
    // A job that was killed before its last container, and is run again.
    try FileManager.default.moveItem(atPath: sandbox("c4"), toPath: sandbox("All/c4"))
    let again = try sandbox.drydock(snapshot)
    #expect(
      try states(again) == Self.names.map { "\($0) \($0 == "c4" ? "changed" : "unchanged") 0" }, "\(again)")
    #expect(try states(sandbox.drydock(snapshot)).allSatisfy { $0.hasSuffix(" unchanged 0") })
    let next = try sandbox.drydock("snapshot --all All -r Backups --run night-2 --json")
    #expect(try states(next).allSatisfy { $0.hasSuffix(" changed 0") })
    let archives = try sandbox.names("Backups").filter { $0.hasSuffix(".tar.zst") }
    #expect(archives.count == 12)

    let verified = try sandbox.drydock("verify --all All -r Backups --data --json").expect()
    #expect(try states(verified).count == 6, "\(verified)")
    try RawFiles.createDirectories(sandbox("Empty"))
    try sandbox.drydock("verify --all All -r Empty").expect(exit: 1, output: "no archive of this container")
    for shard in 1...2 {
      try sandbox.succeed(
        "verify", "-r", "Backups", "--run", "v", "--shard", "\(shard)/2", "--result", "v\(shard).jsonl")
    }
    let document = try summary(["v1.jsonl", "v2.jsonl"])
    #expect(document["containers"].number == 12 && document["kind"].text == "archive")
    try sandbox.drydock("snapshot --all All -o x.tar.zst").expect(exit: 64)
  }

  @Test func `Audits of many containers and shards of fixtures are results like others`() throws {
    try sandbox.succeed("audit --all All --result a.jsonl")
    try sandbox.drydock("audit --all All --fail-on warning --result b.jsonl").expect(exit: 4)
    let audit = try summary(["b.jsonl"], exit: 4)
    #expect(audit["failures"].list.count == 1 && audit["failures"][0]["count"].number == 6, "\(audit)")
    try sandbox.drydock("audit --all All --html x.html").expect(exit: 64)
    try Sandbox.with { sandbox in
      for name in ["v0", "v3"] { try sandbox.addFixture(name) }
      for shard in 1...2 {
        try sandbox.succeed("test", "--run", "t", "--shard", "\(shard)/2", "--result", "\(shard).jsonl")
      }
      try sandbox.drydock("summary 1.jsonl 2.jsonl").expect(output: "2 fixtures: 2 unchanged")
      try sandbox.write("Fixtures/v0/expected/7/defaults.yaml", "other: 1\n")
      try sandbox.drydock("test --result 3.jsonl").expect(exit: 1)
      try sandbox.drydock("summary 3.jsonl").expect(exit: 1, output: "2 fixtures: 1 unchanged, 1 failed")
    }
  }
}
