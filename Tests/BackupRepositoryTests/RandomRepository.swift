import AgeEncryption
import Foundation
import Storage
import TestSupport
import Testing

@testable import BackupRepository

/// A container that changes at random, its repository, and a model of what this must have.
struct RandomRepository {
  /// A snapshot that must be there.
  struct Expected {
    let tree: TreeListing, rows: String
    let time: String, snapshot: String
    let hasExclusions: Bool
    /// The archives that have or had it: a compaction gives it a new one.
    var archives: Set<String>
    /// The tags of all archives that have it now.
    var tags: Set<String>
  }

  struct State {
    let tree: TreeListing, rows: String
  }

  let seed: UInt64
  var run: RandomContainer
  let keys: AgeKeys
  /// The arguments that name the repository, and open it.
  private(set) var place: [String]
  var isRemote: Bool { repository.isRemote }
  /// In the order of time.
  private(set) var expected: [Expected] = []
  /// What happened, for the message of a failure.
  var events: [String] = []
  private(set) var kills = 0
  /// The ids of archives that were there, but for those that the test itself has removed.
  var published: Set<String> = []

  var lab: Lab { run.lab }
  var repository: Repository { Repository(lab.repository) }
  var recipients: [AgeRecipient] { keys.identities.map(\.recipient) }
  var context: Comment { "seed \(seed): \(events.suffix(12).joined(separator: "; "))" }

  init(seed: UInt64, isEncrypted: Bool, at kind: PlaceKind = .directory) throws {
    self.seed = seed
    run = try RandomContainer(seed: seed)
    let lab = run.lab
    try kind.use(for: lab)
    keys = AgeKeys(identities: isEncrypted ? [try .generate()] : [])
    place = ["-r", lab.repository]
    for identity in keys.identities {
      let path = lab.directory("key.txt")
      try RawFiles.write(identity.secretText.withBytes { Array($0) }, to: Array(path.utf8), mode: 0o600)
      place += ["--identity", path]
    }
    try lab.make(lab.directory("tmp"))
    try lab.make(lab.directory("exports"))
    lab.configuration.fullArchives.above = [100, 100_000].randomElement(using: &run.random) ?? 100
    try RawFiles.write(
      Array(
        "app: com.example.lab\nsnapshot: {full-above: \(min(10_000, lab.configuration.fullArchives.above))%}\n"
          .utf8),
      to: Array(lab.directory("drydock.yaml").utf8))
  }

  // MARK: The program

  func program(_ arguments: [String]) throws -> CommandResult {
    try Command.run(Tools.drydock(), arguments, environment: environment)
  }

  private var environment: [String: String] {
    lab.variables.merging(["TMPDIR": lab.directory("tmp"), "DRYDOCK_CACHE": lab.directory("cache")]) { $1 }
  }

  /// System calls of the program, and about how many a compaction has.
  private static let calls = [
    ("unlinkat", 40), ("fsync", 12), ("renameat2", 4), ("renameat", 2), ("write", 50), ("pwrite64", 20),
    ("openat2", 40), ("mkdirat", 12), ("flock", 25),
  ]

  /// Starts the program and kills it: at one of its system calls, after a while, or soon after it has changed the repository.
  mutating func kill(_ arguments: [String], at call: (name: String, number: Int)? = nil) throws
    -> CommandResult
  {
    let environment = environment
    let result: CommandResult
    let way = call == nil ? Int.random(in: 0..<4, using: &run.random) : 0
    if way < 2 {
      let calls = isRemote ? [("sendto", 60), ("openat2", 40), ("pwrite64", 20)] : Self.calls
      let (name, most) = calls[Int.random(in: 0..<calls.count, using: &run.random)]
      let call = call ?? (name, Int.random(in: 1...most, using: &run.random))
      events.append("killed at \(call.name) \(call.number)")
      result = try Command.run(
        Tools.system("strace"),
        Tools.tracing(call.name, "signal=SIGKILL:when=\(call.number)") + [Tools.drydock()] + arguments,
        environment: environment)
    } else {
      let delay = UInt32.random(in: 0...(way == 2 ? 250_000 : 60_000), using: &run.random)
      let before = try archiveNames()
      let running = try Command.spawn(Tools.drydock(), arguments, environment: environment, input: [])
      while way == 3, running.isRunning, try archiveNames() == before { usleep(200) }
      usleep(delay)
      running.kill()
      result = try running.wait()
      events.append("killed \(delay / 1000) ms after \(way == 2 ? "its start" : "a change")")
    }
    if result.signal == SIGKILL { kills += 1 } else { events.append("too late") }
    return result
  }

  private func archiveNames() throws -> [[UInt8]] {
    try Places.open(lab.repository).list().names.filter { $0.first != UInt8(ascii: ".") }
  }

  // MARK: What is there

  /// The archives, of which each has the one that it needs.
  func items() throws -> [StoredArchive] {
    let listing = try repository.list(keys: keys)
    #expect(listing.unreadable.isEmpty && listing.locked.isEmpty, context)
    let ids = Set(listing.items.map(\.header?.archive))
    for item in listing.items {
      let hasParent = item.header?.parent.map(ids.contains) ?? true
      #expect(hasParent, "\(item.fileName) lost its parent; \(context)")
    }
    return listing.items
  }

