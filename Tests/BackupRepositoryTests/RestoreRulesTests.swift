@testable import ArchiveManifest
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Parts of the nine rules that `RestoreMatrixTests` does not have.
@Suite struct RestoreRulesTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// Names of directories that a file system without case, or without Unicode forms, takes for one.
  @Test(arguments: [("A", "a"), ("STRASSE", "straße"), ("e\u{301}", "\u{E9}")])
  func namesThatBecomeOneAreRefused(_ one: String, _ other: String) throws {
    for name in [one, other] { try lab.write("top/\(name)/x", name) }
    try lab.write("more/\(one)", "the same name in another directory")
    let archive = try lab.snapshot().path
    try lab.remove("more")
    let before = try TreeListing(lab.root)
    var faults = Seams { _ in Issue.record("it was staged") }
    faults.foldsNames = true
    let error = #expect(throws: DrydockError.self) {
      try lab.restore(archive) { [faults] in $0.transaction.seams = faults }
    }
    #expect(error?.message.hasPrefix("cannot hold both top/\(one) and top/\(other):") == true)
    expectSame(try TreeListing(lab.root), as: before)
    // One of them alone fits, and both where the file system does not fold names.
    try lab.restore(archive) {
      $0.scope = ["more"]
      $0.transaction.seams.foldsNames = true
    }
    #expect(try lab.read("more/\(one)") == "the same name in another directory")
    try lab.remove("top")
    try lab.restore(archive)
    for name in [one, other] { #expect(try lab.read("top/\(name)/x") == name) }
  }

  @Test func storedPathComesBackUnderADirectoryThatIsFlaggedNow() throws {
    try lab.write("media/a", "a")
    try lab.write("media/b", "b")
    let archive = try lab.snapshot().path
    try lab.remove("media/a")
    try lab.write("media/b", "live")
    try lab.flag("media")
    let report = try lab.restore(archive).value
    #expect(try lab.read("media/a") == "a" && lab.read("media/b") == "live")
    #expect(report.restoredUnderExcluded == ["media/a"] && report.preservedPaths == ["media"])
    let attributes = try ExtendedAttributes.all(of: lab.full("media"))
    #expect(attributes.keys.contains(Array("user.com.apple.metadata:com_apple_backup_excludeItem".utf8)))
  }

  @Test func includedPathBelowAnExcludedOneIsRestored() throws {
    lab.configuration.exclude = ["cache"]
    lab.configuration.include = ["cache/keep/**"]
    try lab.write("cache/keep/file", "kept")
    try lab.write("cache/drop", "dropped")
    let archive = try lab.snapshot().path
    let manifest = try Archive(path: archive).manifest
    #expect(try manifest.entry("cache/keep/file") != nil)
    #expect(try manifest.entry("cache/drop") == nil)
    try lab.write("cache/keep/file", "damaged")
    try lab.write("cache/drop", "live")
    try lab.restore(archive)
    #expect(try lab.read("cache/keep/file") == "kept" && lab.read("cache/drop") == "live")
  }

  @Test func directoryThatCouldNotBeReadKeepsWhatIsInIt() throws {
    var hostile = try HandmadeArchive(lab)
    hostile.addDirectory("locked")
    hostile.skipped.append(SkippedPath(path: "locked", reason: .unreadable))
    hostile.skipped.append(SkippedPath(path: "busy", reason: .unstable))
    let archive = try hostile.write()
    try lab.write("locked/inside/file", "never seen by the snapshot")
    try lab.write("busy", "never held still")
    try lab.write("extra", "goes")
    let report = try lab.restore(archive).value
    #expect(lab.exists("locked/inside/file") && lab.exists("busy") && !lab.exists("extra"))
    #expect(report.preservedPaths == ["busy", "locked/inside"])
  }

  @Test func conflictThatWouldDeleteASparedPath() throws {
    try lab.write("x", "a file in the archive")
    try lab.write("y/file", "a directory in the archive")
    let archive = try lab.snapshot().path
    try lab.remove("x")
    try lab.write("x/deep/flagged", "preserved")
    try lab.flag("x/deep/flagged")
    #expect(code(try lab.refusal(archive)) == "conflict")
    try lab.restore(archive) { $0.overwriteExcluded = true }
    #expect(try lab.read("x") == "a file in the archive")

    try lab.remove("x")
    try lab.write("x/extra", "kept")
    #expect(code(try lab.refusal(archive) { $0.keepExtra = true }) == "conflict")
    try lab.restore(archive)

    try lab.remove("y")
    try lab.write("y", "a file that is flagged")
    try lab.flag("y")
    #expect(code(try lab.refusal(archive)) == "conflict")
    try lab.restore(archive) { $0.overwriteExcluded = true }
    #expect(try lab.read("y/file") == "a directory in the archive")
  }

  /// What a scope takes and leaves: RestoreMatrixTests.everyScope.
  @Test func whatIsMissingAboveAScopeComesBackAsItWas() throws {
    for path in ["a/one", "a/two", "c"] { try lab.write(path, "archive") }
    try lab.shell("chmod 711 a; touch -d 2020-02-02 a", in: lab.root)
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    #expect(code(try lab.refusal(archive) { $0.scope = ["c", "none"] }) == "notInArchive")
    try lab.remove("a")
    try lab.restore(archive) { $0.scope = ["a/two"] }
    #expect(try TreeListing(lab.root)["a"]?.mode == 0o711)
    #expect(try TreeListing(lab.root)["a"]?.modified == before["a"]?.modified)
    #expect(!lab.exists("a/one") && lab.exists("a/two"))
    try lab.restore(archive) { $0.scope = [.root] }
    #expect(try TreeListing(lab.root).differences(from: before) == [])
  }

  @Test func modesTimesAndAttributesComeBackAlone() throws {
    try lab.write("file", "content")
    try lab.write("locked/file", "content")
    try ExtendedAttributes.set("user.color", [1, 2, 3], of: lab.full("file"))
    try lab.shell(
      "chmod 555 locked; chmod 4750 file; ln -s file link; touch -h -d '2021-01-01 00:00:00.123456789' link",
      in: lab.root)
    try lab.sql("db", "CREATE TABLE t(a)")
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    try ExtendedAttributes.remove("user.color", of: lab.full("file"))
    try ExtendedAttributes.set("user.new", [9], of: lab.full("locked"))
    try lab.shell("chmod 600 file db; chmod 755 locked; touch -h link; chmod 700 .", in: lab.root)
    let outcome = try lab.restore(archive) { $0.keepsSetID = true }
    #expect(try TreeListing(lab.root).differences(from: before, ignoringTimesOf: ["db"]) == [])
    #expect(outcome.value.bytesRead < 100_000)
    #expect(try lab.restore(archive) { $0.keepsSetID = true }.transaction == nil)
  }

  @Test func `Links that are named as a database's log come back as links`() throws {
    try lab.write("a", "shared")
    try lab.shell("ln a b; ln -s none a-wal; ln -s a a-journal; ln -s none b-wal", in: lab.root)
    let archive = try lab.snapshot().path
    try lab.restore(archive, to: lab.directory("new"))
    #expect(try TreeListing(lab.directory("new")).differences(from: TreeListing(lab.root)) == [])
  }

  @Test func hardLinksComeBack() throws {
    try lab.write("a", "shared")
    try lab.write("own", "shared")
    try lab.shell("ln a b; ln a sub", in: lab.root)
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    let damages = [
      "rm b; cp -p a b", "echo changed > a", "chmod 600 b", "rm a", "rm b", "rm own; ln a own",
      "rm own; ln a own; chmod 600 own", "rm a; cp -p b a; touch a", "rm sub; mkdir sub; echo live > sub/x",
    ]
    for damage in damages {
      try lab.shell(damage, in: lab.root)
      try lab.restore(archive)
      #expect(try TreeListing(lab.root).differences(from: before) == [], "\(damage)")
      #expect(try lab.restore(archive).transaction == nil, "\(damage)")
    }
    #expect(try lab.restore(archive) { $0.scope = ["b", "sub"] }.transaction == nil)
    // Part of a set of links, and a first name that is preserved: the archive's content, not the live one's.
    try lab.shell("echo changed > a", in: lab.root)
    try lab.restore(archive) { $0.scope = ["b"] }
    #expect(try lab.read("b") == "shared" && lab.read("a") == "changed\n")
    #expect(try lab.restore(archive) { $0.scope = ["b"] }.transaction == nil)
    try lab.restore(archive)
    try lab.shell("rm a b; echo changed > a", in: lab.root)
    try lab.flag("a")
    try lab.restore(archive)
    #expect(try lab.read("b") == "shared" && lab.read("a") == "changed\n")
    #expect(try lab.restore(archive).transaction == nil)
  }

  private func settings() throws -> PropertyListDictionary {
    try PropertyListFile(bytes: Array(RawFiles.read(lab.full("cloud.plist")))).root
  }

  private func write(_ values: PropertyListDictionary) throws {
    try lab.write("cloud.plist", PropertyListFile(root: values).encoded())
  }

  @Test func aLiveValueIsNeverOverwritten() throws {
    lab.configuration.defaults["icloud"] = "cloud.plist"
    try write(["theme": "dark", "lost": 1, "same": true])
    try lab.write("file", "old")
    let archive = try lab.snapshot().path
    try write(["theme": "light", "same": true, "new": 2])
    try lab.write("file", "new")
    let planned = try lab.dryRun(archive).value
    let report = try lab.restore(archive).value
    #expect(try settings() == ["theme": "light", "lost": 1, "same": true, "new": 2])
    #expect(try lab.read("file") == "old")
    for report in [planned, report] {
      #expect(report.keptValues == ["cloud.plist": 1])
    }
    // It is the live file's change that is undone, key by key.
    _ = try Transaction.rollback(lab.container())
    #expect(try settings() == ["theme": "light", "same": true, "new": 2])
  }

  @Test func anAbsentStoreIsRestored() throws {
    lab.configuration.defaults["icloud"] = "cloud.plist"
    try write(["theme": "dark"])
    let archive = try lab.snapshot().path
    try lab.remove("cloud.plist")
    #expect(try lab.restore(archive).value.keptValues.isEmpty)
    #expect(try settings() == ["theme": "dark"])
  }
}
