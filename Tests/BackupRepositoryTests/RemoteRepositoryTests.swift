import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository

/// Repositories at a real OpenStack Swift and a real OpenSSH server.
@Suite struct RemoteRepositoryTests {
  /// A proxy breaks every fifth connection.
  @Test(arguments: [PlaceKind.s3, .sftp])
  func `Nothing is lost through broken connections`(_ kind: PlaceKind) throws {
    let place = try kind.make()
    let (faulty, proxy) = try RemoteServers.faulty(place, seed: 7, percent: 20)
    try withExtendedLifetime(proxy) {
      let lab = try Lab()
      try kind.use(faulty, for: lab)
      try work(lab, direct: place.store("backups"), rounds: TestExtent.isFull ? 250 : 6)
    }
  }

  @Test func `A parent in cold storage: the next archive is a full one, and says why`() throws {
    let place = try RemoteServers.motoS3()
    let lab = try Lab()
    try PlaceKind.s3.use(place, for: lab)
    try lab.write("f", "content")
    let first = try lab.snapshot()
    let object = first.path.dropFirst("s3://".count)
    let endpoint = place.environment["AWS_ENDPOINT_URL_S3"] ?? ""
    try lab.shell(
      """
      curl -sSf --aws-sigv4 aws:amz:us-east-1:s3 --user drydock:testing -X PUT -H 'x-amz-storage-class: GLACIER' \
        -H 'x-amz-copy-source: /\(object)' '\(endpoint)/\(object)'
      """)
    for _ in 1...2 {
      let next = try lab.incremental()
      #expect(next.header.kind == .full && next.parentProblem?.contains("cold storage") == true, "\(next)")
      try lab.removeStored(next.path)
    }
    #expect(try Repository(lab.repository).list().unreadable.map(\.path) == [first.path])
    expectError(nil, "archived in cold storage; restore it there") { try Archive(path: first.path) }
  }

  @Test func `What is not needed can be removed from a full server`() throws {
    let (place, server) = try RemoteServers.refusingSFTP("small-disk")
    try withExtendedLifetime(server) {
      let lab = try Lab()
      try PlaceKind.sftp.use(place, for: lab)
      for round in 0..<3 {
        try lab.write("f", SeededRandom.noise(200_000 + round))
        try lab.incremental { $0.isFull = true }
      }
      let store = try place.store("backups")
      for size in [100_000, 10_000, 1] {
        var number = 0
        while (try? store.put(ContainerPath("filler-\(size)-\(number)"), [UInt8](repeating: 7, count: size)))
          != nil
        {
          number += 1
        }
      }
      try lab.write("f", SeededRandom.noise(200_000))
      expectError { try lab.incremental { $0.isFull = true } }
      let report = try Repository(lab.repository).forget(keeping: .last(1))
      #expect(report.removed.count == 2 && report.kept.count == 1)
      let next = try lab.incremental { $0.isFull = true }
      _ = try Verification.run(Archive(path: next.path), data: true)
    }
  }

  /// The server is killed with all connections, and starts again, over and over.
  @Test(arguments: [PlaceKind.s3, .sftp])
  func `Nothing is lost when the server is killed`(_ kind: PlaceKind) throws {
    let (place, server) = try RemoteServers.restarting(sftp: kind == .sftp)
    let lab = try Lab()
    // A server that has never answered is given up soon.
    try kind.use(place, for: lab)
    let restarts = { @Sendable in server.output.split(separator: "\n").filter { $0 == "restarted" }.count }
    let direct = try place.store("backups")
    let killer = Thread {
      var random = SeededRandom(seed: 3)
      var count = 0
      while !Thread.current.isCancelled, server.isRunning {
        let killed = Date()
        server.kill(SIGUSR1)
        count += 1
        while restarts() < count, server.isRunning { usleep(10_000) }
        // It works again before it is killed again, for three times as long as it did not: on a busy machine it starts slowly, and
        // the lock must be renewed within a minute.
        _ = try? direct.list("")
        let down = UInt32(Date().timeIntervalSince(killed) * 1e6)
        let pauses: ClosedRange<UInt32> = kind == .sftp ? 50_000...1_000_000 : 1_000_000...3_000_000
        usleep(max(3 * down, UInt32.random(in: pauses, using: &random)))
      }
    }
    killer.start()
    defer { killer.cancel() }
    try work(lab, direct: direct, rounds: TestExtent.isFull ? 100 : 6)
    #expect(server.isRunning && server.errors == "", "\(server.errors)")
    #expect(restarts() > 0)
  }

