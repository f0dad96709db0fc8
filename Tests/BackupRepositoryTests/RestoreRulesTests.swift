import ContainerTransaction
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// The nine rules, one by one.
@Suite struct RestoreRulesTests {
  /// How a path stands: in the archive, live, and what becomes of it.
  struct Case: CustomStringConvertible {
    enum Stored { case no, yes, excluded }
    enum Live { case absent, other, flagged }
    enum End { case archive, live, gone }

    var stored: Stored, live: Live, end: End
    var keep = false, overwrite = false

    var description: String {
      "stored \(stored), live \(live)\(keep ? ", keep" : "")\(overwrite ? ", overwrite" : "") → \(end)"
    }
  }

  static let cases: [Case] = [
    Case(stored: .yes, live: .absent, end: .archive),
    Case(stored: .yes, live: .other, end: .archive),
    Case(stored: .yes, live: .flagged, end: .live),
    Case(stored: .yes, live: .flagged, end: .archive, overwrite: true),
    Case(stored: .yes, live: .other, end: .archive, keep: true),
    Case(stored: .yes, live: .flagged, end: .live, keep: true),
    Case(stored: .no, live: .other, end: .gone),
    Case(stored: .no, live: .other, end: .live, keep: true),
    Case(stored: .no, live: .other, end: .gone, overwrite: true),
    Case(stored: .no, live: .flagged, end: .live),
    Case(stored: .no, live: .flagged, end: .live, overwrite: true),
    Case(stored: .excluded, live: .absent, end: .gone),
    Case(stored: .excluded, live: .other, end: .live),
    Case(stored: .excluded, live: .other, end: .live, keep: true),
    Case(stored: .excluded, live: .other, end: .live, overwrite: true),
    Case(stored: .excluded, live: .flagged, end: .live),
  ]

