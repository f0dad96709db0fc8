@testable import ArchiveManifest
import AppContainer
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository
@testable import ContainerTransaction

/// After a transaction, files that it only linked are not read again by a snapshot or a restore; what anything else has changed
/// is read.
@Suite struct LinkedFilesTests {
  private func scene() throws -> Lab {
    let lab = try Lab()
    for name in ["a", "b", "folder/c", "folder/deep/d", "first"] { try lab.write(name, "content of \(name)") }
    try lab.shell("ln first second; ln -s a link", in: lab.root)
    try lab.sql("db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    return lab
  }

  /// A transaction that changes a file of the root, so that the whole container is exchanged.
  private func change(_ lab: Lab, _ text: String, _ faults: Seams = .none) throws {
    var options = TransactionOptions()
    options.commit = .beside
    options.seams = faults
    _ = try Transaction.run(on: lab.container(), .migrate, summary: "test", options: options) {
      try $0.write(Array(text.utf8), to: "changed")
    }
    usleep(20_000)
  }

  /// An edit that only the change time shows.
  static let editKeepingTime =
    "touch -r a ../time; printf CONTENT | dd of=a conv=notrunc status=none; touch -r ../time a"

  private func unread(_ report: SnapshotReport, since former: SnapshotReport) throws -> [ContainerPath] {
    var before: [ContainerPath: ManifestEntry] = [:]
    try Archive(path: former.path).manifest.entries { before[$0.path] = $0 }
    var same: [ContainerPath] = []
    try Archive(path: report.path).manifest.entries {
      if $0 == before[$0.path], $0.kind != .directory { same.append($0.path) }
    }
    return same
  }

  @Test func whatTransactionsLinkIsNotReadAgain() throws {
    let lab = try scene()
    let first = try lab.incremental()
    for text in ["1", "2"] { try change(lab, text) }
    _ = try Transaction.rollback(lab.container())
    usleep(20_000)
    // Files with several names are not in the list.
    #expect(try lab.compared(with: first.path) == ["first", "second"])
    let second = try lab.incremental()
    #expect(try unread(second, since: first) == ["a", "b", "db", "folder/c", "folder/deep/d", "link"])
    try change(lab, "3")
    #expect(try unread(lab.incremental(), since: second).contains("folder/deep/d"))
    // Too young to be trusted, or all is to be read.
    #expect(try lab.compared(with: second.path) { $0.transaction.seams.settling = 60 }.contains("a"))
    #expect(try lab.compared(with: second.path) { $0.checksContents = true }.contains("a"))
  }

  /// They are linked, and removed, by several threads.
  @Test func aDirectoryOfManyFilesIsLinkedAsAWhole() throws {
    let lab = try Lab()
    for number in 0..<600 { try lab.write("folder/\(number)", "content") }
    let first = try lab.incremental()
    try change(lab, "1")
    #expect(try lab.compared(with: first.path) == [])
    #expect(try Directory(lab.root + "/folder").names().count == 600)
  }

  /// A restore in place does not read the attributes of files that their change times prove unchanged.
  @Test func attributesThatWereSetSinceComeBack() throws {
    let lab = try scene()
    let first = try lab.incremental()
    let paths = ["a", "folder/c", "folder/deep/d"] as [ContainerPath]
    func metadata() throws -> [FileMetadata?] { try paths.map { try Directory(lab.root).metadata($0) } }
    let before = try metadata()
    // The second time after a commit that has linked them.
    for _ in 1...2 {
      try Directory(lab.root).setMode(0o640, of: paths[0])
      try Directory(lab.root).setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: paths[1])
      try lab.write("new", "x")
      usleep(20_000)
      let report = try lab.restore(first.path) { $0.transaction.seams.settling = -3600 }.value
      #expect(report.restoredPaths == ["a", "folder/c"] && report.removed == ["new"])
      #expect(try metadata() == before)
    }
  }

  @Test func aDatabaseWithALogIsRead() throws {
    let lab = try Lab()
    try lab.shell(
      Lab.leavingTheLog("PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"), in: lab.root
    )
    let first = try lab.incremental()
    try change(lab, "1")
    #expect(try lab.compared(with: first.path) == ["db.sqlite"])
    let second = try lab.incremental()
    #expect(try Verification.run(Archive(path: second.path), data: true).entries == second.entries)
  }

  @Test func whatWasChangedBetweenIsRead() throws {
    let edits: [(before: String, between: String, after: String)] = [
      (Self.editKeepingTime, "", ""), ("", Self.editKeepingTime, ""), ("", "", Self.editKeepingTime),
      ("", "chmod 640 a; chmod 644 a", ""), ("", "", "cp -p a other; mv other a"),
      ("", "ln a ../other; rm ../other", ""), ("", "printf more >> a", ""),
    ]
    for edit in edits {
      let lab = try scene()
      let first = try lab.incremental()
      try lab.shell(edit.before, in: lab.root)
      usleep(20_000)
      try change(lab, "1")
      try lab.shell(edit.between, in: lab.root)
      usleep(20_000)
      try change(lab, "2")
      try lab.shell(edit.after, in: lab.root)
      usleep(20_000)
      #expect(try lab.compared(with: first.path) == ["a", "first", "second"], "\(edit)")
      #expect(!(try unread(lab.incremental(), since: first).contains("a")), "\(edit)")
    }
  }

