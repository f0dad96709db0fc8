import AppContainer
import ContainerTransaction
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Whole trees there and back.
@Suite(.everyPlace) struct RestoreTests {
  static let database = "Documents/database.sqlite"

  @Test(arguments: [[], ["--leave-wal"], ["--rollback-journal"], ["--version", "4"]] as [[String]])
  func absentPlaceAndEmptyDirectory(_ arguments: [String]) throws {
    let lab = try Lab(name: "notes", notes: arguments)
    try lab.shell("chmod 555 Documents/Inbox; chmod 1777 Documents/Notes", in: lab.root)
    let archive = try lab.snapshot().path
    let places = [RestoreTests.database, "Library/Application Support/database.sqlite"]
    let sidecars = places.flatMap { [$0 + "-wal", $0 + "-shm"] }
    let before = try TreeListing(lab.root).without(SnapshotTests.left + sidecars)
    try lab.make(lab.directory("empty"))
    for place in ["absent", "empty"] {
      let outcome = try lab.restore(archive, to: lab.directory(place))
      #expect(outcome.transaction != nil && outcome.conflicts.isEmpty)
      let after = try TreeListing(lab.directory(place))
      // A database whose log was full is another file with the same content.
      let same = arguments == ["--leave-wal"] ? places : []
      #expect(after.without(same).differences(from: before.without(same)) == [])
      for path in places where lab.exists(path, in: lab.directory(place)) {
        #expect(try Lab.notes(["check", lab.directory(place) + "/" + path]).contains("200000"))
      }
    }
  }

  @Test func secondRestoreChangesNothing() throws {
    let lab = try Lab(name: "notes", notes: ["--leave-wal"])
    let archive = try lab.snapshot().path
    let untouched = try TreeListing(lab.root)
    let first = try lab.restore(archive)
    #expect(first.transaction == nil && first.changes == 0)
    #expect(first.value.restored.isEmpty && first.value.removed.isEmpty)
    expectSame(try TreeListing(lab.root), as: untouched)
  }

  @Test(
    .local("the place has no part in a commit"), arguments: FaultPoint.allCases,
    [StateDirectory.Place.beside, .inside])
  func stoppedAnywhereItIsOldOrNewAsAWhole(point: FaultPoint, commit: StateDirectory.Place) throws {
    struct Stop: Error {}
    let lab = try Lab(name: "notes", notes: ["--photos", "2", "--leave-wal"])
    let archive = try lab.snapshot().path
    try damage(lab)
    let state = [".drydock-state"]
    let before = try TreeListing(lab.root).without(state)
    let outcome = try? lab.restore(archive) {
      $0.transaction.commit = commit
      $0.transaction.seams = Seams { if $0 == point { throw Stop() } }
    }
    let reports = try Transaction.recover(lab.container())
    if outcome == nil {
      #expect(reports.allSatisfy { $0.outcome == .old })
      let after = try TreeListing(lab.root).without(state)
      #expect(after.differences(from: before, comparing: TreeListing.untouched.subtracting([.changed])) == [])
      #expect(try lab.restore(archive).transaction != nil)
    }
    #expect(try lab.restore(archive).transaction == nil, "everything is restored")
    _ = try Transaction.rollback(lab.container())
    let undone = try TreeListing(lab.root).without(state)
    #expect(undone.differences(from: before, comparing: TreeListing.copied) == [])
  }

  @Test(.atEachPlace) func damageIsUndoneAndTheUndoUndone() throws {
    let lab = try Lab(name: "notes", notes: ["--photos", "60"])
    let archive = try lab.snapshot()
    let healthy = try TreeListing(lab.root)
    try damage(lab)
    let damaged = try TreeListing(lab.root)
    let dry = try lab.dryRun(archive.path)
    expectSame(try TreeListing(lab.root), as: damaged)
    let planned = try Restore.plan(Archive(path: archive.path), lab.target(Archive(path: archive.path)))
    expectSame(try TreeListing(lab.root), as: damaged)
    let real = try lab.restore(archive.path)
    for report in [dry.value, planned] {
      #expect(report.restored == real.value.restored && report.removed == real.value.removed)
      #expect(report.preserved == real.value.preserved && report.unchanged == real.value.unchanged)
    }
    #expect(dry.value.bytesRead == real.value.bytesRead && planned.bytesRead <= real.value.bytesRead)
    let changed = Set(dry.difference.files.map(\.path) + dry.difference.databases.map(\.path))
    #expect(
      changed.isSuperset(of: ["Documents/Extra", "Documents/Notes/0001.md", "Documents/database.sqlite"]))
    #expect(dry.difference.settings.contains { $0.file.nameString == "com.example.notes.plist" })

    let paths = SnapshotTests.left
    let after = try TreeListing(lab.root)
    #expect(after.without(paths).differences(from: healthy.without(paths)) == [])
    // What is excluded stays as the damage left it.
    for path in paths { #expect(lab.exists(path) == (damaged[path] != nil)) }
    #expect(lab.exists("tmp/new") && lab.exists("Library/Caches/new"))

    _ = try Transaction.rollback(lab.container())
    #expect(try TreeListing(lab.root).differences(from: damaged) == [])
    _ = try Transaction.rollback(lab.container(), redoing: true)
    #expect(try TreeListing(lab.root).differences(from: after, comparing: TreeListing.timeless) == [])
  }