  /// Snapshots, tags, removals and compactions: what was reported is there, whole, and nothing else.
  ///
  /// - Parameter direct: the repository, to look at it past what breaks.
  private func work(_ lab: Lab, direct: any Place, rounds: Int) throws {
    let repository = Repository(lab.repository)
    var random = SeededRandom(seed: 11)
    let keys = AgeKeys(identities: [try .generate()])
    var expected: [String: [String]] = [:]
    for round in 0..<rounds {
      try lab.write("f\(round % 5)", random.bytes(Int.random(in: 1...300_000, using: &random)))
      let report = try lab.incremental {
        ($0.encryption, $0.keys) = (.recipients(keys.identities.map(\.recipient)), keys)
        ($0.tags, $0.lockTimeout) = (round % 3 == 0 ? ["third"] : [], 30)
      }
      #expect(report.parentProblem == nil, "round \(round)")
      expected[report.archive.description] = round % 3 == 0 ? ["third"] : []
      if round % 4 == 3 {
        let forgot = try repository.forget(
          keeping: .last(3), keys: keys, compacting: .share(0), lockTimeout: 30)
        expected = Dictionary(uniqueKeysWithValues: forgot.kept.map { ($0.id, $0.tags) })
      }
      let listing = try repository.list(direct, keys)
      #expect(listing.unreadable.isEmpty && listing.locked.isEmpty, "round \(round)")
      let found = listing.items.map { ($0.id, $0.tags) }
      #expect(Dictionary(uniqueKeysWithValues: found) == expected, "round \(round)")
      #expect(try direct.files("locks") == [], "round \(round)")
    }
    for item in try repository.list(keys: keys).items {
      _ = try Verification.run(Archive(path: item.path, keys: keys), data: true)
    }
  }

  @Test(
    "The lock of one process keeps others out, and a stale one does not", arguments: [PlaceKind.s3, .sftp])
  func locks(_ kind: PlaceKind) throws {
    let place = try kind.make()
    let store = try place.store()
    try store.createIfNeeded()
    do {
      let shared = try LockedPlace(store, exclusive: false, timeout: 0)
      let other = try LockedPlace(store, exclusive: false, timeout: 0)
      expectError(.locked, "process \(getpid()) on ") {
        try LockedPlace(store, exclusive: true, timeout: 0)
      }
      try shared.requireLocked()
      withExtendedLifetime(other) {}
    }
    #expect(try store.files("locks") == [])
    // A process of this machine that has ended.
    let ended = try Command.spawn("/bin/true", [])
    _ = try ended.wait()
    try store.put(LockedPlace.name(process: ended.process, exclusive: true), [])
    // It comes after the other.
    let name = try LockedPlace.name(process: getpid(), exclusive: true)
    let alive = try ContainerPath("\(name)".replacing("exclusive_", with: "exclusive_z"))
    try store.put(alive, [])
    expectError(.locked) { try LockedPlace(store, exclusive: false, timeout: 0) }
    #expect(try store.files("locks").map(\.name) == [alive])
    // Another machine's, which nobody has written for long, by the server's clock.
    if let directory = place.directory {
      let file = "\(directory)/\(alive)"
      try Command.succeed(Tools.system("touch"), ["-d", "8 minutes ago", file])
      let lock = try LockedPlace(store, exclusive: true, timeout: 0)
      try lock.requireLocked()
    } else {
      try store.remove(alive)
    }
    #expect(try store.files("locks") == [])
  }

  /// The renewal is nearly always on its way: what it writes after the removal would be left.
  @Test(arguments: [PlaceKind.s3, .sftp])
  func `A lock that is given up during its renewal leaves nothing`(_ kind: PlaceKind) throws {
    let store = try kind.make().store()
    var timing = LockedPlace.Timing()
    (timing.renewal, timing.settling) = (0.001, 0)
    for round in 0..<8 {
      do {
        let lock = try LockedPlace(store, exclusive: true, timeout: 0, timing: timing)
        usleep(UInt32(round) * 7000)
        try lock.requireLocked()
      }
      #expect(try store.files("locks") == [], "round \(round)")
    }
  }

  @Test(
    "A lock whose renewal fails or takes long is renewed while it is trusted",
    arguments: [
      // Without further tries in between, the last that fails would be too late.
      (failing: 2...4, delay: 0.0, trusted: 3.0, puts: 5),
      (failing: 0...0, delay: 1.5, trusted: 2.2, puts: 2),
    ])
  func lateRenewals(failing: ClosedRange<Int>, delay: Double, trusted: Double, puts: Int) throws {
    let store = try Unreliable(PlaceKind.sftp.make().store(), failing: failing, delay: delay)
    var timing = LockedPlace.Timing()
    (timing.renewal, timing.trusted, timing.settling) = (1, trusted, 0)
    let lock = try LockedPlace(store, exclusive: true, timeout: 0, timing: timing)
    while store.puts.withLock({ $0 }) < puts {
      try lock.requireLocked()
      usleep(10_000)
    }
    try lock.requireLocked()
  }

