import Foundation
import TestSupport
import Testing

/// One operation on a container, prepared once and then killed many times on fresh copies: what the container is
/// before it, and what it is after it.
struct KillScene {
  enum Operation: String, CaseIterable, Sendable {
    case migrate, restore, rollback

    /// A commit is the same whatever it changes; in a restore and a rollback the tests of transactions stop it at every point.
    static let tried = TestExtent.isFull ? allCases : [.migrate]
  }

  /// How a killed operation left the container.
  enum Outcome: String {
    case old, new
  }

  let sandbox: Sandbox
  let operation: Operation
  let arguments: [String]
  /// What the operation makes of a copy, and how that copy was before.
  private let reference: (before: TreeListing, after: TreeListing)
  /// Seconds from the start of a complete run to its journal's first record, its second, and its end.
  let duration: (begin: Double, commit: Double, end: Double)

  static let trial = "Trial"
  /// Where a commit in place keeps its state.
  private static let inside = ".drydock-state"
  /// The history names times and the transaction; everything else is the same in every run.
  private static let history = "Library/Application Support/.drydock/history.json"
  /// Sealed anew, a vault is another file each time.
  private static let vault = "Library/Vault/vault.age"

  /// - Parameter runs: complete runs, of which one is like the others but for its time.
  init(_ operation: Operation, in sandbox: Sandbox, runs: Int = 1) throws {
    self.sandbox = sandbox
    self.operation = operation
    // Named like the trials: the state beside a container is found by the container's name.
    let trial = Self.trial
    switch operation {
    case .migrate:
      arguments = ["migrate", trial]
      // As an app leaves it that was killed itself: rows that are in the log only.
      try sandbox.create(trial, version: 0, "--leave-wal")
      // What this keeps holds the token, too.
      try sandbox.succeed("migrate", trial, "--to", "2")
    case .restore:
      try sandbox.create(trial, version: 4)
      let archive = try sandbox.snapshot(trial)
      arguments = ["restore", archive, trial]
      try sandbox.remove("\(trial)/Documents/private.txt")
      try sandbox.remove("\(trial)/Documents/Photos")
      try sandbox.write("\(trial)/Documents/empty.txt", "no longer\n")
      try sandbox.write("\(trial)/Documents/Stranger/new.txt", "a stranger\n")
      try sandbox.write("\(trial)/Library/Caches/fresh.bin", "preserved\n")
      try sandbox.run(sandbox.app, "touch-settings", sandbox(trial), "theme", "light")
      try sandbox.sqlite("\(trial)/\(Sandbox.newDatabase)", "DELETE FROM task; PRAGMA user_version = 9")
    case .rollback:
      try sandbox.create(trial, version: 0, "--leave-wal")
      try sandbox.succeed("migrate", trial)
      try sandbox.run(sandbox.app, "touch-settings", sandbox(trial), "lastSearch", "dock")
      arguments = ["rollback", trial]
    }
    try sandbox.run(Tools.system("mv"), "--", sandbox(trial), sandbox("Template"))
    // A state in the container moves with it.
    if let state = try Self.state(in: sandbox), !state.hasSuffix(Self.inside) {
      try sandbox.run(Tools.system("mv"), "--", sandbox(state), sandbox("TemplateState"))
    }

    var durations: [(Double, Double, Double)] = []
    var listings: (TreeListing, TreeListing)?
    for _ in 0..<runs {
      try Self.reset(sandbox)
      let before = try Self.tree(sandbox)
      let journal = Journal(sandbox)
      let start = Date()
      let running = try sandbox.start(arguments)
      let moments = [1, 2].map { count in
        while running.isRunning, journal.records < count { usleep(100) }
        return Date().timeIntervalSince(start)
      }
      let result = try running.wait()
      durations.append((moments[0], moments[1], Date().timeIntervalSince(start)))
      guard result.succeeded else { throw SystemFailure("\(operation): \(result)") }
      listings = (before, try Self.tree(sandbox))
    }
    durations.sort { $0.2 < $1.2 }
    duration = durations[runs / 2]
    guard let listings else { throw SystemFailure("no complete run") }
    reference = listings
    guard !reference.after.differences(from: reference.before).isEmpty else {
      throw SystemFailure("\(operation) changes nothing here: a kill would prove nothing")
    }
  }

  /// A fresh copy of the container and its state, as if nothing had happened yet; gives how it looks.
  func reset() throws -> TreeListing {
    try Self.reset(sandbox)
    return try Self.tree(sandbox)
  }

  private static func tree(_ sandbox: Sandbox) throws -> TreeListing {
    try sandbox.tree(trial).without(inside)
  }

  private static let stateName = Result { try Sandbox.state(of: trial) }

  private static func reset(_ sandbox: Sandbox) throws {
    try sandbox.shell(
      """
      rm -rf \(trial) .drydock-*; rm -rf tmp; mkdir tmp; cp -a Template \(trial)
      if [ -e TemplateState ]; then cp -a TemplateState \(stateName.get()); fi
      """)
  }

  // MARK: Judging

  /// How the container stands, before any other command has looked at it; what is neither wholly old nor wholly
  /// new is recorded. While a commit in place is half done it may be a mixture: then it will be new.
  func outcome(_ before: TreeListing, _ context: String) throws -> Outcome? {
    if Journal(sandbox).isHalfDone { return .new }
    let (outcome, report) = try standing(before)
    if outcome == nil { Issue.record("\(operation), \(context): neither old nor new\n\(report)") }
    return outcome
  }

