import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import BackupRepository
@testable import FileSystem

/// Where archives go, and what is refused.
@Suite struct PublicationTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  @Test func neverReplacesAFile() throws {
    try lab.write("file", "content")
    let target = lab.directory("mine.tar.zst")
    #expect(try lab.snapshot(to: target).path == target)
    let before = try TreeListing(lab.directory.path)
    expectError(.overlap) { try lab.snapshot(to: target) }
    expectSame(try TreeListing(lab.directory.path), as: before)
  }

  @Test func placesThatOverlapAreRefused() throws {
    try lab.directory(in: "Documents/backups")
    try lab.write("file", "content")
    try lab.shell("ln -s box/Documents/backups way")
    let before = try TreeListing(lab.directory.path)
    for place in [
      lab.root, lab.root + "/Documents/backups", lab.root + "/../box/Documents/", lab.directory.path,
    ] {
      expectError(.overlap) { try lab.take(to: .repository(place)) }
    }
    for file in ["box/out.tar.zst", "way/out.tar.zst"] {
      expectError(.overlap) { try lab.snapshot(to: lab.directory(file)) }
    }
    expectError(.notFound) { try lab.snapshot(to: lab.directory("none/out.tar.zst")) }
    expectError(.notFound) { try lab.snapshot(to: lab.repository + "/") }
    let nowhere = ArchiveTarget.repository(lab.directory("none"))
    expectError(.notFound) { try lab.take(to: nowhere) }
    expectSame(try TreeListing(lab.directory.path), as: before)
    // A file beside the container is fine.
    try lab.snapshot(to: lab.directory("beside.tar.zst"))
  }

  @Test func whatAKilledSnapshotLeftIsRemoved() throws {
    try lab.write("file", "content")
    let stale =
      lab.repository + "/.drydock-writing-\(MachineIdentity.current)-00000000000000000000000000000000"
    let held =
      lab.repository + "/.drydock-writing-\(MachineIdentity.current)-11111111111111111111111111111111"
    for path in [stale, held] {
      try lab.make(path)
      try RawFiles.write([1, 2, 3], to: Array((path + "/archive").utf8))
    }
    let holder = try Directory(held)
    #expect(try holder.tryLock(exclusive: true))
    let report = try lab.snapshot()
    #expect(!RawFiles.exists(Array(stale.utf8)) && RawFiles.exists(Array((held + "/archive").utf8)))
    #expect(try RawFiles.names(in: Array(lab.repository.utf8)).count == 2)
    #expect(try Repository(lab.repository).list().items.map(\.path) == [report.path])
    withExtendedLifetime(holder) {}
  }

  @Test(.everyPlace, .atEachPlace) func twoSnapshotsAtOnceBothArrive() throws {
    try lab.write("file", SeededRandom.noise(2 << 20))
    let (root, repository) = (lab.root, lab.repository)
    let count = lab.place == nil ? 12 : 5
    DispatchQueue.concurrentPerform(iterations: count) { _ in
      do {
        _ = try Snapshot.take(Container(at: root), to: .repository(repository))
      } catch {
        Issue.record(error)
      }
    }
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.count == count && listing.unreadable.isEmpty)
    #expect(try lab.storedNames().count == count)
    for item in listing.items { _ = try Verification.run(Archive(path: item.path), data: true) }
  }

  @Test(.everyPlace) func lockedContainerIsNotRead() throws {
    let root = try Directory(lab.root)
    #expect(try root.tryLock(exclusive: true))
    expectError(.locked) { try lab.snapshot() }
    #expect(try lab.storedNames().isEmpty)
    withExtendedLifetime(root) {}
  }
}