  /// Another program edits a file in the middle of a commit.
  @Test(arguments: [
    FaultPoint.staged, .checked, .treeBuilt, .synced, .rewalked, .committed, .marked, .foundUnused,
    .exchanged, .merged, .undoKept, .oldRemoved, .done,
  ]) func whatWasChangedMeanwhileIsRead(point: FaultPoint) throws {
    let lab = try scene()
    let first = try lab.incremental()
    let root = lab.root
    try change(
      lab, "1",
      Seams {
        guard $0 == point else { return }
        usleep(20_000)
        try Command.succeed("/bin/sh", ["-ec", Self.editKeepingTime], directory: root)
        usleep(20_000)
      })
    #expect(try lab.read("a").hasPrefix("CONTENT"))
    #expect(try lab.compared(with: first.path) == ["a", "first", "second"])
    let second = try lab.incremental()
    #expect(!(try unread(second, since: first).contains("a")))
    let target = lab.directory("restored")
    try lab.restore(second.path, to: target)
    #expect(try lab.read("a", in: target).hasPrefix("CONTENT"))
  }

  @Test func aRecoveryLeavesNoListOfWhatItDoesNotKnow() throws {
    struct Stop: Error {}
    let lab = try scene()
    let first = try lab.incremental()
    try change(lab, "1")
    // The commit ends half way, and the next command completes it.
    try change(lab, "2", Seams { if $0 == .undoKept { throw Stop() } })
    _ = try Transaction.recover(lab.container(), lockTimeout: 0)
    #expect(try lab.read("changed") == "2")
    #expect(try lab.compared(with: first.path).contains("a"))
    #expect(!(try unread(lab.incremental(), since: first).contains("a")))
  }

  /// The list is a cache: a damaged one is as good as none.
  @Test func aDamagedListIsNotUsed() throws {
    let lab = try scene()
    let first = try lab.incremental()
    try change(lab, "1")
    let state = try #require(try StateDirectory.existing(for: lab.container()))
    let file = state.directory.path + "/files"
    let bytes = Array(try RawFiles.read(Array(file.utf8)))
    #expect(try !lab.compared(with: first.path).contains("a"))
    var damaged = bytes.indices.map { index in
      var copy = bytes
      copy[index] ^= 1
      return copy
    }
    damaged += [[], Array(bytes.dropLast()), Array(bytes.prefix(40)), bytes + [0], bytes + bytes]
    for bytes in damaged {
      try RawFiles.write(bytes, to: Array(file.utf8))
      #expect(CommittedFiles(of: try lab.container()).files.isEmpty)
    }
    #expect(try lab.compared(with: first.path).contains("a"))
    for script in [
      "rm files; mkdir files", "rmdir files; ln -s /etc/passwd files", "rm files; mkfifo files",
    ] {
      try lab.shell(script, in: state.directory.path)
      #expect(try lab.compared(with: first.path).contains("a"))
      try change(lab, script)
    }
    try lab.shell("rm -rf files", in: state.directory.path)
    try change(lab, "2")
    #expect(!CommittedFiles(of: try lab.container()).files.isEmpty)
  }

  /// A clock that was ahead at the capture, and a file system with whole seconds.
  @Test func timesThatProveNothingAreNotTrusted() throws {
    let lab = try Lab()
    try lab.write("a", "x")
    var status = try #require(try Directory(lab.root).status("a"))
    let file = CommittedFile(inode: status.inode, first: 1_500, last: 2_500)
    let known = CommittedFiles([file], device: status.device)
    status.changed = 2_500
    #expect(known.explain(status, since: 1_500) && known.explain(status, since: 2_500))
    #expect(!known.explain(status, since: 1_400) && !known.explain(status, since: 9_999))
    let whole = CommittedFiles(
      [CommittedFile(inode: status.inode, first: 1_000_000_000, last: 2_000_000_000)], device: status.device)
    status.changed = 2_000_000_000
    #expect(!whole.explain(status, since: 1_000_000_000))
  }

  /// Content that is on the disk after a power cut may be newer than its file's times, and the lists are of before.
  @Test func afterTheBootSessionNothingIsTrusted() throws {
    let lab = try scene()
    let first = try lab.incremental { $0.seams.session = "another" }
    let all: [ContainerPath] = ["a", "b", "db", "first", "folder/c", "folder/deep/d", "second"]
    #expect(try lab.compared(with: first.path) == all)
    let second = try lab.incremental()
    #expect(try lab.compared(with: second.path) == [])
  }