  /// How the container stands; neither old nor new is nil, and a report of what differs from both.
  func standing(_ before: TreeListing) throws -> (outcome: Outcome?, report: String) {
    let now = try Self.tree(sandbox)
    let fromOld = now.differences(
      from: before, comparing: TreeListing.untouched.subtracting([.changed]), ignoringTimesOf: timesOfTheState
    )
    if fromOld.isEmpty { return (.old, "") }
    let fromNew = differencesFromNew(now, ignoringTimesOf: Journal(sandbox).above)
    if fromNew.isEmpty { return (.new, "") }
    return (nil, (["From the old one:"] + fromOld + ["From the new one:"] + fromNew).joined(separator: "\n"))
  }

  /// Where the state in the container is made or removed, the root's time moves and is put back: a kill just then leaves
  /// it moved (Transactions, "In place"). Once a transaction has begun nothing of the kind is forgiven.
  private var timesOfTheState: [String] {
    sandbox.commit == "in-place" && !Journal(sandbox).hasBegun ? [""] : []
  }

  /// What differs from the result of a complete run. Times count where a complete run keeps them.
  func differencesFromNew(_ now: TreeListing, ignoringTimesOf others: [String] = []) -> [String] {
    let written = reference.after.entries.filter {
      $0.value.modified != reference.before.entries[$0.key]?.modified
    }
    var aspects = TreeListing.copied
    if operation == .rollback { aspects.remove(.hardLink) }
    let own = [Self.history, Self.vault]
    let (wanted, got) = (reference.after.without(own), now.without(own))
    return got.differences(
      from: wanted, comparing: aspects, ignoringTimesOf: written.keys.map { readable($0) } + others)
      + own.filter { (reference.after[$0] == nil) != (now[$0] == nil) }.map { "\($0) is not as it should be" }
  }

  /// The next command says how the container stands, and cleans up; then the operation can be completed.
  ///
  /// - Parameter interrupted: the transaction that the journal shows as begun and not ended.
  func checkWhatFollows(
    _ outcome: Outcome, interrupted: String?, next: [String], _ before: TreeListing, _ context: String
  ) throws {
    let place = "\(operation), \(context), \(outcome)"
    let result = try sandbox.drydock(next).expect()
    let said = result.errors + (next.first == "recover" ? result.output : "")
    if let interrupted {
      #expect(said.contains(interrupted), "\(place): it is not told: \(result)")
      let words = outcome == .old ? "the container is unchanged" : "its change is now complete"
      #expect(said.contains(words), "\(place): wrong: \(result)")
    } else {
      #expect(!said.contains("interrupted;"), "\(place): nothing was interrupted: \(result)")
    }
    #expect(try leftovers() == [], "\(place)")
    let after = try Self.tree(sandbox)
    // Once it was moved, the token is in the settings or it is sealed, and nowhere else.
    if operation == .rollback || (operation == .migrate && outcome == .new) {
      let isBack = operation == .rollback && outcome == .new
      let found = try sandbox.filesWithToken().filter { !$0.hasPrefix("Template") }
      #expect(found == (isBack ? ["\(Self.trial)/\(Sandbox.settings)"] : []), "\(place)")
    }
    switch outcome {
    case .old:
      let aspects = TreeListing.untouched.subtracting([.changed])
      #expect(
        after.differences(from: before, comparing: aspects, ignoringTimesOf: timesOfTheState) == [],
        "\(place)")
      // The lock is free, nothing is in the way: the same command completes.
      try sandbox.succeed(arguments)
      #expect(differencesFromNew(try Self.tree(sandbox)) == [], "\(place), once more")
    case .new:
      #expect(differencesFromNew(after) == [], "\(place)")
      // What an interrupted command has done can be undone like anything else.
      try sandbox.succeed(
        operation == .rollback ? ["rollback", Self.trial, "--redo"] : ["rollback", Self.trial])
      let undone = try Self.tree(sandbox)
      #expect(undone.differences(from: before, comparing: aspectsOfUndo) == [], "\(place), undone")
    }
    #expect(try leftovers() == [], "\(place), at the end")
  }

  /// A redo writes the history and the settings anew.
  private var aspectsOfUndo: Set<TreeEntry.Aspect> {
    operation == .rollback ? TreeListing.timeless.subtracting([.hardLink]) : TreeListing.copied
  }

  /// What must not be there once a command has cleaned up.
  func leftovers() throws -> [String] {
    var found = try sandbox.names("tmp").map { "tmp/" + $0 }
    if let state = try Self.state(in: sandbox) {
      let names = try sandbox.names(state)
      // Killed while the state directory itself was made, there is no place for stages yet.
      if names.contains("stage") { found += try sandbox.names(state + "/stage").map { "stage/" + $0 } }
      found += names.filter { $0.hasPrefix("probe") }
    }
    return found
  }

  static func state(in sandbox: Sandbox) throws -> String? {
    try sandbox.names().first { $0.hasPrefix(".drydock-") }
      ?? (sandbox.exists(trial + "/" + inside) ? trial + "/" + inside : nil)
  }
}