  /// Some of its writes of small files fail, counted from 1; the first one takes longer.
  private final class Unreliable: PlaceWrapper {
    let base: any Place
    private let failing: ClosedRange<Int>
    private let delay: Double
    let puts = Mutex(0)

    init(_ base: any Place, failing: ClosedRange<Int>, delay: Double) {
      (self.base, self.failing, self.delay) = (base, failing, delay)
    }

    func put(_ name: ContainerPath, _ bytes: [UInt8]) throws {
      let number = puts.withLock { puts in
        puts += 1
        return puts
      }
      if number == 1 { Thread.sleep(forTimeInterval: delay) }
      guard !failing.contains(number) else { throw DrydockError(.io, "the server does not answer") }
      try base.put(name, bytes)
    }
  }

  @Test func `A snapshot that fails on a full server leaves nothing there`() throws {
    let lab = try Lab()
    let (place, server) = try RemoteServers.refusingSFTP("full")
    try PlaceKind.sftp.use(place, for: lab)
    try lab.write("large", SeededRandom.noise(1_000_000))
    expectError(nil, "as on a full disk") { try lab.incremental() }
    #expect(try lab.shell("find . -type f", in: place.directory) == "")
    try lab.write("large", "small")
    #expect(try lab.incremental().entries > 0)
    withExtendedLifetime(server) {}
  }

