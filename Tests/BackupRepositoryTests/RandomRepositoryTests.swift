import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Everything that changes a repository, in random order and often killed: every snapshot that must be there is there, with
/// its tags, and restores exactly.
@Suite struct RandomRepositoryTests {
  /// Plain and encrypted ones, each with both kinds of times; `RANDOM_SEEDS=7-12` tries others.
  static let seeds: [UInt64] = {
    let range = (ProcessInfo.processInfo.environment["RANDOM_SEEDS"] ?? "").split(separator: "-")
      .compactMap { UInt64($0) }
    if let first = range.first, let last = range.last, first <= last { return Array(first...last) }
    return TestExtent.isFull ? Array(1...6) : [1, 2, 3, 6]
  }()

  @Test(arguments: seeds) func whatMustBeThereRestoresExactly(seed: UInt64) throws {
    try work(RandomRepository(seed: seed, isEncrypted: seed % 2 == 0), rounds: TestExtent.isFull ? 50 : 8)
  }

  /// The same at real servers, with kills at the calls that send.
  @Test(arguments: [(PlaceKind.s3, 2), (.sftp, 1)] as [(PlaceKind, UInt64)])
  func theSameAtRemotePlaces(kind: PlaceKind, seed: UInt64) throws {
    try work(
      RandomRepository(seed: seed, isEncrypted: seed % 2 == 0, at: kind), rounds: TestExtent.isFull ? 50 : 8)
  }

  private func work(_ history: RandomRepository, rounds: Int) throws {
    var (history, seed) = (history, history.seed)
    // The times of the one kind are seconds apart, and many are equal; of the other they are days apart.
    var clock = seed % 3 == 0 ? Date().addingTimeInterval(-400 * 86_400) : nil
    for round in 0..<rounds {
      history.events.append("ROUND \(round)")
      for _ in 0..<history.random(0...6) { try history.run.change() }
      clock?.addTimeInterval(Double(history.random(1...170)) * 3600)
      switch history.random(0...9) {
      case 0...2 where round > 3: try history.takeKilledSnapshot(keepsIt: clock == nil)
      case 3...5 where clock == nil: try history.takeSnapshotByProgram()
      default: try history.takeSnapshot(clock)
      }
      if history.random(0...2) == 0 { try history.tag() }
      if history.random(0...1) == 0 { try history.forget() }
      if history.random(0...5) == 0 { try history.export() }
      if history.random(0...7) == 0 { try history.restoreInPlace() }
      if round % 10 == 5 { try history.expectAllRestored() }
    }
    if !history.isRemote {
      try history.killAtPublication()
      try history.interruptCompaction(&clock)
    }
    try history.expectAllRestored()
    try history.compactAtTheEnd()
    try history.expectAllRestored()
    // The last command has removed what killed ones left.
    try history.takeSnapshotByProgram()
    #expect(try history.leftovers() == [], history.context)
    #expect(try FileManager.default.contentsOfDirectory(atPath: history.lab.directory("tmp")) == [])
    #expect(history.kills > 0)
  }
}

extension RandomRepository {
  static let tags = ["a", "b", "c"]

