import AgeEncryption
import AppStores
import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Chains that are written again without the archives that no rule keeps.
@Suite(.everyPlace) struct CompactionTests {
  private let lab: Lab
  private var repository: Repository { Repository(lab.repository) }
  init() throws { lab = try Lab() }

  private static let keep = RetentionPolicy.tagged("keep")

  private struct Taken {
    var report: SnapshotReport, tree: TreeListing, rows: String
  }

  private func options(_ share: Double = 0, _ recipients: [AgeRecipient] = []) -> CompactionOptions {
    var options = CompactionOptions.share(share)
    options.recipients = recipients
    return options
  }

  private static let database = ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm", "db.sqlite-journal", "."]

  /// A chain of six archives with some of everything; those with a number in `kept` have the tag `keep`.
  private func chain(kept: Set<Int>, _ change: (inout SnapshotOptions) -> Void = { _ in }) throws -> [Taken] {
    var random = SeededRandom(seed: 7)
    try lab.sql(
      "db.sqlite",
      """
      CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
      WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 400)
      INSERT INTO t(b) SELECT hex(randomblob(500)) FROM r
      """)
    for number in 0..<20 { try lab.write("notes/\(number)", random.bytes(3000)) }
    try lab.write("large", random.bytes(2 << 20))
    try lab.write("gone", random.bytes(900_000))
    try lab.shell(
      "ln notes/1 first; ln large second; ln -s large link; mkdir empty; : > zero; ln zero none", in: lab.root
    )
    return try (0..<6).map { number in
      switch number {
      case 1: try lab.write("once", random.bytes(1_500_000))
      case 2:
        try lab.shell("rm once gone; mv notes/2 moved; chmod 600 notes/3", in: lab.root)
        try lab.sql("db.sqlite", "UPDATE t SET b = 'x' WHERE a % 50 = 0")
      case 3:
        try lab.shell(
          "cp large copy; printf changed | dd of=large bs=1 seek=500000 conv=notrunc status=none",
          in: lab.root)
      case 4: try lab.sql("db.sqlite", "UPDATE t SET b = 'y' WHERE a % 70 = 0; DELETE FROM t WHERE a > 390")
      default: break
      }
      try lab.write("notes/\(number)", random.bytes(4000))
      let tree = try TreeListing(lab.root)
      let rows = try Lab.rows(lab.root + "/db.sqlite")
      let report = try lab.incremental {
        $0.tags = kept.contains(number) ? ["keep", "number-\(number)"] : []
        // Two of each second: a copy of the later one as a full archive names the earlier one.
        $0.seams.now = { Date(timeIntervalSince1970: 1_700_000_000 + Double(number / 2) * 86_400) }
        change(&$0)
      }
      return Taken(report: report, tree: tree, rows: rows)
    }
  }

  private func current(_ taken: Taken, _ keys: AgeKeys = AgeKeys()) throws -> StoredArchive? {
    try repository.list(keys: keys).items.last {
      $0.header?.archive == taken.report.archive || $0.header?.compactedFrom == taken.report.archive
    }
  }

