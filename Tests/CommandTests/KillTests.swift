import Foundation
import TestSupport
import Testing

/// The real program, killed: at every step of a commit, and at random moments. A container is wholly old or wholly
/// new before any other command runs, and the next command says which.
@Suite struct KillTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// The steps of a commit, and how a kill right after each leaves the container.
  static let steps: [(String, KillScene.Outcome)] = [
    ("staged", .old), ("checked", .old), ("tree-built", .old), ("synced", .old), ("rewalked", .old),
    ("committed", .old), ("marked", .new), ("found-unused", .new), ("exchanged", .new), ("merged", .new),
    ("undo-kept", .new), ("old-removed", .new), ("done", .new),
  ]

  /// In place, after COMMIT it goes forward only; each single move is a step, of which every third is tried unless all
  /// are asked for.
  static let stepsInPlace: [(String, KillScene.Outcome)] =
    [
      ("staged", .old), ("checked", .old), ("tree-built", .old), ("synced", .old), ("rewalked", .old),
      ("committed", .new), ("marked", .new), ("found-unused", .new), ("placed", .new), ("merged", .new),
      ("undo-kept", .new), ("old-removed", .new), ("done", .new),
    ] + stride(from: 1, through: 40, by: TestExtent.isFull ? 1 : 3).map { ("moved:\($0)", .new) }

  /// Steps that one of the two ways does not have, or one of the operations.
  static let specialSteps = ["partly-exchanged", "exchanged", "moved", "reverted", "placed", "sealed"]
  /// A migration moves a setting into the vault: what is kept of it is sealed file by file.
  static let stepsOfSealing: [(String, KillScene.Outcome)] = (1...4).map { ("sealed:\($0)", .new) }

  @Test(arguments: KillScene.Operation.tried, ["exchange", "in-place"])
  func `At every step of a commit`(_ operation: KillScene.Operation, _ way: String) throws {
    let sandbox = self.sandbox.with(commit: way)
    let scene = try KillScene(operation, in: sandbox)
    // The program itself names the steps: one that is new must be tried here too.
    let known = try sandbox.drydock(scene.arguments, environment: ["DRYDOCK_KILL_AT": "?"]).expect(exit: 64)
    let list = known.errors.trimmingCharacters(in: .newlines).split(separator: "one of ").last ?? ""
    let common = list.split(separator: ", ").map(String.init).filter { !Self.specialSteps.contains($0) }
    #expect(common == Self.steps.map(\.0).filter { !Self.specialSteps.contains($0) })

    var moves = 0
    let steps = (way == "exchange" ? Self.steps : Self.stepsInPlace)
    let sealing = Self.stepsOfSealing.prefix(operation == .migrate ? 4 : operation == .rollback ? 2 : 0)
    for (number, (step, wanted)) in (sealing + steps).enumerated() {
      let before = try scene.reset()
      let result = try sandbox.drydock(scene.arguments, environment: ["DRYDOCK_KILL_AT": step])
      // There are not that many moves.
      if result.succeeded && step.hasPrefix("moved:") && moves > 2 { break }
      if step.hasPrefix("moved:") { moves += 1 }
      #expect(result.signal == SIGKILL, "\(operation), \(step): \(result)")
      let outcome = try scene.outcome(before, step)
      #expect(outcome == wanted, "\(operation), \(step)")
      let interrupted = Journal(sandbox).interrupted
      #expect((interrupted == nil) == (step == "done"), "\(operation), \(step)")
      guard let outcome else { continue }
      let next = number.isMultiple(of: 2) ? "log" : "recover"
      try scene.checkWhatFollows(
        outcome, interrupted: interrupted, next: [next, KillScene.trial], before, step)
    }
  }

  @Test func `A tree that is neither old nor new is noticed`() throws {
    let scene = try KillScene(.migrate, in: sandbox)
    let trial = KillScene.trial
    let touch = try Tools.system("touch")
    let damages: [() throws -> Void] = [
      { try sandbox.remove("\(trial)/Documents/private.txt") },
      { try sandbox.write("\(trial)/Documents/new.txt", "new\n") },
      { try sandbox.run(touch, sandbox("\(trial)/Documents/private.txt")) },
      { try sandbox.run(touch, "-h", sandbox("\(trial)/Documents/Latest.md")) },
      {
        try sandbox.write(
          "\(trial)/\(Sandbox.settings)", bytes: try sandbox.read("\(trial)/\(Sandbox.settings)").reversed()
        )
      },
    ]
    for isMigrated in [false, true] {
      for damage in damages {
        let before = try scene.reset()
        if isMigrated { try sandbox.succeed("migrate", trial) }
        #expect(try scene.standing(before).outcome == (isMigrated ? .new : .old))
        try damage()
        #expect(try scene.standing(before).outcome == nil)
      }
    }
  }

  @Test func `A mixture is read by nobody`() throws {
    let sandbox = self.sandbox.with(commit: "in-place")
    try sandbox.create("Trial", version: 0, "--leave-wal")
    try sandbox.kill("migrate Trial", at: "moved:3")
    // Somebody who reads keeps the recovery out.
    let holder = try sandbox.lock("Trial", shared: true)
    for reader in ["inspect Trial", "snapshot Trial -r Backups", "migrate Trial --dry-run", "status Trial"] {
      try sandbox.drydock(reader).expectError(exit: 5, ["Trial", "interrupted", "drydock recover"])
    }
    try holder.finish()
    // Nobody in the way: it is recovered first.
    try sandbox.drydock("snapshot Trial -r Backups").expect(errors: "recovered")
    #expect(sandbox.exists("Trial/" + Sandbox.newDatabase) && !sandbox.exists("Trial/" + Sandbox.oldDatabase))
  }
}