  mutating func random(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &run.random) }

  private mutating func someTags() -> Set<String> {
    Set(Self.tags.filter { _ in Int.random(in: 0..<3, using: &run.random) == 0 })
  }

  private func state() throws -> State {
    State(tree: try RandomContainer.tree(lab.root), rows: try Lab.rows(lab.root + "/db.sqlite"))
  }

  mutating func takeSnapshot(_ now: Date?, isFull: Bool? = nil) throws {
    events.append("snapshot")
    let (state, tags) = (try state(), someTags())
    let (isFull, trusts, keys, recipients) = (
      isFull ?? (random(0...19) == 0), random(0...1) == 0, keys, recipients
    )
    let report = try lab.incremental {
      if !recipients.isEmpty { ($0.encryption, $0.keys) = (.recipients(recipients), keys) }
      ($0.isFull, $0.lockTimeout, $0.tags) = (isFull, 30, tags.sorted())
      // The time of the archive may be long ago.
      $0.seams.settling = trusts ? -1e9 : 60
      if let now { $0.seams.now = { now } }
    }
    #expect(!report.isIncomplete && report.parentProblem == nil, context)
    try expectTaken(state, tags)
  }

  mutating func takeSnapshotByProgram() throws {
    events.append("drydock snapshot")
    let (state, tags) = (try state(), someTags())
    let result = try program(snapshotArguments(tags))
    #expect(result.succeeded, "\(result); \(context)")
    try expectTaken(state, tags)
    #expect(try FileManager.default.contentsOfDirectory(atPath: lab.directory("tmp")) == [], context)
  }

  private func snapshotArguments(_ tags: Set<String>) -> [String] {
    ["snapshot", lab.root, "--config", lab.directory("drydock.yaml"), "--lock-timeout", "30"] + place
      + recipients.flatMap { ["--recipient", $0.description] } + tags.sorted().flatMap { ["--tag", $0] }
  }

  private mutating func expectTaken(_ state: State, _ tags: Set<String>) throws {
    // What changes from here on gets another time: the kernel's clock ticks every few milliseconds.
    usleep(20_000)
    let item = try #require(try unexpected(), context)
    try expect(state, in: item, tags: tags)
    // Each costs requests at a remote place: there, those that are kept are restored later.
    if !isRemote { try expectRestored(expected[expected.count - 1], from: item.path) }
    try settle(isComplete: false)
    let names = try leftovers().filter {
      !$0.hasSuffix(".tags.json") && !$0.hasSuffix(".tags.json.drydock-new")
    }
    #expect(names == [], context)
  }

  /// It is there whole, or it is not there.
  ///
  /// - Parameter keepsIt: whether its time, the real one, is that of the others.
  mutating func takeKilledSnapshot(keepsIt: Bool, at call: (name: String, number: Int)? = nil) throws {
    events.append("snapshot to be killed")
    let (state, tags, before) = (try state(), someTags(), try TreeListing(lab.root))
    let result = try kill(snapshotArguments(tags), at: call)
    usleep(20_000)
    let after = try TreeListing(lab.root)
    #expect(after.differences(from: before, comparing: TreeListing.untouched) == [], context)
    if let item = try unexpected() {
      events.append("it is there")
      try expect(state, in: item, tags: tags)
      try expectRestored(expected[expected.count - 1], from: item.path)
      if !keepsIt {
        try lab.removeStored(item.path)
        published.remove(item.id)
        try settle(keeping: Set(expected.indices.dropLast()))
      }
    } else {
      #expect(!result.succeeded, "\(result); \(context)")
    }
    try settle(isComplete: false)
  }

  /// It is written whole, and not there yet.
  mutating func killAtPublication() throws {
    let (count, kills) = (expected.count, kills)
    try takeKilledSnapshot(keepsIt: true, at: ("renameat2", 1))
    #expect(expected.count == count && self.kills == kills + 1, context)
    #expect(try leftovers().contains { $0.hasPrefix(".drydock-") }, context)
  }

  mutating func tag() throws {
    // Of two copies, one gets it.
    let items = try items()
    guard let index = expected.indices.randomElement(using: &run.random),
      let item = copies(of: expected[index], in: items).randomElement(using: &run.random)
    else { return }
    let (adding, removing) = (someTags(), someTags())
    events.append("tag \(index) +\(adding.sorted()) -\(removing.sorted())")
    let others = copies(of: expected[index], in: items).filter { $0.path != item.path }
    let tags = Set(item.tags).subtracting(removing).union(adding)
    if random(0...1) == 0 {
      #expect(
        try repository.tag(
          item.fileName, adding: adding.sorted(), removing: removing.sorted(), keys: keys, lockTimeout: 30)
          == tags.sorted(), context)
    } else {
      let arguments = adding.flatMap { ["--add", $0] } + removing.flatMap { ["--remove", $0] }
      guard !arguments.isEmpty else { return }
      let result = try kill(["tag", item.fileName, "--lock-timeout", "30"] + place + arguments)
      let now = try self.items().first { $0.path == item.path }?.tags
      #expect(now == tags.sorted() || (!result.succeeded && now == item.tags), context)
      expect(tags: Set(now ?? []).union(others.flatMap(\.tags)), of: index)
      return try settle(isComplete: false)
    }
    expect(tags: tags.union(others.flatMap(\.tags)), of: index)
    try settle(isComplete: false)
  }

  private mutating func policy() throws -> RetentionPolicy {
    var policy = RetentionPolicy()
    switch random(0...6) {
    case 0: policy.last = random(3...8)
    case 1: (policy.last, policy.tags) = (1, [["a"]])
    case 2: (policy.last, policy.tags) = (random(0...1), [["a", "b"], ["c"]])
    case 3: (policy.daily, policy.weekly) = (random(1...4), random(1...4))
    case 4: (policy.within, policy.hourly) = (try .init(["1h", "9d", "30d12h"][random(0...2)]), 2)
    case 5: (policy.last, policy.tags) = (2, [[]])
    default: (policy.daily, policy.monthly, policy.yearly) = (2, 2, 1)
    }
    return policy
  }

  private func arguments(_ policy: RetentionPolicy) -> [String] {
    var arguments: [String] = []
    for (name, path) in RetentionPolicy.counts where policy[keyPath: path] > 0 {
      arguments += ["--keep-\(name)", "\(policy[keyPath: path])"]
    }
    if let within = policy.within { arguments += ["--keep-within", "\(within)"] }
    for tags in policy.tags { arguments += ["--keep-tag", tags.joined(separator: ",")] }
    return arguments
  }

  mutating func forget() throws {
    let (policy, compacts, share) = (try policy(), random(0...3) > 0, [0, 0, 25][random(0...2)])
    let kept = try kept(policy)
    let rules = arguments(policy)
    events.append("forget \(rules.joined(separator: " ")) of \(expected.count) \(kept.sorted())")
    let all = ["forget", "--lock-timeout", "30"] + place + rules
    let compaction = compacts ? ["--compact", "\(share)%"] : []
    if compacts { events.append("compact \(share)%") }
    guard !kept.isEmpty else {
      let code = code { try repository.forget(keeping: policy, keys: keys, lockTimeout: 30) }
      #expect(code == (expected.isEmpty ? "none" : "checkFailed"), context)
      return try settle()
    }
    switch random(0...3) {
    case 0:
      let options = CompactionOptions.share(Double(share) / 100)
      let before = try items().reduce(0) { $0 + $1.size }
      let report = try repository.forget(
        keeping: policy, keys: keys, compacting: compacts ? options : nil, lockTimeout: 30)
      let after = try items().reduce(0) { $0 + $1.size }
      #expect(before - after == report.bytesFreed, context)
      expectReasons(report)
    case 1:
      let result = try program(all + compaction)
      #expect(
        result.succeeded || Self.reasons.contains { result.errors.contains($0) }, "\(result); \(context)")
    default:
      let result = try kill(all + compaction)
      try settle(keeping: kept, isComplete: result.succeeded)
      guard random(0...1) == 0 else { return }
      // Some snapshots went, all those that were kept are there: the rules may count others now.
      events.append("and again")
      let again = try self.kept(policy)
      let next = try program(all + compaction)
      #expect(next.succeeded || Self.reasons.contains { next.errors.contains($0) }, "\(next); \(context)")
      return try expectForgotten(again)
    }
    try expectForgotten(kept)
  }

  private mutating func expectForgotten(_ kept: Set<Int>) throws {
    try settle(keeping: kept)
    #expect(try leftovers().filter { !$0.hasPrefix(".drydock-") } == [], context)
  }

  private mutating func keep(_ index: Int) throws {
    for copy in try copies(of: expected[index], in: items()) {
      try repository.tag(copy.fileName, adding: ["kept"], keys: keys, lockTimeout: 30)
    }
    expect(tags: expected[index].tags.union(["kept"]), of: index)
  }

  /// Two snapshots are written again, and the program is killed when the second one is to appear: the first is there twice.
  mutating func interruptCompaction(_ clock: inout Date?) throws {
    for number in 0..<4 {
      if number < 2 { try lab.write("late", run.random.bytes(200_000)) } else { try? lab.remove("late") }
      try run.change()
      clock?.addTimeInterval(3600)
      try takeSnapshot(clock, isFull: number == 0)
    }
    // With the file that the first one has with another content, and without it.
    func kept() -> Set<Int> { [expected.count - 3, expected.count - 1] }
    for index in kept() { try keep(index) }
    let forget = ["forget", "--lock-timeout", "30", "--keep-tag", "kept"] + place
    // Among the removals of what is older.
    let removal = try kill(forget, at: ("unlinkat", random(2...5)))
    try settle(keeping: kept(), isComplete: removal.succeeded)
    try #require(
      try kill(forget + ["--compact", "0%"], at: ("renameat2", 2)).signal == SIGKILL, "\(context)")
    try settle(keeping: kept(), isComplete: false)
    let items = try items()
    try #require(expected.suffix(3).map { copies(of: $0, in: items).count } == [2, 1, 1], "\(context)")
    // The next snapshot needs one of both, and the other may have a tag that this one lacks.
    try takeSnapshot(clock)
    let index = expected.count - 4
    let double = expected[index]
    let tagged = copies(of: double, in: items).dropFirst(random(0...2)).first
    if let tagged {
      events.append("tag \(tagged.fileName)")
      try repository.tag(tagged.fileName, adding: ["one"], keys: keys, lockTimeout: 30)
      expect(tags: expected[index].tags.union(["one"]), of: index)
    }
    try keep(expected.count - 1)
    let result = try program(forget)
    #expect(result.succeeded, "\(result); \(context)")
    let last = expected.count - 1
    try expectForgotten([last - 3, last - 1, last])
    #expect(try tagged != nil || copies(of: double, in: self.items()).count == 1, context)
  }

  /// Why a chain may stay: a full archive can have the second of one of it.
  private static let reasons = ["smaller", "the same second"]

  private func expectReasons(_ report: Repository.ForgetReport) {
    #expect(
      report.notCompacted.allSatisfy { item in Self.reasons.contains { item.reason.contains($0) } },
      "\(report.notCompacted); \(context)")
  }

  /// Half of the snapshots go, and what they alone need.
  mutating func compactAtTheEnd() throws {
    events.append("compact at the end")
    for index in expected.indices where index == expected.count - 1 || random(0...1) == 0 { try keep(index) }
    let policy = RetentionPolicy.tagged("kept")
    let kept = try kept(policy)
    let report = try repository.forget(keeping: policy, keys: keys, compacting: .share(0), lockTimeout: 30)
    expectReasons(report)
    try expectForgotten(kept)
  }

  mutating func export() throws {
    let items = try items()
    guard let snapshot = expected.randomElement(using: &run.random),
      let item = copies(of: snapshot, in: items).randomElement(using: &run.random)
    else { return }
    events.append("export")
    let file = lab.directory("exports/made.tar.zst")
    let arguments =
      ["export", item.fileName, "-o", file] + place
      + recipients.flatMap { ["--recipient", $0.description] }
    if random(0...1) == 0 {
      let killed = try kill(arguments)
      let isThere = RawFiles.exists(Array(file.utf8))
      #expect(isThere || !killed.succeeded, "\(killed); \(context)")
      if isThere { try expectRestored(snapshot, from: file) }
      try lab.shell("rm -f exports/made.tar.zst")
    }
    let result = try program(arguments)
    #expect(result.succeeded, "\(result); \(context)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: lab.directory("exports")).count == 1, context)
    try expectRestored(snapshot, from: file)
    try lab.shell("rm exports/made.tar.zst")
  }

  /// Makes the container what it was, where nothing is excluded.
  mutating func restoreInPlace() throws {
    let items = try items()
    guard let snapshot = expected.filter({ !$0.hasExclusions }).randomElement(using: &run.random),
      let item = copies(of: snapshot, in: items).randomElement(using: &run.random)
    else { return }
    events.append("restore in place \(snapshot.time)")
    run.unflag()
    try lab.restore(item.path, keys: keys) { $0.keepsSetID = true }
    let now = try state()
    #expect(now.tree.differences(from: snapshot.tree) == [], context)
    #expect(now.rows == snapshot.rows, context)
  }
}