  /// The archives that have a snapshot: two while a compaction is interrupted.
  func copies(of snapshot: Expected, in items: [StoredArchive]) -> [StoredArchive] {
    items.filter { item in
      [item.header?.archive, item.header?.compactedFrom].contains { id in
        id.map { snapshot.archives.contains($0.description) } ?? false
      }
    }
  }

  mutating func expect(_ state: State, in item: StoredArchive, tags: Set<String>) throws {
    let archive = try Archive(path: item.path, keys: keys)
    let excluded = try archive.manifest.excluded()
    #expect(item.tags == tags.sorted(), context)
    expected.append(
      Expected(
        tree: state.tree, rows: state.rows, time: item.time, snapshot: archive.snapshot,
        hasExclusions: !excluded.isEmpty, archives: [item.id], tags: tags))
    published.insert(item.id)
  }

  mutating func expect(tags: Set<String>, of index: Int) { expected[index].tags = tags }

  /// An archive that is no expected one's.
  func unexpected() throws -> StoredArchive? {
    let items = try items()
    let known = Set(expected.flatMap { copies(of: $0, in: items) }.map(\.path))
    let unknown = items.filter { !known.contains($0.path) }
    #expect(unknown.count <= 1, context)
    return unknown.first
  }

  /// Compares what is there with the model after archives were removed, or their tags changed.
  ///
  /// - Parameters:
  ///   - kept: the snapshots that must be there with all their tags; nil for all.
  ///   - isComplete: whether it came to its end: then only what a kept one needs is there besides.
  mutating func settle(keeping kept: Set<Int>? = nil, isComplete: Bool = true) throws {
    let items = try items()
    published.formUnion(items.map(\.id))
    let byID = Dictionary(items.map { ($0.id, $0) }) { first, _ in first }
    #expect(byID.count == items.count, context)
    var needed: Set<String> = []
    var remaining: [Expected] = []
    for (index, snapshot) in expected.enumerated() {
      let copies = copies(of: snapshot, in: items)
      let tags = Set(copies.flatMap(\.tags))
      if kept?.contains(index) ?? true {
        #expect(!copies.isEmpty, "snapshot \(index) of \(snapshot.time) is lost; \(context)")
        #expect(tags == snapshot.tags, "tags of snapshot \(index); \(context)")
        for copy in copies {
          var next: StoredArchive? = copy
          while let item = next, needed.insert(item.path).inserted {
            next = item.header?.parent.flatMap { byID[$0.description] }
          }
        }
      } else {
        // Of one that is only needed, or that goes just now, they do not matter.
        #expect(tags.isSubset(of: snapshot.tags), "tags of snapshot \(index); \(context)")
      }
      for copy in copies {
        #expect(copy.time == snapshot.time, context)
        #expect(try Archive(path: copy.path, keys: keys).snapshot == snapshot.snapshot, context)
      }
      guard !copies.isEmpty else { continue }
      var snapshot = snapshot
      snapshot.archives.formUnion(copies.map(\.id))
      snapshot.tags = tags
      remaining.append(snapshot)
    }
    if isComplete {
      #expect(items.map(\.path).filter { !needed.contains($0) } == [], context)
    }
    expected = remaining
    #expect(try unexpected() == nil, context)
  }

  /// The files in the repository's directory that are not archives or their tags: what a killed process left.
  func leftovers() throws -> [String] {
    let items = try items()
    let own = Set(items.map(\.fileName) + items.filter { !$0.tags.isEmpty }.map { "\($0.id).tags.json" })
    return try Places.open(lab.repository).list().names.map { String(decoding: $0, as: UTF8.self) }
      // The folder of an SFTP server's locks stays.
      .filter { !own.contains($0) && $0 != "locks" }
      // At a remote place, whose list may be late, the tags of an archive that a killed command did not publish stay for a day.
      .filter { name in !isRemote || ArchiveTags.id(ofFile: Array(name.utf8)).map(published.contains) ?? true
      }
  }

  // MARK: Rules

  /// The snapshots that rules keep, computed in another way than the product does.
  func kept(_ policy: RetentionPolicy) throws -> Set<Int> {
    try RetentionModel.kept(expected.map { (try Date($0.time, strategy: .iso8601), $0.tags) }, policy)
  }

  // MARK: Restoring

  func expectRestored(_ snapshot: Expected, from path: String) throws {
    #expect(try Archive(path: path, keys: keys).snapshot == snapshot.snapshot, context)
    let target = lab.directory("restored")
    try lab.restore(path, to: target, keys: keys) { $0.keepsSetID = true }
    let differences = try RandomContainer.tree(target).differences(from: snapshot.tree)
    #expect(differences == [], "snapshot of \(snapshot.time), \(path); \(context)")
    let rows = try Lab.rows(target + "/db.sqlite")
    #expect(rows == snapshot.rows, "rows of \(snapshot.time), \(path); \(context)")
    try lab.shell("rm -rf restored")
  }

  /// Restores all that is there, each copy, and verifies the whole repository.
  func expectAllRestored() throws {
    let items = try items()
    for snapshot in expected {
      for copy in copies(of: snapshot, in: items) { try expectRestored(snapshot, from: copy.path) }
    }
    let result = try program(["verify", "--data", "--quiet"] + place)
    #expect(result.succeeded, "\(result); \(context)")
  }
}