  @Test func theListForgetsFilesThatAreGone() throws {
    let lab = try Lab()
    for round in 0..<4 {
      for number in 0..<700 { try lab.write("folder/\(round)-\(number)", "x") }
      try change(lab, "\(round)")
      try lab.shell("rm -rf folder", in: lab.root)
    }
    #expect(CommittedFiles(of: try lab.container()).files.count <= 2500)
  }
}

/// A restore does not read what an earlier one has written.
@Suite struct WrittenFilesTests {
  private func scene() throws -> (lab: Lab, archive: String, target: String) {
    let lab = try Lab()
    for name in ["a", "b", "folder/c"] { try lab.write(name, "content of \(name)") }
    try lab.write("large", SeededRandom.noise(3 << 20))
    try lab.sql("db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    let archive = try lab.incremental().path
    let target = lab.directory("restored")
    // Waits until the times of the staged files are over when the trees are exchanged.
    try lab.restore(archive, to: target) { $0.transaction.seams = Self.slow }
    usleep(20_000)
    return (lab, archive, target)
  }

  private static let slow = Seams { if $0 == .rewalked { usleep(60_000) } }

  /// The paths whose content is known without reading them.
  private func known(_ archive: String, _ target: String) throws -> [ContainerPath] {
    let written = CommittedFiles(of: try Container(at: target))
    let root = try Directory(target)
    var known: [ContainerPath] = []
    try Archive(path: archive).manifest.entries { entry in
      if let digest = entry.digest, let status = try root.status(entry.path),
        written.hasContent(digest, status)
      {
        known.append(entry.path)
      }
    }
    return known
  }

  @Test func whatARestoreWroteIsNotRead() throws {
    let (lab, archive, target) = try scene()
    #expect(try known(archive, target) == ["a", "b", "db", "folder/c", "large"])
    // Another restore in place writes one file, and links the others.
    try lab.shell("printf changed > restored/b")
    #expect(try known(archive, target) == ["a", "db", "folder/c", "large"])
    try lab.restore(archive, to: target) { $0.transaction.seams = Self.slow }
    usleep(20_000)
    #expect(try known(archive, target) == ["a", "b", "db", "folder/c", "large"])
    #expect(try lab.read("b", in: target) == "content of b")
  }

  @Test func whatChangedSinceIsRead() throws {
    for edit in [
      LinkedFilesTests.editKeepingTime, "cp -p a other; mv other a", "chmod 600 a",
      "touch -r a ../time; printf more > a; touch -r ../time a",
    ] {
      let (lab, archive, target) = try scene()
      try lab.shell(edit, in: target)
      #expect(try known(archive, target) == ["b", "db", "folder/c", "large"], "\(edit)")
      try lab.restore(archive, to: target)
      #expect(try TreeListing(target).differences(from: TreeListing(lab.root)) == [], "\(edit)")
    }
  }

  /// The main file alone does not say what a database has.
  @Test(arguments: [false, true])
  func aDatabaseWithALogIsRead(isLogged: Bool) throws {
    let lab = try Lab()
    try lab.sql("db.sqlite", "\(isLogged ? "PRAGMA journal_mode = WAL; " : "")CREATE TABLE t (a)")
    let archive = try lab.incremental().path
    let target = lab.directory("restored")
    try lab.restore(archive, to: target) { $0.transaction.seams = Self.slow }
    #expect(try known(archive, target) == ["db.sqlite"])
    try lab.shell(Lab.leavingTheLog("INSERT INTO t VALUES (1)"), in: target)
    #expect(try known(archive, target) == (isLogged ? ["db.sqlite"] : []))
    #expect(try lab.restore(archive, to: target).value.restoredPaths.contains("db.sqlite"))
    #expect(try lab.shell("sqlite3 db.sqlite 'SELECT count(*) FROM t'", in: target) == "0\n")
  }

  /// Another program edits a file in the middle of a commit.
  @Test(arguments: [FaultPoint.exchanged, .foundUnused, .merged, .undoKept, .oldRemoved, .done])
  func whatChangedMeanwhileIsRead(point: FaultPoint) throws {
    let (lab, archive, target) = try scene()
    try lab.shell("printf changed > restored/a; printf changed > restored/b")
    try lab.restore(archive, to: target) {
      $0.transaction.seams = Seams {
        if $0 == .rewalked { usleep(60_000) }
        guard $0 == point else { return }
        try Command.succeed("/bin/sh", ["-ec", LinkedFilesTests.editKeepingTime], directory: target)
      }
    }
    #expect(try lab.read("a", in: target).hasPrefix("CONTENT"))
    #expect(try known(archive, target) == ["b", "db", "folder/c", "large"])
    try lab.restore(archive, to: target)
    #expect(try lab.read("a", in: target) == "content of a")
  }
}
