import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import RemoteStorage
import TestSupport
import Testing

@testable import BackupRepository

/// Repositories at a real OpenStack Swift and a real OpenSSH server.
@Suite("Remote repositories") struct RemoteRepositoryTests {
  /// Snapshots, tags, removals and compactions through a proxy that breaks every fifth connection: what was reported is there,
  /// whole, and nothing else.
  @Test("Nothing is lost through broken connections", arguments: [PlaceKind.s3, .sftp])
  func brokenConnections(_ kind: PlaceKind) throws {
    let lab = try Lab()
    let place = try kind.make()
    let (faulty, proxy) = try RemoteServers.faulty(place, seed: 7, percent: 20)
    try withExtendedLifetime(proxy) {
      try kind.use(faulty, for: lab)
      let repository = Repository(lab.repository)
      var random = SeededRandom(seed: 11)
      let keys = AgeKeys(identities: [try .generate()])
      var expected: [String: [String]] = [:]
      for round in 0..<(TestExtent.isFull ? 250 : 6) {
        try lab.write("f\(round % 5)", random.bytes(Int.random(in: 1...300_000, using: &random)))
        let report = try lab.incremental {
          ($0.encryption, $0.keys) = (.recipients(keys.identities.map(\.recipient)), keys)
          ($0.tags, $0.lockTimeout) = (round % 3 == 0 ? ["third"] : [], 30)
        }
        #expect(report.parentProblem == nil, "round \(round)")
        expected[report.archive.description] = round % 3 == 0 ? ["third"] : []
        if round % 4 == 3 {
          var policy = RetentionPolicy()
          policy.last = 3
          var options = CompactionOptions()
          options.share = 0
          let forgot = try repository.forget(
            keeping: policy, keys: keys, compacting: options, lockTimeout: 30)
          expected = Dictionary(uniqueKeysWithValues: forgot.kept.map { ($0.id, $0.tags) })
        }
        // Without the proxy.
        let direct = RemotePlace(
          .init(url: lab.repository, store: try place.store("backups"), cache: nil))
        let listing = try repository.list(direct, keys)
        #expect(listing.unreadable.isEmpty && listing.sealed.isEmpty, "round \(round)")
        let found = listing.items.map { ($0.header.archive.description, $0.tags) }
        #expect(Dictionary(uniqueKeysWithValues: found) == expected, "round \(round)")
        #expect(try direct.store.list("locks") == [], "round \(round)")
      }
      for item in try repository.list(keys: keys).items {
        _ = try Verification.run(Archive(path: item.path, keys: keys), data: true)
      }
    }
  }

  @Test(
    "The lock of one process keeps others out, and a stale one does not", arguments: [PlaceKind.s3, .sftp])
  func locks(_ kind: PlaceKind) throws {
    let place = try kind.make()
    let store = try place.store()
    try store.createIfNeeded()
    do {
      let shared = try RemoteLock(store, exclusive: false, timeout: 0)
      let other = try RemoteLock(store, exclusive: false, timeout: 0)
      let error = failure { _ = try RemoteLock(store, exclusive: true, timeout: 0) } as? DrydockError
      #expect(error?.code == .locked)
      #expect(error?.message.contains("process \(getpid()) on ") == true, "\(error as Any)")
      try shared.requireHeld()
      withExtendedLifetime(other) {}
    }
    #expect(try store.list("locks") == [])
    // A process of this machine that has ended.
    let ended = try Command.spawn("/bin/true", [])
    _ = try ended.wait()
    for (number, owner) in [("1", ended.process), ("2", getpid())] {
      _ = try store.put("locks/exclusive-\(number).json", RemoteLock.content(process: owner, exclusive: true))
    }
    let error = failure { _ = try RemoteLock(store, exclusive: false, timeout: 0) } as? DrydockError
    #expect(error?.code == .locked)
    #expect(try store.list("locks").map(\.name) == ["locks/exclusive-2.json"])
    // Another machine's, which nobody has written for long, by the server's clock.
    if let directory = place.directory {
      let file = "\(directory)/locks/exclusive-2.json"
      let touched = try Command.run(Tools.system("touch"), ["-d", "8 minutes ago", file])
      #expect(touched.succeeded)
      let lock = try RemoteLock(store, exclusive: true, timeout: 0)
      try lock.requireHeld()
    } else {
      try store.remove("locks/exclusive-2.json")
    }
    #expect(try store.list("locks") == [])
  }

  @Test("One small file of a large archive takes few bytes", arguments: [PlaceKind.s3, .sftp])
  func ranges(_ kind: PlaceKind) throws {
    let lab = try Lab()
    _ = try kind.use(for: lab)
    var random = SeededRandom(seed: 3)
    for number in 0..<6 { try lab.write("large\(number)", random.bytes(5_000_000)) }
    try lab.write("note", "small")
    let report = try lab.incremental { _ in }
    let archive = try Archive(path: report.path)
    let entry = try #require(try archive.manifest.entry("note"))
    var text: [UInt8] = []
    try archive.content(of: entry) { text += $0 }
    #expect(text == Array("small".utf8))
    #expect(archive.bytesRead < 6_000_000 && archive.fileSize > 30_000_000, "\(archive.bytesRead) bytes")
  }

  @Test("What a list reads is kept, and not trusted when it is damaged")
  func cache() throws {
    let lab = try Lab()
    let place = try PlaceKind.sftp.make()
    try PlaceKind.sftp.use(place, for: lab)
    try lab.write("note", "small")
    let path = try lab.incremental { _ in }.path
    let repository = Repository(lab.repository)
    let cache = try EdgeCache(lab.directory("cache"), of: lab.repository)
    let connection = RemoteConnections.Connection(
      url: lab.repository, store: try place.store("backups"), cache: cache)
    func items() throws -> [String] {
      let listing = try repository.list(RemotePlace(connection), AgeKeys())
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
    try repository.remove(repository.list().items[0])
    #expect(try items() == [])
    #expect(try lab.shell("find cache -type f") == "")
  }
}
