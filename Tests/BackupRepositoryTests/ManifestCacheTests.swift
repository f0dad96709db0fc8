import AgeEncryption
import Cryptography
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// A machine that has recipients only makes incremental archives, with the manifests that it keeps.
@Suite(.everyPlace) struct ManifestCacheTests {
  private let lab: Lab
  private let identity: AgeIdentity
  private let cache: String

  init() throws {
    lab = try Lab()
    identity = try AgeIdentity.generate()
    cache = lab.directory("cache")
    var random = SeededRandom(seed: 3)
    for number in 1...5 { try lab.write("notes/\(number)", random.bytes(4000)) }
    try lab.write("large", random.bytes(3 << 20))
    try lab.sql("db.sqlite", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
  }

  private var keys: AgeKeys { AgeKeys(identities: [identity]) }

  @discardableResult
  private func snapshot(
    of path: String? = nil, into target: ArchiveTarget? = nil,
    _ change: (inout SnapshotOptions) throws -> Void = { _ in }
  ) throws -> SnapshotReport {
    var options = lab.options()
    (options.encryption, options.cache) = (.recipients([identity.recipient]), cache)
    options.seams.settling = -3600
    try change(&options)
    let report = try lab.take(options, to: target, path)
    usleep(20_000)
    return report
  }

  private func restored(_ path: String) throws -> TreeListing {
    let target = lab.directory("restored")
    try lab.shell("rm -rf restored")
    _ = try Verification.run(Archive(path: path, keys: keys), data: true)
    try lab.restore(path, to: target, keys: keys)
    return try TreeListing(target)
  }

  private func files() throws -> [String] {
    try lab.shell("find cache -type f | sort").split(separator: "\n").map(String.init)
  }

  private func expectFull(
    _ report: SnapshotReport, _ problem: String?, at place: SourceLocation = #_sourceLocation
  ) {
    #expect(report.header.kind == .full, sourceLocation: place)
    let isExpected =
      problem.map { report.parentProblem?.contains($0) == true } ?? (report.parentProblem == nil)
    #expect(isExpected, "\(report.parentProblem ?? "")", sourceLocation: place)
  }

  @Test(.atEachPlace) func incrementalsInARow() throws {
    var taken: [(SnapshotReport, TreeListing)] = []
    for number in 0..<6 {
      if number > 0 { try lab.write("notes/\(number)", "changed \(number)") }
      if number == 3 { try lab.remove("large") }
      if number == 4 { try lab.sql("db.sqlite", "INSERT INTO t VALUES (3)") }
      let before = try TreeListing(lab.root)
      let report = try snapshot()
      #expect(report.cacheProblem == nil && report.parentProblem == nil)
      #expect(report.header.parent == taken.last?.0.archive)
      #expect(number == 0 || report.archiveBytes < 20_000, "\(report.archiveBytes)")
      taken.append((report, before))
    }
    #expect(try files().map(lastName) == taken.map { lastName($0.0.path) }.sorted())
    let modes = try lab.shell("find cache/manifests -type d -printf '%m '; find cache -type f -printf '%m '")
    #expect(Set(modes.split(separator: " ")) == ["700", "600"])
    for (report, tree) in taken {
      #expect(try restored(report.path).differences(from: tree) == [])
    }
    // What is kept is the manifest as it is in the archive.
    let name = lastName(taken[0].0.path)
    let kept = try #require(try files().first { lastName($0) == name })
    let file = Data(try RawFiles.read(Array(lab.directory(kept).utf8)))
    let manifest = file[(try #require(file.firstIndex(of: UInt8(ascii: "\n"))) + 1)...]
    let reader = try Archive(path: taken[0].0.path, keys: keys).parts[0].reader
    var stored = Data()
    try reader.readManifest { stored.append(contentsOf: $0) }
    #expect(manifest == stored)
  }

  @Test func withoutItAFullArchive() throws {
    try snapshot()
    expectFull(try snapshot { $0.cache = nil }, nil)
    expectFull(try snapshot(), "no key opens the newest archive")
    #expect(try snapshot().header.kind == .incremental)
    try lab.shell("rm -r cache")
    expectFull(try snapshot(), "the cache does not have its manifest")
    try lab.shell("rm -r cache")
    // With a key it is not needed.
    #expect(try snapshot { $0.keys = keys }.header.kind == .incremental)
    // Only the newest manifest is in the cache now.
    expectFull(try snapshot(), "the cache does not have its manifest")
    expectFull(
      try snapshot { $0.encryption = .recipients([try AgeIdentity.generate().recipient]) }, "other keys")
  }

  /// Whatever a file has become, the snapshot succeeds, and is right.
  @Test func damagedFiles() throws {
    try snapshot()
    try lab.write("notes/1", "changed")
    try snapshot()
    try lab.shell("cp -r cache good")
    var random = SeededRandom(seed: 8)
    for attempt in 0..<12 {
      try lab.shell("rm -rf cache; cp -r good cache")
      let file = lab.directory(try files()[attempt % 2])
      var bytes = try RawFiles.read(Array(file.utf8))
      switch attempt / 2 {
      case 0: bytes = Data()
      case 1: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
      case 2: bytes = Data(random.bytes(9000))
      case 3: bytes.append(0)
      default:
        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      }
      try RawFiles.write(Array(bytes), to: Array(file.utf8))
      try lab.write("notes/2", "changed \(attempt)")
      let before = try TreeListing(lab.root)
      let report = try snapshot()
      #expect(report.header.kind == .full || attempt / 2 > 3, "\(attempt)")
      #expect(try restored(report.path).differences(from: before) == [], "\(attempt)")
      let next = try snapshot()
      #expect(next.header.kind == .incremental)
      for one in [report, next] { try lab.removeStored(one.path) }
    }
  }

  @Test func foreignFilesAreLeftUnchanged() throws {
    try snapshot()
    let folder = (try files()[0] as NSString).deletingLastPathComponent
    try lab.shell(
      "echo text > \(folder)/foreign; mkdir \(folder)/directory; echo text > cache/manifests/foreign")
    #expect(try snapshot().header.kind == .incremental)
    #expect(try files().count == 4)
    // Another archive's file under this one's name.
    let names = try files().filter { $0.hasSuffix(".age") }
    try lab.shell("cp \(names[0]) \(names[1])")
    #expect(try snapshot().header.kind == .full)
  }

  @Test func anotherRepositoryHasItsOwn() throws {
    try lab.make(lab.directory("other"))
    for number in 0..<3 {
      try lab.write("notes/1", "changed \(number)")
      for place in [lab.repository, lab.directory("other")] {
        let report = try snapshot(into: .repository(place))
        #expect(report.header.kind == (number == 0 ? .full : .incremental))
        #expect(report.parentProblem == nil)
        #expect(try Archive(path: report.path, keys: keys).parts.count == number + 1)
      }
    }
    #expect(try files().count == 6)
    // A copy elsewhere is another repository, until it is in the old one's place.
    try lab.changeRepository("cp -a repository copy")
    expectFull(try snapshot(into: .repository(lab.directory("copy"))), "the cache does not have its manifest")
    try lab.changeRepository("cp -a repository moved; rm -r repository; mv moved repository")
    #expect(try snapshot().header.kind == .incremental)
  }

  @Test func anArchiveOfTheChainIsGone() throws {
    let reports = try (0..<3).map { number in
      try snapshot { $0.seams.now = { Date().addingTimeInterval(Double(number * 10 - 60)) } }
    }
    try lab.changeRepository("mv 'repository/\(lastName(reports[1].path))' kept")
    expectFull(try snapshot(), "the cache does not have its manifest")
    // The next one of the new chain; what is older than it is no longer kept.
    #expect(try snapshot().header.kind == .incremental)
    #expect(try files().count == 2)
  }

  /// Encrypted again, to other keys: of the same size, and at a local place of the same name.
  @Test func aRekeyedArchiveIsAnother() throws {
    let report = try snapshot()
    #expect(try snapshot().header.kind == .incremental)
    let other = try AgeIdentity.generate()
    let size = try lab.stored(report.path).count
    let replaced = try Repository.rekey(
      report.path, keys: keys, to: nil, encryption: .recipients([other.recipient]))
    #expect(try lab.stored(replaced.path).count == size)
    #expect(replaced.path == report.path || lab.place != nil)
    expectFull(try snapshot(), "the cache does not have its manifest")
  }

  @Test func anInstanceHasItsOwn() throws {
    try lab.shell("cp -a box red; cp -a box blue")
    for number in 0..<2 {
      for name in ["red", "blue"] {
        let report = try snapshot(of: lab.directory(name))
        #expect(report.header.kind == (number == 0 ? .full : .incremental) && report.header.instance == name)
      }
    }
    #expect(try files().count == 4)
    // An instance that is erased is erased from the cache, too.
    let repository = Repository(lab.repository)
    try repository.forgetEverything(instance: "red", cache: cache, dryRun: true)
    #expect(try files().count == 4)
    try repository.forgetEverything(instance: "red", cache: cache)
    let blue = ArchiveLabel.mark("com.example.lab", "blue")
    #expect(try files().count == 2 && lab.shell("ls cache/manifests | wc -l") == "1\n")
    #expect(try files().allSatisfy { $0.contains(blue) })
  }

  @Test func itIsBounded() throws {
    lab.configuration.fullArchives.after = 2
    for number in 0..<9 {
      try snapshot { $0.seams.now = { Date().addingTimeInterval(Double(number * 2 - 60)) } }
    }
    #expect(try files().count == 3)
    try lab.shell("mkdir cache/manifests/old; touch -d '1 year ago' cache/manifests/old")
    try Repository(lab.repository).forget(keeping: .last(1))
    try snapshot()
    #expect(try files().count == 1 && lab.shell("ls cache/manifests | wc -l") == "1\n")
  }

  @Test func itIsNotUsedWhenOthersCanChangeIt() throws {
    try snapshot()
    try lab.shell("chmod 770 cache/manifests")
    let report = try snapshot()
    expectFull(report, "the cache does not have its manifest")
    #expect(report.cacheProblem?.contains("not private") == true)
    try lab.shell("chmod 700 cache/manifests; rm -r cache; echo file > cache")
    let blocked = try snapshot()
    expectFull(blocked, "no key opens")
    #expect(blocked.cacheProblem != nil)
    _ = try Verification.run(Archive(path: blocked.path, keys: keys), data: true)
  }

  @Test func onlyArchivesForRecipientsAreInIt() throws {
    try snapshot { $0.encryption = nil }
    try snapshot { $0.encryption = .passphrase(SecretBytes(Array("correct horse".utf8))) }
    try snapshot(into: .file(lab.directory("file.tar.zst.age")))
    #expect(!RawFiles.exists(Array(cache.utf8)))
  }

  /// Killed at each write to disk and each rename: the next snapshot is right, and nothing is left behind.
  @Test(.local("kills at calls of the file system")) func killedAtAnyMoment() throws {
    let arguments = [
      "snapshot", lab.root, "-r", lab.repository, "--recipient", identity.recipient.description, "--quiet",
    ]
    let environment = ["DRYDOCK_CACHE": cache]
    _ = try Command.run(Tools.drydock(), arguments, environment: environment)
    try lab.shell("cp -a repository master; cp -a cache kept")
    var (wasKept, wasLost) = (false, false)
    for call in ["fsync", "renameat2", "renameat"] {
      for number in 1...6 {
        try lab.shell("rm -rf repository cache; cp -a master repository; cp -a kept cache")
        let killed = try Command.run(
          Tools.system("strace"),
          Tools.tracing(call, "signal=SIGKILL:when=\(number)") + [Tools.drydock()] + arguments,
          environment: environment)
        if killed.succeeded { break }
        let published = try FileManager.default.contentsOfDirectory(atPath: lab.repository).filter {
          !$0.hasPrefix(".")
        }.count
        let next = try Command.run(Tools.drydock(), arguments, environment: environment)
        #expect(next.succeeded, "\(call) \(number): \(next)")
        let newest = try #require(Repository(lab.repository).list(keys: keys).items.last)
        #expect(newest.header?.kind == .incremental || published == 2, "\(call) \(number)")
        if published == 2 {
          wasKept = wasKept || newest.header?.kind == .incremental
          wasLost = wasLost || newest.header?.kind == .full
        }
        _ = try Verification.run(Archive(path: newest.path, keys: keys), data: true)
        #expect(try lab.shell("find cache -name '.drydock-*'") == "", "\(call) \(number)")
      }
    }
    #expect(wasLost, "it was killed after the archive was published, and before its manifest was kept")
    #expect(wasKept, "and after that")
  }
}