  @Test(.atEachPlace) func onlyWhatDiffersIsRead() throws {
    let lab = try Lab()
    try lab.shell("for i in $(seq -w 12); do head -c 1048576 /dev/urandom > photo$i; done", in: lab.root)
    let archive = try lab.snapshot().path
    try lab.write("photo07", "damaged")
    try lab.shell("chmod 600 photo11", in: lab.root)
    let outcome = try lab.restore(archive)
    #expect(outcome.value.restoredPaths == ["photo07", "photo11"] && outcome.value.unchanged == 10)
    #expect(outcome.value.bytesRead < 9 << 20)
    let open = try Archive(path: archive)
    #expect(open.bytesRead < 100_000 && open.fileSize > 12 << 20)
    #expect(try lab.restore(archive).value.bytesRead < 100_000)
  }

  @Test func otherAppsDataIsRefused() throws {
    let lab = try Lab(name: "notes", notes: [])
    let archive = try Archive(path: lab.snapshot().path)
    let other = try Lab(name: "other", notes: ["--uuid", "11111111-3D7E-4B8A-9C11-0E5D2F7A4B90"])
    let before = try TreeListing(other.root)
    let target = { (fromOther: Bool) in
      try Restore.target(
        other.root, for: archive, configuration: ContainerConfiguration(), fromOther: fromOther)
    }
    expectError(.mismatch) { try target(false) }
    expectSame(try TreeListing(other.root), as: before)
    try other.remove("Documents/Notes/0003.md")
    #expect(try Restore.run(archive, target(true)).value.restoredPaths.contains("Documents/Notes/0003.md"))
    var configuration = ContainerConfiguration()
    configuration.app = "com.example.else"
    expectError(.mismatch) { try Restore.target(lab.root, for: archive, configuration: configuration) }
    expectError(.notFound) { try lab.target(archive, lab.directory("no/such/place")) }
  }

  @Test func aRestoredContainerTakesFurtherArchivesOfTheSameInstance() throws {
    let lab = try Lab(name: "notes", notes: [])
    let archive = try Archive(path: lab.snapshot().path)
    let place = lab.directory("made")
    let target = { (archive: Archive) in
      try Restore.target(place, for: archive, configuration: ContainerConfiguration())
    }
    _ = try Restore.run(archive, target(archive))
    // By itself it goes by its directory's name: what names the instance is not part of a backup.
    #expect(try Container(at: place).instance == "made")
    #expect(try Restore.run(archive, target(archive)).transaction == nil)
    let other = try Lab(name: "other", notes: ["--uuid", "11111111-3D7E-4B8A-9C11-0E5D2F7A4B90"])
    let foreign = try Archive(path: other.snapshot().path)
    expectError(.mismatch) { try target(foreign) }
  }

  @Test func partsOfAnotherSchemaVersionAreRefused() throws {
    let lab = try Lab()
    try lab.write("file", "content")
    let archive = try lab.snapshot { $0.schemaVersion = 2 }.path
    try lab.write("file", "damaged")
    for version in [nil, 1, 3] {
      let error = try lab.refusal(archive) { ($0.scope, $0.readsVersion) = (["file"], { _ in version }) }
      #expect(code(error) == "mismatch")
    }
    let restored = try lab.restore(archive) { ($0.scope, $0.readsVersion) = (["file"], { _ in 2 }) }
    #expect(restored.value.restoredPaths == ["file"])
    try lab.write("file", "damaged")
    #expect(try lab.restore(archive) { $0.readsVersion = { _ in 3 } }.value.restoredPaths == ["file"])
  }

  /// An app puts a link in the place of a file before that is compared; ext4 gives it the file's inode number.
  @Test func aLinkInTheFilesPlaceIsAChange() throws {
    let lab = try Lab()
    try lab.write("file", "four")
    let archive = try lab.snapshot().path
    let error = expectError(.changedMeanwhile) {
      try lab.restore(archive) {
        $0.scope = ["file"]
        $0.readsVersion = { staged in
          try staged.live.removeFile("file")
          try staged.live.createLink("file", target: Array("four".utf8))
          return nil
        }
      }
    }
    #expect(error?.message.contains("run it again") == true)
  }

  @Test func containerInUseIsRefused() throws {
    let lab = try Lab(name: "notes", notes: [])
    let archive = try lab.snapshot().path
    let holder = try Command.spawn(Tools.notesApp(), ["hold", lab.root])
    try holder.waitForLine("ready")
    expectError(.inUse) { try lab.restore(archive) }
    #expect(try lab.dryRun(archive).value.restored.isEmpty)
    try holder.finish()
  }

  private func damage(_ lab: Lab) throws {
    try lab.sql(RestoreTests.database, "DELETE FROM task; INSERT INTO project (name) VALUES ('new')")
    try lab.write("Documents/Notes/0001.md", "overwritten")
    try lab.remove("Documents/Photos")
    try lab.write("Documents/Extra/file", "new")
    try lab.remove("Documents/Latest.md")
    try lab.directory(in: "Documents/Latest.md")
    try Lab.notes(["touch-settings", lab.root, "theme", "neon"])
    try lab.write("tmp/new", "temporary")
    try lab.write("Library/Caches/new", "cached")
    try lab.remove("Library/Application Support/Downloads/episode-2.mp3")
    try lab.shell("chmod 700 Documents/export.sh; touch Documents/empty.txt", in: lab.root)
  }
}