  /// Names of directories that a file system without case, or without Unicode forms, takes for one.
  @Test(arguments: [("A", "a"), ("STRASSE", "straße"), ("e\u{301}", "\u{E9}")])
  func namesThatBecomeOneAreRefused(_ one: String, _ other: String) throws {
    let lab = try Lab()
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

  @Test(arguments: cases, [false, true])
  func everyCombination(_ expected: Case, _ isBelow: Bool) throws {
    let lab = try Lab()
    // The same for the path itself and for one in a directory that carries the flag.
    let path = isBelow ? "top/sub/path" : "top/path"
    let flagged = isBelow ? "top/sub" : path
    try lab.write("top/other", "other")
    if expected.stored != .no { try lab.write(path, "from the archive") }
    if expected.stored == .excluded { try lab.flag(flagged) }
    let archive = try lab.snapshot().path
    if expected.stored != .no { try lab.remove(flagged) }
    if expected.live != .absent { try lab.write(path, "live") }
    if expected.live == .flagged { try lab.flag(flagged) }
    let options = { (options: inout RestoreOptions) in
      (options.keepExtra, options.overwriteExcluded) = (expected.keep, expected.overwrite)
    }
    let planned = try lab.dryRun(archive, options).value
    let before = try TreeListing(lab.root)
    let report = try lab.restore(archive, options).value
    #expect(planned.restored == report.restored && planned.preserved == report.preserved)
    switch expected.end {
    case .archive:
      #expect(try lab.read(path) == "from the archive")
      #expect(report.restoredPaths.contains(path))
    case .live:
      let after = try TreeListing(lab.root)
      // Directories above get a new time when something comes back into them.
      let lines = after.differences(from: before, ignoringTimesOf: ["", "top"]).filter {
        $0.hasPrefix(path + ":")
      }
      #expect(lines == [])
      #expect(try lab.read(path) == "live")
      #expect(report.preservedPaths.isEmpty == (expected.keep && expected.stored == .no))
    case .gone:
      #expect(!lab.exists(path))
      #expect(report.removedPaths.contains(path) == (expected.live != .absent))
    }
    #expect(try lab.restore(archive, options).transaction == nil)
  }

  @Test func storedPathComesBackUnderADirectoryThatIsFlaggedNow() throws {
    let lab = try Lab()
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
    let lab = try Lab()
    lab.configuration.exclude = ["cache"]
    lab.configuration.include = ["cache/keep/**"]
    try lab.write("cache/keep/file", "kept")
    try lab.write("cache/drop", "dropped")
    let report = try lab.snapshot()
    #expect(try Archive(path: report.path).manifest.entry("cache/keep/file") != nil)
    #expect(try Archive(path: report.path).manifest.entry("cache/drop") == nil)
    try lab.write("cache/keep/file", "damaged")
    try lab.write("cache/drop", "live")
    try lab.restore(report.path)
    #expect(try lab.read("cache/keep/file") == "kept" && lab.read("cache/drop") == "live")
  }

  @Test func whatTheArchiveCouldNotStoreIsSpared() throws {
    let lab = try Lab()
    try lab.write("file", "content")
    _ = try lab.shell("mkfifo pipe", in: lab.root)
    let archive = try lab.snapshot().path
    #expect(try lab.restore(archive).transaction == nil)
    try lab.remove("pipe")
    try lab.write("pipe", "a file now")
    let report = try lab.restore(archive).value
    #expect(report.preservedPaths == ["pipe"] && lab.exists("pipe"))
    // One that came later is no data either.
    try lab.remove("pipe")
    _ = try lab.shell("mkfifo pipe other", in: lab.root)
    #expect(try lab.restore(archive).value.preservedPaths == ["other", "pipe"])
  }

  @Test func directoryThatCouldNotBeReadKeepsWhatIsInIt() throws {
    let lab = try Lab()
    var hostile = try HandmadeArchive(lab)
    hostile.addRoot()
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

  // MARK: Types

  @Test(arguments: ["file", "directory", "link"], ["file", "directory", "link", "database"])
  func typesAreReplaced(_ stored: String, _ live: String) throws {
    let lab = try Lab()
    try make(stored, lab)
    try lab.directory(in: "elsewhere")
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    try lab.remove("x")
    try make(live, lab, "live")
    let changed = try TreeListing(lab.root)
    let planned = try lab.dryRun(archive).value
    let report = try lab.restore(archive).value
    #expect(planned.restored == report.restored && planned.removed == report.removed)
    #expect(try TreeListing(lab.root).differences(from: before) == [])
    #expect(try lab.restore(archive).transaction == nil)
    _ = try Transaction.rollback(lab.container())
    #expect(try TreeListing(lab.root).differences(from: changed) == [])
    _ = try Transaction.rollback(lab.container(), redoing: true)
    #expect(try TreeListing(lab.root).differences(from: before) == [])
    #expect(try RawFiles.names(in: lab.full("elsewhere")).isEmpty)
  }

  private func make(_ type: String, _ lab: Lab, _ text: String = "content") throws {
    switch type {
    case "file": try lab.write("x", text)
    case "directory":
      try lab.write("x/below/file", text)
      try lab.write("x/name", text)
    case "link": _ = try lab.shell("ln -s elsewhere x", in: lab.root)
    default: try lab.sql("x", "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    }
  }

  @Test func conflictThatWouldDeleteASparedPath() throws {
    let lab = try Lab()
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

  // MARK: Scope

  @Test func scopeMirrorsInsideOnly() throws {
    let lab = try Lab()
    for path in ["a/one", "a/two", "b/one", "c"] { try lab.write(path, "archive") }
    _ = try lab.shell("chmod 711 a; touch -d 2020-02-02 a", in: lab.root)
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    for path in ["a/one", "a/extra", "b/one", "b/extra", "c"] { try lab.write(path, "live") }
    let report = try lab.restore(archive) { $0.scope = ["a"] }.value
    #expect(report.restoredPaths == ["a/one"] && report.removedPaths == ["a/extra"] && report.unchanged == 1)
    #expect(try lab.read("b/one") == "live" && lab.exists("b/extra") && lab.read("c") == "live")
    #expect(code(try lab.refusal(archive) { $0.scope = ["c", "none"] }) == "notInArchive")

    // What is missing above comes back as it was, and nothing else of it.
    try lab.remove("a")
    try lab.restore(archive) { $0.scope = ["a/two"] }
    #expect(try TreeListing(lab.root)["a"]?.mode == 0o711)
    #expect(try TreeListing(lab.root)["a"]?.modified == before["a"]?.modified)
    #expect(!lab.exists("a/one") && lab.exists("a/two"))
    try lab.restore(archive) { $0.scope = [.root] }
    #expect(try TreeListing(lab.root).differences(from: before) == [])
  }

  // MARK: Metadata

  @Test func modesTimesAndAttributesComeBackAlone() throws {
    let lab = try Lab()
    try lab.write("file", "content")
    try lab.write("locked/file", "content")
    try ExtendedAttributes.set("user.color", [1, 2, 3], of: lab.full("file"))
    _ = try lab.shell(
      "chmod 555 locked; chmod 4750 file; ln -s file link; touch -h -d '2021-01-01 00:00:00.123456789' link",
      in: lab.root)
    try lab.sql("db", "CREATE TABLE t(a)")
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    try ExtendedAttributes.remove("user.color", of: lab.full("file"))
    try ExtendedAttributes.set("user.new", [9], of: lab.full("locked"))
    _ = try lab.shell("chmod 600 file db; chmod 755 locked; touch -h link; chmod 700 .", in: lab.root)
    let outcome = try lab.restore(archive) { $0.keepsSetID = true }
    #expect(try TreeListing(lab.root).differences(from: before, ignoringTimesOf: ["db"]) == [])
    #expect(outcome.value.bytesRead < 100_000)
    #expect(try lab.restore(archive) { $0.keepsSetID = true }.transaction == nil)
  }

  @Test("Links that are named as a database's log, beside a file with several names, come back as links")
  func linksNamedAsLogs() throws {
    let lab = try Lab()
    try lab.write("a", "shared")
    _ = try lab.shell("ln a b; ln -s none a-wal; ln -s a a-journal; ln -s none b-wal", in: lab.root)
    let archive = try lab.snapshot().path
    try lab.restore(archive, to: lab.directory("new"))
    #expect(try TreeListing(lab.directory("new")).differences(from: TreeListing(lab.root)) == [])
  }

  @Test func hardLinksComeBack() throws {
    let lab = try Lab()
    try lab.write("a", "shared")
    try lab.write("own", "shared")
    _ = try lab.shell("ln a b; ln a sub", in: lab.root)
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    let damages = [
      "rm b; cp -p a b", "echo changed > a", "chmod 600 b", "rm a", "rm b", "rm own; ln a own",
      "rm own; ln a own; chmod 600 own", "rm a; cp -p b a; touch a", "rm sub; mkdir sub; echo live > sub/x",
    ]
    for damage in damages {
      _ = try lab.shell(damage, in: lab.root)
      try lab.restore(archive)
      let lines = try TreeListing(lab.root).differences(from: before)
      #expect(lines == [], "\(damage)")
      #expect(try lab.restore(archive).transaction == nil, "\(damage)")
    }
    #expect(try lab.restore(archive) { $0.scope = ["b", "sub"] }.transaction == nil)
    // Part of a set of links, and a first name that is preserved: the archive's content, not the live one's.
    _ = try lab.shell("echo changed > a", in: lab.root)
    try lab.restore(archive) { $0.scope = ["b"] }
    #expect(try lab.read("b") == "shared" && lab.read("a") == "changed\n")
    #expect(try lab.restore(archive) { $0.scope = ["b"] }.transaction == nil)
    try lab.restore(archive)
    _ = try lab.shell("rm a b; echo changed > a", in: lab.root)
    try lab.flag("a")
    try lab.restore(archive)
    #expect(try lab.read("b") == "shared" && lab.read("a") == "changed\n")
    #expect(try lab.restore(archive).transaction == nil)
  }
}
