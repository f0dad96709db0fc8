import AgeEncryption
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Archives whose times cannot be right: a clock was ahead, or was set back.
@Suite(.everyPlace) struct ClockTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let now = Date(timeIntervalSince1970: 1_795_262_400)

  @discardableResult
  private func add(
    _ id: String, _ time: String, instance: String = "box", written: String? = nil,
    follows: String? = nil, parent: String? = nil
  ) throws -> String {
    func whole(_ id: String) -> Archive.ID {
      Archive.ID(unchecked: id.padding(toLength: 32, withPad: "0", startingAt: 0))
    }
    let id = whole(id)
    let archive = try HandmadeArchive(
      lab, name: id.short + ".tar.zst", id: id, instance: instance, time: time, parent: parent.map(whole),
      follows: follows.map { [$0] })
    let path = try archive.write()
    if lab.folder != nil {
      let modified = try Date(written ?? time, strategy: .iso8601)
      try FileManager.default.setAttributes(
        [.modificationDate: modified], ofItemAtPath: lab.localCopy(of: path))
    }
    return path
  }

  private func order() throws -> [String] {
    try Repository(lab.repository).list().items.map { String($0.id.prefix(1)) }
  }

  @Test(.local("sets the times of the files"))
  func `Written before the time that it says: the time of the file counts`() throws {
    try add("a1", "2026-11-20T10:00:00Z")
    let ahead = try add("b2", "2026-11-22T09:00:00Z", written: "2026-11-20T11:00:00Z")
    let newest = try add("c3", "2026-11-20T12:00:00Z")
    let listing = try Repository(lab.repository).list()
    #expect(try order() == ["a", "b", "c"])
    #expect(try listing.find("latest") == newest && listing.find("box@2026-11-20T11:30") == ahead)
    let warnings = listing.clockWarnings(now: Self.now)
    #expect(warnings.map(\.kind) == [.future] && warnings.map(\.archive) == [ahead])
    let later = listing.clockWarnings(now: Self.now.addingTimeInterval(86_400 * 3))
    #expect(later.map(\.kind) == [.published] && later.first?.otherTime == "2026-11-20T11:00:00Z")
    #expect(listing.clockWarnings(of: newest, now: Self.now).count == 1)
  }

  @Test(.local("sets the times of the files"))
  func `Files that were copied later, or have no time, are in the order of their own times`() throws {
    try add("c3", "2026-11-20T12:00:00Z", written: "1970-01-01T00:00:01Z")
    try add("a1", "2026-11-18T10:00:00Z", written: "2026-11-20T18:00:00Z")
    try add("b2", "2026-11-19T10:00:00Z", written: "2026-11-19T09:59:30Z")
    #expect(try order() == ["a", "b", "c"])
    #expect(try Repository(lab.repository).list().clockWarnings(now: Self.now).isEmpty)
  }

  /// An SFTP server lists it as of January 10, without a time.
  @Test(.atEachPlace) func `The rounded time of a file contradicts no archive`() throws {
    let path = try add("a1", "2024-01-10T22:30:00Z")
    try lab.changeRepository("touch -d 2024-01-10T22:30:05Z repository/*")
    let listing = try Repository(lab.repository).list()
    #expect(listing.clockWarnings(now: Self.now).isEmpty)
    #expect(try listing.find("box@2024-01-10T22:30") == path)
    expectError(.notFound) { try listing.find("box@2024-01-10T22:29") }
  }

  @Test(.atEachPlace) func `Full archives of one second are in the order of their writing`() throws {
    let paths = try (0..<5).map { _ in
      try lab.snapshot { ($0.isFull, $0.seams.now) = (true, { Self.now }) }.path
    }
    try lab.changeRepository("touch -d 2026-11-25T10:00:00Z repository/*")
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == paths)
    #expect(try listing.find("box@latest") == paths.last && listing.clockWarnings(now: Self.now).isEmpty)
  }

  @Test func `A copy is where the archive is that it was made of, also within one second`() throws {
    let paths = try (1...4).map { number in
      try lab.write("v", "\(number)")
      return try lab.snapshot { ($0.isFull, $0.seams.now) = (number % 2 == 1, { Self.now }) }.path
    }
    try lab.shell("mkdir other")
    for path in paths.reversed() {
      let archive = try Archive(path: path)
      _ = try SnapshotCopy.export(archive, to: .repository(lab.repository), tool: "test")
      _ = try SnapshotCopy.export(archive, to: .repository(lab.directory("other")), tool: "test")
    }
    for repository in [lab.repository, lab.directory("other")] {
      let newest = try Repository(repository).list().find("box@latest")
      #expect(
        try Archive(path: newest).manifest.entry("v")?.digest
          == Archive(path: paths[3]).manifest.entry("v")?.digest)
      let order = try Repository(repository).list().items.map {
        $0.header?.exportedFrom?.description ?? $0.id
      }
      let expected = try paths.map { try Archive(path: $0).header.archive.description }
      #expect(order.filter(expected.contains) == order && Set(order).count == 4)
      #expect(zip(order, order.dropFirst()).filter { $0 != $1 }.map(\.1) == Array(expected.dropFirst()))
    }
  }

  @Test(.local("sets the times of the files"))
  func `Made after one of a later time: newer all the same, as are those that follow both`() throws {
    try add("a1", "2026-11-19T10:00:00Z")
    // The clock was a year ahead, and the file's time with it.
    let ahead = try add("b2", "2027-11-19T10:00:00Z")
    let first = try add("c3", "2026-11-20T10:00:00Z", follows: "b2000000")
    let second = try add("d4", "2026-11-21T10:00:00Z", follows: "b2000000")
    // Others have nothing to do with it.
    let other = try add("e5", "2026-11-21T11:00:00Z", instance: "red", follows: "b2000000")
    let listing = try Repository(lab.repository).list()
    #expect(try order() == ["a", "e", "b", "c", "d"])
    #expect(try listing.find("box@latest") == second && listing.find("box@2026-11-20") == first)
    #expect(try listing.find("red@latest") == other)
    #expect(listing.clockWarnings(now: Self.now).map(\.kind) == [.future, .backwards, .backwards])
    #expect(listing.clockWarnings(of: other, now: Self.now).isEmpty)
    // When the time has come, the order is the same, and right ones come after.
    let late = try add("f6", "2027-11-20T10:00:00Z")
    #expect(try order() == ["a", "e", "b", "c", "d", "f"])
    #expect(try Repository(lab.repository).list().find("box@latest") == late)
    try lab.remove("../repository/" + lastName(ahead))
    #expect(try order() == ["a", "c", "d", "e", "f"])
  }

  @Test(.local("sets the times of the files"))
  func `Two clocks ahead by different times; a parent from a clock ahead`() throws {
    try add("a1", "2026-11-20T10:00:50Z", written: "2026-11-20T10:00:00Z")
    try add("b2", "2026-11-30T10:00:00Z", written: "2026-11-20T10:00:02Z")
    try add("c3", "2026-11-29T10:00:00Z", instance: "red")
    try add("d4", "2026-11-20T12:00:00Z", instance: "red", parent: "c3")
    // Its own parent is not of a later time.
    try add("e5", "2026-11-21T12:00:00Z", instance: "red", parent: "d4")
    #expect(try order() == ["a", "b", "c", "d", "e"])
  }

  /// The server lists times in its zone, 11 hours behind.
  @Test func `Written before the time that it says, over SFTP: the exact time of the file counts`() throws {
    try PlaceKind.sftp.use(for: lab)
    try add("a1", "2026-11-20T10:00:00Z")
    try add("b2", "2026-11-20T11:00:00Z")
    try add("c3", "2026-11-23T12:00:00Z", written: "2026-11-20T12:00:00Z")
    try add("d4", "2026-11-20T13:00:00Z", follows: "c3000000")
    try add("e5", "2026-11-20T14:00:00Z", follows: "c3000000")
    #expect(try order() == ["a", "b", "c", "d", "e"])
    let kept = try Repository(lab.repository).forget(keeping: .last(2)).kept
    #expect(kept.map { $0.id.prefix(1) } == ["d", "e"])
  }

  @Test(.local("sets the times of the files"))
  func `A signed archive keeps its place, whatever time its file has`() throws {
    let signing = try SigningLab()
    let lab = signing.lab
    func snapshot(_ hours: Double) throws -> String {
      try signing.snapshot {
        $0.signing = [signing.key]
        $0.seams.now = { Self.now.addingTimeInterval(hours * 3600) }
      }.path
    }
    let paths = [try snapshot(-72), try snapshot(-48), try snapshot(-24)]
    try lab.shell("touch -d '2026-01-01' '\(paths[2])'; touch -d '2027-01-01' '\(paths[0])'")
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == paths)
    #expect(try listing.find("latest") == paths[2])
    #expect(listing.clockWarnings(now: Self.now).isEmpty)
    // Without its signature the file's time counts, but it is newer than its parent.
    try lab.shell("rm '\(paths[2])'.statement*")
    #expect(try Repository(lab.repository).list().items.map(\.path) == paths)
  }

  @Test func `Archives that name each other are listed`() throws {
    try add("a1", "2026-11-19T10:00:00Z", follows: "b2000000")
    try add("b2", "2026-11-20T10:00:00Z", follows: "a1000000")
    try add("c3", "2026-11-20T10:00:00Z", follows: "c3000000")
    #expect(try order().count == 3)
    try add("d4", "2026-11-20T10:00:00Z", follows: "not hexadecimal")
    #expect(try Repository(lab.repository).list().unreadable.count == 1)
  }

  @Test func `A snapshot by a clock that was set back is the latest one, and says so`() throws {
    func snapshot(_ hours: Double) throws -> SnapshotReport {
      try lab.snapshot { $0.seams.now = { Self.now.addingTimeInterval(hours * 3600) } }
    }
    let before = try snapshot(-24)
    let ahead = try snapshot(24)
    let right = try snapshot(0)
    #expect(before.clockWarning == nil && ahead.clockWarning == nil && before.header.follows == nil)
    #expect(right.clockWarning?.kind == .future && right.clockWarning?.archive == ahead.path)
    #expect(right.header.follows == [ahead.archive.short])
    let back = try snapshot(-48)
    let third = try snapshot(1)
    #expect(back.header.follows == [ahead, right, before].map(\.archive.short))
    #expect(third.header.follows == [ahead.archive.short])
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == [before, ahead, right, back, third].map(\.path))
    let after = try snapshot(25)
    #expect(after.header.follows == nil && after.clockWarning == nil)
    #expect(try Repository(lab.repository).find("latest") == after.path)
    _ = try Verification.run(Archive(path: right.path), data: true)
    // Each names all that have a later time: the others may go.
    try lab.removeStored(right.path)
    #expect(
      try Repository(lab.repository).list().items.map(\.path)
        == [before, ahead, back, third, after].map(\.path))
  }

  @Test func `Without a key the order after a wrong clock is not known, and nothing is removed`() throws {
    let identity = try AgeIdentity.generate()
    var newest = ""
    for hours in [24.0, 0, 1] {
      let report = try lab.snapshot {
        $0.seams.now = { Self.now.addingTimeInterval(hours * 3600) }
        $0.encryption = .recipients([identity.recipient])
      }
      #expect(lastName(report.path).contains("Z+_") == (hours < 24))
      newest = report.path
    }
    // The name of a copy under other keys says it, too.
    let copies = lab.directory("copies")
    try lab.make(copies)
    let copy = try Repository.rekey(
      newest, keys: AgeKeys(identities: [identity]), to: .repository(copies),
      encryption: .recipients([AgeIdentity.generate().recipient]))
    #expect(lastName(copy.path).contains("Z+_"))
    let repository = Repository(lab.repository)
    let names = try lab.storedNames()
    #expect(throws: DrydockError.self) { try repository.forget(keeping: .last(1)) }
    #expect(try lab.storedNames() == names)
    let report = try repository.forget(keeping: .last(1), keys: AgeKeys(identities: [identity]))
    #expect(report.kept.map(\.time) == ["2026-11-21T13:00:00Z"], "\(report.kept)")
  }
}