  /// In a directory: RepositoryTests.
  @Test func `What is named like an archive and is not a file is reported`() throws {
    let lab = try Lab()
    try PlaceKind.sftp.use(for: lab)
    let folder = try #require(lab.folder)
    try lab.write("note", "small")
    let path = try lab.incremental { _ in }.path
    let names = ["directory", "fifo", "link"].map { "\($0)_20260101T000000Z_0123456789abcdef.tar.zst" }
    try lab.shell("mkdir \(names[0]); mkfifo \(names[1]); ln -s \(lastName(path)) \(names[2])", in: folder)
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == [path])
    #expect(listing.unreadable.map { lastName($0.path) }.sorted() == names)
    #expect(listing.unreadable.allSatisfy { $0.reason.contains("not a file; links are not followed") })
  }

  /// A process of another namespace: its number means nothing here, as on another machine.
  @Test(arguments: [PlaceKind.s3, .sftp])
  func `The lock of another machine keeps others out until it expires`(_ kind: PlaceKind) throws {
    let lab = try Lab()
    let place = try kind.make()
    try kind.use(place, for: lab)
    let store = try place.store("backups")
    try lab.write("first", "small")
    let first = try lab.incremental { _ in }.path
    try lab.write("large", SeededRandom.noise(4_000_000))
    let unshare = getuid() == 0 ? ["--pid"] : ["--map-root-user", "--pid"]
    let other = try Command.spawn(
      Tools.system("unshare"),
      unshare + [
        "--fork", "--kill-child", "--mount-proc", Tools.drydock(), "snapshot", lab.root, "-r", lab.repository,
        "--limit-rate", "20kB",
      ], environment: place.environment)
    let end = Date().addingTimeInterval(60)
    while try store.files("locks").isEmpty, other.isRunning, Date() < end { usleep(20_000) }
    for _ in 0..<2 {
      expectError(.locked) { try Repository(lab.repository).forget(keeping: .last(1)) }
      // It can be dead only by the clock.
      try other.end()
    }
    #expect(try store.files("locks").count == 1)
    var timing = LockedPlace.Timing()
    timing.stale = 2
    do { try LockedPlace(store, exclusive: true, timeout: 30, timing: timing).requireLocked() }
    #expect(try store.files("locks") == [])
    #expect(try Repository(lab.repository).list().items.map(\.path) == [first])
    let next = try lab.incremental { _ in }
    _ = try Verification.run(Archive(path: next.path), data: true)
  }

  /// Each listing misses what was written since the last three, and has what was removed since then.
  @Test func `Nothing is lost where listings are late`() throws {
    let lab = try Lab()
    let place = try PlaceKind.s3.make()
    let (late, proxy) = try RemoteServers.late(place, listings: 3)
    try withExtendedLifetime(proxy) {
      try PlaceKind.s3.use(late, for: lab)
      let repository = Repository(lab.repository)
      let direct = try place.store("backups")
      var known: Set<String> = []
      // Of an archive that no listing shows yet.
      let tags = try ContainerPath("\(String(repeating: "a", count: 32)).tags.json")
      try direct.put(tags, Array(#"{"archive": "x", "tags": []}"#.utf8))
      let start = Date().addingTimeInterval(-40)
      for round in 0..<8 {
        try lab.write("f\(round % 3)", SeededRandom.noise(20_000 + round))
        // Each of another second: one that follows another of its second, and has not seen it in a listing, may not be the newest.
        let report = try lab.incremental {
          ($0.lockTimeout, $0.seams.now) = (30, { start.addingTimeInterval(Double(round)) })
        }
        known.insert(report.archive.description)
        if round % 2 == 1 {
          let forgot = try repository.forget(keeping: .last(2), lockTimeout: 30)
          known.subtract(forgot.removed.map(\.id))
          #expect(!forgot.removed.contains { $0.id == report.archive.description })
        }
        // Without the proxy: what no rule has removed is there, whole, and nothing else.
        let listing = try repository.list(direct, AgeKeys())
        #expect(Set(listing.items.map(\.id)) == known, "round \(round)")
        #expect(listing.unreadable.map { lastName($0.path) } == ["\(tags)"])
        #expect(try direct.files("locks") == [], "round \(round)")
      }
      #expect(try direct.file(tags) != nil)
      try direct.remove(tags)
      // When nothing is written any more, the listings catch up.
      for _ in 0..<4 { _ = try repository.list() }
      let listing = try repository.list()
      #expect(Set(listing.items.map(\.id)) == known && listing.unreadable.isEmpty)
      for item in listing.items { _ = try Verification.run(Archive(path: item.path), data: true) }
      let newest = try Archive(path: repository.find("latest"))
      _ = try Restore.run(newest, lab.target(newest, lab.directory("back")))
      #expect(try lab.read("f1", in: lab.directory("back")) == lab.read("f1"))
      #expect(proxy.output.contains("late ") && proxy.output.contains("gone "))
    }
  }

  @Test(arguments: [PlaceKind.s3, .sftp])
  func `One small file of a large archive takes few bytes`(_ kind: PlaceKind) throws {
    let lab = try Lab()
    try kind.use(for: lab)
    var random = SeededRandom(seed: 3)
    for number in 0..<4 { try lab.write("large\(number)", random.bytes(5_000_000)) }
    try lab.write("note", "small")
    let report = try lab.incremental { _ in }
    let archive = try Archive(path: report.path)
    #expect(try archive.bytes(of: "note") == Data("small".utf8))
    #expect(archive.bytesRead < 6_000_000 && archive.fileSize > 20_000_000, "\(archive.bytesRead) bytes")
  }

  @Test func `What a list reads is kept, and not trusted when it is damaged`() throws {
    let lab = try Lab()
    let place = try PlaceKind.sftp.make()
    try PlaceKind.sftp.use(place, for: lab)
    try lab.write("note", "small")
    let path = try lab.incremental { _ in }.path
    let repository = Repository(lab.repository)
    let cached = try Places.connect(lab.repository, place.options, cache: lab.directory("cache"))
    func items() throws -> [String] {
      let listing = try repository.list(cached, AgeKeys())
      return listing.items.map(\.path) + listing.unreadable.map { "unreadable \($0.path)" }
    }
    #expect(try items() == [path])
    // The archive's bytes are no longer needed for a list.
    let file = "\(try #require(place.directory))/backups/\(lastName(path))"
    let content = try Data(contentsOf: URL(fileURLWithPath: file))
    let modified = try FileManager.default.attributesOfItem(atPath: file)[.modificationDate] as? Date
    func write(_ data: Data) throws {
      try data.write(to: URL(fileURLWithPath: file))
      try FileManager.default.setAttributes([.modificationDate: try #require(modified)], ofItemAtPath: file)
    }
    try write(Data(count: content.count))
    #expect(try items() == [path])
    try write(content)
    let kept = try lab.shell("find cache -type f").split(separator: "\n")
    #expect(!kept.isEmpty)
    for name in kept { try Data("x".utf8).write(to: URL(fileURLWithPath: lab.directory(String(name)))) }
    #expect(try items() == [path])
    // What is verified, and so what is restored, is what the server has.
    Places.use(cached, for: lab.repository)
    #expect(try items() == [path])
    try write(content.dropLast() + [content.last.map { $0 ^ 1 } ?? 0])
    #expect(try items() == [path])
    #expect(throws: DrydockError.self) { try Verification.run(Archive(path: path), data: true) }
    try write(content)
    _ = try Verification.run(Archive(path: path), data: true)

    try repository.forgetEverything(app: "com.example.lab")
    #expect(try items() == [])
    #expect(try lab.shell("find cache -type f") == "")
  }
}