/// One after the other: what is measured of a complete run determines when the next one is killed. Tests of a serialized suite
/// run after all others, so that it has only those that need it.
@Suite(.serialized) struct RandomKillTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// Kills that hit; a program that had ended already does not count.
  static let killsPerOperation = TestExtent.isFull ? 22 : 4

  @Test(arguments: KillScene.Operation.tried, ["exchange", "in-place"])
  func `At random moments`(_ operation: KillScene.Operation, _ way: String) throws {
    let sandbox = self.sandbox.with(commit: way)
    let scene = try KillScene(operation, in: sandbox, runs: 3)
    var random = SeededRandom(seed: 0x6472_7964)
    var counts: [String: Int] = [:]
    var (kills, attempts) = (0, 0)
    // A test whose kills all came too early or too late would prove nothing: then it goes on for a while.
    while attempts < 200,
      kills < Self.killsPerOperation || counts["old"] == nil || counts["new"] == nil
    {
      attempts += 1
      let context = "attempt \(attempts)"
      let before = try scene.reset()
      let result = try startAndKill(scene, attempts, &random)
      #expect(result.signal == SIGKILL || result.succeeded, "\(operation), \(context): \(result)")
      guard let outcome = try scene.outcome(before, context), result.signal != nil else { continue }
      kills += 1
      let interrupted = Journal(sandbox).interrupted
      counts[interrupted == nil ? "\(outcome) with nothing begun or all done" : "\(outcome)", default: 0] +=
        1
      try scene.checkWhatFollows(
        outcome, interrupted: interrupted,
        next: [kills.isMultiple(of: 2) ? "log" : "recover", KillScene.trial], before, context)
    }
    let text = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    print("\(operation) \(way): \(kills) kills in \(attempts) runs: \(text)")
    #expect(kills >= Self.killsPerOperation && counts["old"] != nil && counts["new"] != nil, "\(text)")
  }

  /// One in five is killed anywhere from the program's start on; the others between the records of its journal, so
  /// that staging and commit are hit however short they are beside the rest.
  private func startAndKill(
    _ scene: KillScene, _ attempt: Int, _ random: inout SeededRandom
  ) throws -> CommandResult {
    let duration = scene.duration
    let (records, span) =
      switch attempt % 5 {
      case 0: (0, duration.end)
      case 1, 2: (1, duration.commit - duration.begin)
      default: (2, duration.end - duration.commit)
      }
    let journal = Journal(scene.sandbox)
    let running = try scene.sandbox.start(scene.arguments)
    while running.isRunning, journal.records < records { usleep(50) }
    usleep(UInt32(Double.random(in: 0...max(span, 0), using: &random) * 1e6))
    running.kill()
    return try running.wait()
  }

  @Test(arguments: [["inspect", "Notes"], ["migrate", "Notes", "--dry-run"], ["show", "{A}"]])
  func `What only looks leaves nothing for longer than until the next look`(_ command: [String]) throws {
    try sandbox.create("Notes", version: 0, "--leave-wal", "--bulk-mb", "4")
    let archive = try sandbox.snapshot()
    let arguments = command.map { $0 == "{A}" ? archive : $0 }
    let before = try sandbox.tree()
    var left = 0
    for _ in 0..<5 {
      let running = try sandbox.start(arguments)
      while running.isRunning, try sandbox.names("tmp").isEmpty { usleep(20) }
      running.kill()
      _ = try running.wait()
      if try !sandbox.names("tmp").isEmpty { left += 1 }
      try sandbox.succeed(arguments)
      #expect(try sandbox.names("tmp") == [])
    }
    #expect(left > 0, "no kill came while there was something to leave")
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
  }
}