  private func expectVerified(_ taken: Taken, _ context: String) throws {
    let archive = try Archive(path: #require(try current(taken), "\(context)").path)
    #expect(archive.snapshot == taken.report.snapshot, "\(context)")
    _ = try Verification.run(archive, data: true)
  }

  private func expectRestored(
    _ taken: Taken, _ keys: AgeKeys = AgeKeys(),
    context: String = "", at place: SourceLocation = #_sourceLocation
  ) throws {
    let item = try #require(try current(taken, keys), "\(context)", sourceLocation: place)
    let archive = try Archive(path: item.path, keys: keys)
    #expect(archive.snapshot == taken.report.snapshot, "\(context)", sourceLocation: place)
    #expect(archive.header.time == taken.report.header.time && archive.header.app == taken.report.header.app)
    _ = try Verification.run(archive, data: true)
    try lab.shell("rm -rf restored")
    let target = lab.directory("restored")
    try lab.restore(item.path, to: target, keys: keys) { $0.keepsSetID = true }
    let differences = try TreeListing(target).without(Self.database).differences(
      from: taken.tree.without(Self.database))
    #expect(differences == [], "\(context)", sourceLocation: place)
    let rows = try Lab.rows(target + "/db.sqlite")
    #expect(rows == taken.rows, "\(context)", sourceLocation: place)
  }

  @Test(.atEachPlace) func onlyWhatIsKeptIsWrittenAgain() throws {
    let kept: Set<Int> = [2, 3, 5]
    let taken = try chain(kept: kept)
    let before = try repository.list().items.reduce(0) { $0 + $1.size }
    // Without compaction nothing of the chain can go.
    #expect(try repository.forget(keeping: Self.keep).removed.isEmpty)
    #expect(try repository.forget(keeping: Self.keep, compacting: options(0.9)).compacted.isEmpty)
    #expect(try repository.list().items.count == 6)
    let dry = try repository.forget(keeping: Self.keep, compacting: options(0.25), dryRun: true)
    #expect(dry.compacted.count == 1 && dry.kept.count == 6 && dry.bytesFreed > 2_000_000)
    #expect(try repository.list().items.count == 6)

    let report = try repository.forget(keeping: Self.keep, compacting: options(0.25))
    let items = try repository.list().items
    #expect(
      report.notCompacted.isEmpty && report.compacted.map { [$0.kept.count, $0.needed.count] } == [[3, 3]])
    #expect(items.map(\.header?.kind) == [.full, .incremental, .incremental])
    #expect(items.map(\.header?.compactedFrom) == kept.sorted().map { taken[$0].report.archive })
    #expect(items.map(\.tags) == kept.sorted().map { ["keep", "number-\($0)"] })
    #expect(report.kept.map(\.id) == items.map(\.id))
    #expect(report.kept.map(\.size) == items.map(\.size))
    let after = items.reduce(0) { $0 + $1.size }
    #expect(before - after == report.bytesFreed && before - after > 2_000_000)
    #expect(abs(Double(dry.bytesFreed) - Double(report.bytesFreed)) < 200_000)
    #expect(items[1].size < 150_000 && items[2].size < 150_000, "\(items.map(\.size))")
    #expect(try lab.storedNames().count == 6)
    for number in kept { try expectRestored(taken[number], context: "\(number)") }

    // What the last snapshot knew, the next one knows.
    let next = try lab.incremental { _ in }
    #expect(
      next.header.parent == items[2].header?.archive && next.archiveBytes < 8000, "\(next.archiveBytes)")
    #expect(next.snapshot == taken[5].report.snapshot)
    // Stock tools read the full one, and an export.
    let exported = try SnapshotCopy.export(
      Archive(path: next.path), to: .file(lab.directory("exported.tar.zst")), tool: "test")
    #expect(try Archive(path: exported.path).snapshot == next.snapshot)
    _ = try Verification.run(Archive(path: exported.path), data: true)
    try lab.shell(
      """
      mkdir full exported; tar --zstd -xf '\(lab.localCopy(of: items[0].path))' -C full; tar --zstd -xf exported.tar.zst -C exported
      cmp exported/container/large box/large; cmp full/container/moved box/moved; cmp full/container/large box/copy
      test -s full/container/second
      """)
    let again = try repository.forget(keeping: .last(4), compacting: options())
    #expect(again.compacted.isEmpty && again.removed.isEmpty && again.notCompacted.isEmpty)
  }

  @Test(.atEachPlace) func encryptedOnesStayEncryptedToTheSame() throws {
    let (ada, bob) = (try AgeIdentity.generate(), try AgeIdentity.generate())
    let (recipients, keys) = ([ada.recipient, bob.recipient], AgeKeys(identities: [ada]))
    let taken = try chain(kept: [2, 5]) {
      ($0.encryption, $0.keys) = (.recipients(recipients), keys)
    }
    let names = try lab.storedNames()
    func refusal(_ keys: AgeKeys, _ recipients: [AgeRecipient]) throws -> String {
      let report = try repository.forget(keeping: Self.keep, keys: keys, compacting: options(0, recipients))
      #expect(report.compacted.isEmpty && report.notCompacted.count == 1 && report.removed.isEmpty)
      #expect(try lab.storedNames() == names)
      return report.notCompacted.first?.reason ?? ""
    }
    #expect(try refusal(AgeKeys(), recipients).contains("no key opens it"))
    #expect(try refusal(keys, []).contains("are not the given ones"))
    #expect(try refusal(keys, [bob.recipient]).contains("are not the given ones"))
    // Both identities say who the recipients are.
    let dry = try repository.forget(
      keeping: Self.keep, keys: AgeKeys(identities: [bob, ada]), compacting: options(), dryRun: true)
    #expect(dry.compacted.count == 1)
    let report = try repository.forget(keeping: Self.keep, keys: keys, compacting: options(0, recipients))
    #expect(report.compacted.count == 1 && report.notCompacted.isEmpty)
    for identity in [ada, bob] {
      for number in [2, 5] { try expectRestored(taken[number], AgeKeys(identities: [identity])) }
    }
    #expect(try repository.list().locked.count == 2)
    // The next one knows the recipients.
    let next = try lab.incremental { ($0.encryption, $0.keys) = (.recipients(recipients), keys) }
    #expect(next.header.kind == .incremental)
  }

  @Test func afterARekeyTheRecipientsAreNotKnown() throws {
    let (ada, bob) = (try AgeIdentity.generate(), try AgeIdentity.generate())
    let keys = AgeKeys(identities: [ada, bob])
    let taken = try chain(kept: [5]) { ($0.encryption, $0.keys) = (.recipients([ada.recipient]), keys) }
    _ = try Repository.rekey(
      taken[3].report.path, keys: keys, to: nil, encryption: .recipients([bob.recipient]))
    let report = try repository.forget(
      keeping: Self.keep, keys: keys, compacting: options(0, [ada.recipient]))
    #expect(report.compacted.isEmpty)
    #expect(
      report.notCompacted.first?.reason.contains("was encrypted to other keys since it was written") == true)
    try expectRestored(taken[5], keys)
  }

  @Test func aPassphraseOpensAndEncryptsAgain() throws {
    // A passphrase costs a second each time, by default: one archive says it.
    let kept: Set<Int> = TestExtent.isFull ? [4, 5] : [5]
    let taken = try chain(kept: kept)
    let secret = SecretBytes(Array("correct horse".utf8))
    let keys = AgeKeys(passphrases: [secret])
    for one in taken {
      _ = try Repository.rekey(
        one.report.path, keys: AgeKeys(), to: nil, encryption: .passphrase(secret, workFactor: 10))
    }
    #expect(try repository.forget(keeping: Self.keep, compacting: options()).notCompacted.count == 1)
    let report = try repository.forget(keeping: Self.keep, keys: keys, compacting: options())
    #expect(report.compacted.count == 1, "\(report.notCompacted)")
    let locked = try repository.list().locked
    #expect(locked.count == kept.count)
    if TestExtent.isFull {
      for number in kept { try expectRestored(taken[number], keys) }
    } else {
      let archive = try Archive(path: #require(locked.first).path, keys: keys)
      #expect(archive.snapshot == taken[5].report.snapshot)
      _ = try Verification.run(archive, data: true)
    }
  }

  @Test func theItemsOfAVaultAreKept() throws {
    let vaults = try VaultLab()
    let device = try DeviceKeys(AgeIdentity.generate())
    let identity = try VaultLab.archiveKey.get()
    let keys = AgeKeys(identities: [identity])
    vaults.lab.configuration.fullArchives.above = 10_000
    var reports: [SnapshotReport] = []
    for number in 0..<4 {
      var vault = try Vault(new: device)
      vault.put(VaultLab.item("a", "value \(number)"))
      try vaults.write(vault, file: String(repeating: "text \(number)", count: 1000))
      reports.append(
        try vaults.lab.incremental {
          ($0.encryption, $0.keys, $0.deviceKeys) = (.recipients([identity.recipient]), keys, device)
          $0.tags = number % 2 == 1 ? ["keep"] : []
        })
    }
    let repository = Repository(vaults.lab.repository)
    let report = try repository.forget(keeping: Self.keep, keys: keys, compacting: options())
    #expect(report.compacted.map(\.kept.count) == [2], "\(report.notCompacted)")
    for (number, item) in zip([1, 3], try repository.list(keys: keys).items) {
      let extract = try #require(try Archive(path: item.path, keys: keys).vaultExtract())
      #expect(extract.document.items.values.map(\.text) == ["value \(number)"])
      #expect(item.header?.compactedFrom == reports[number].archive)
    }
  }

  @Test func whatCannotBeWrittenAgainExactlyStays() throws {
    let taken = try chain(kept: [3])
    // The last two archives, which nothing keeps or needs, may go unless `removesNothing`.
    func expectRefusal(
      _ words: String, _ script: String, removesNothing: Bool = false,
      at place: SourceLocation = #_sourceLocation
    ) throws {
      try lab.changeRepository("cp -a repository saved; cd repository; \(script)")
      let before = try lab.storedNames()
      let report = try repository.forget(keeping: Self.keep, compacting: options())
      #expect(report.compacted.isEmpty, sourceLocation: place)
      #expect(
        report.notCompacted.first?.reason.contains(words) == true, "\(report.notCompacted)",
        sourceLocation: place)
      let after = try lab.storedNames()
      #expect(Set(before).isSuperset(of: after) && after.count >= 4, sourceLocation: place)
      if removesNothing { #expect(after == before, sourceLocation: place) }
      try lab.changeRepository("rm -r repository; mv saved repository")
    }
    let (first, third) = (lastName(taken[0].report.path), taken[3].report.archive)
    try expectRefusal("copies of it", "cp \(first) copy.tar.zst")
    try expectRefusal("cannot be read", "echo '{' > \(third).tags.json")
    try expectRefusal(
      "put the missing file back", "rm \(lastName(taken[4].report.path))", removesNothing: true)
    try expectRefusal(
      "the archive is damaged",
      "printf xxxx | dd of=\(first) bs=1 seek=3000 conv=notrunc status=none; true")
    try expectRestored(taken[3])
    #expect(try repository.forget(keeping: Self.keep, compacting: options()).compacted.count == 1)
    try expectRestored(taken[3])
  }

  /// A repository with the old chain and the new one of a compaction that was killed before it removed anything.
  private func both() throws -> [Taken] {
    let taken = try chain(kept: [1, 3, 5])
    try lab.changeRepository("cp -a repository old")
    #expect(try repository.forget(keeping: Self.keep, compacting: options()).compacted.count == 1)
    try lab.changeRepository("cp -a old/* repository")
    return taken
  }

  @Test func aTagOfOneOfTwoCopiesKeepsTheSnapshot() throws {
    let taken = try both()
    // Only the old archive gets it: by its id.
    _ = try repository.tag(taken[3].report.archive.description, adding: ["mine"])
    for number in [1, 5] {
      for item in try repository.list().items where item.time == taken[number].report.header.time {
        _ = try repository.tag(item.id, removing: ["keep", "number-\(number)"])
      }
    }
    for compaction in [nil, options()] {
      try repository.forget(keeping: .tagged("mine"), compacting: compaction)
      #expect(try repository.list().items.contains { $0.tags.contains("mine") })
      try expectRestored(taken[3])
    }
  }

  @Test(arguments: [true, false]) func aDamagedCopyIsNotTheOneThatStays(damagesNew: Bool) throws {
    let taken = try both()
    let items = try repository.list().items
    let full = try #require(
      items.first { $0.header?.parent == nil && ($0.header?.compactedFrom != nil) == damagesNew })
    var bytes = try lab.stored(full.path)
    bytes[bytes.count / 2] ^= 1
    try lab.store(full.path, bytes)
    try repository.forget(keeping: Self.keep)
    for number in [1, 3, 5] {
      let copies = try repository.list().items.filter {
        [$0.header?.archive, $0.header?.compactedFrom].contains(taken[number].report.archive)
      }
      #expect(
        copies.contains { (try? Verification.run(Archive(path: $0.path), data: true)) != nil }, "\(number)")
    }
  }

  @Test func withoutAKeyWhatIsThereTwiceCountsOnce() {
    func archive(_ day: Int, _ id: Int, isLocked: Bool) -> StoredArchive {
      let time = "2026-01-0\(day)T00:00:00Z"
      let access: StoredArchive.Access =
        isLocked
        ? .locked(DrydockError(.noIdentity, "no key opens it")) : .open(RetentionTests.header(id, time))
      var archive = StoredArchive(path: "\(id)", access: access)
      archive.label = ArchiveLabel(app: "a", instance: "b", time: time, id: "0000000\(id)")
      return archive
    }
    for (isLocked, kept) in [(true, [3, 4, 5, 6]), (false, [5, 6])] {
      let archives = (1...3).flatMap { day in
        (0..<2).map { archive(day, day * 2 - 1 + $0, isLocked: isLocked) }
      }
      let reasons = RetentionPolicy.last(2).reasons(archives, now: "2027-01-01T00:00:00Z")
      #expect(archives.indices.filter { !reasons[$0].isEmpty }.map { $0 + 1 } == kept)
    }
  }

  /// Killed at removals, renames and syncs: every kept snapshot is there, and the next runs complete the work.
  /// What needs one of two copies that are there then is in RandomRepositoryTests.
  @Test(
    .local("kills at calls of the file system; RandomRepositoryTests kills at remote places, too"),
    arguments: [("unlinkat", 4), ("renameat2", 3), ("fsync", 3)])
  func killedAtAnyMoment(call: String, points: Int) throws {
    let kept = [1, 2, 4]
    let taken = try chain(kept: Set(kept))
    try lab.shell("mv repository master")
    let arguments = ["forget", "-r", lab.repository, "--keep-tag", "keep"]
    func compact(_ change: String? = nil) throws -> CommandResult {
      try lab.shell("rm -rf repository; cp -a master repository")
      return try Command.run(
        Tools.system("strace"),
        Tools.tracing(call, change, log: lab.directory("trace")) + [Tools.drydock()] + arguments
          + ["--compact", "0%"])
    }
    #expect(try compact().succeeded)
    let count = try lab.read("trace", in: lab.directory.path).split(separator: "\n").count {
      $0.contains("\(call)(")
    }
    // All moments, or some from the first to the last.
    let numbers =
      TestExtent.isFull ? Array(1...count) : (0..<points).map { 1 + $0 * (count - 1) / (points - 1) }
    var met: Set<Int> = []
    for number in numbers {
      let context = "\(call) \(number) of \(count)"
      let killed = try compact("signal=SIGKILL:when=\(number)")
      #expect(killed.signal == SIGKILL, "\(context): \(killed)")
      met.insert(try repository.list().items.count)
      for number in kept { try expectVerified(taken[number], context) }
      let next = try Command.run(Tools.drydock(), arguments)
      #expect(next.succeeded, "\(context): \(next)")
      for number in kept {
        let id = taken[number].report.archive
        let items = try repository.list().items.filter {
          $0.header?.archive == id || $0.header?.compactedFrom == id
        }
        #expect(items.count == 1 && items[0].tags == ["keep", "number-\(number)"], "\(context)")
      }
      let last = try Command.run(Tools.drydock(), arguments + ["--compact", "0%"])
      #expect(last.succeeded, "\(context): \(last)")
      // What a killed run was writing is removed by the next that writes.
      let names = try FileManager.default.contentsOfDirectory(atPath: lab.repository)
      #expect(names.count { !$0.hasPrefix(".") } == 6, "\(context)")
      for number in kept { try expectVerified(taken[number], context) }
      for number in TestExtent.isFull ? kept : [kept[number % kept.count]] {
        try expectRestored(taken[number], context: context)
      }
    }
    #expect(met.count >= 3, "\(met)")
  }
}
