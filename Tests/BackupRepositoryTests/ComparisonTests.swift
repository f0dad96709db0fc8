import ContainerDiff
import ContainerTransaction
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Archives against each other, and against the live container.
@Suite struct ComparisonTests {
  private func compare(
    _ lab: Lab, _ archive: String, _ options: ComparisonOptions = ComparisonOptions()
  ) throws -> (comparison: Comparison, archive: Archive) {
    let opened = try Archive(path: archive)
    let found = try Transaction.inspect(lab.container()) { staged in
      try Comparison(
        of: ArchiveSide(opened, configuration: lab.configuration), with: ContentSide(live: staged),
        options: options)
    }
    return (found, opened)
  }

  private static func text(_ difference: ContainerDifference) -> [String] {
    difference.files.map {
      "\($0.change.rawValue) \($0.path) \($0.aspects.map(\.rawValue).joined(separator: "+"))"
    }
  }

  @Test func nothingIsReadOfWhatIsTheSame() throws {
    let lab = try Lab(name: "notes", notes: ["--photos", "5"])
    let (a, b) = (try lab.snapshot().path, try lab.snapshot().path)
    let before = try TreeListing(lab.root)
    let (first, second) = (try Archive(path: a), try Archive(path: b))
    let read = (first.bytesRead, second.bytesRead)
    let same = try Comparison(of: ArchiveSide(first), with: ArchiveSide(second))
    #expect(same.difference.isEmpty && same.compared > 20)
    #expect(first.bytesRead == read.0 && second.bytesRead == read.1, "the manifests tell all")

    let opened = try compare(lab, a)
    #expect(opened.comparison.difference.isEmpty, "\(opened.comparison.difference)")
    #expect(opened.archive.bytesRead == read.0)
    #expect(try TreeListing(lab.root).differences(from: before, comparing: TreeListing.unread) == [])
    // Another byte, the same size and times.
    let names = before.entries.keys.map { String(decoding: $0, as: UTF8.self) }
    let photo = try #require(names.sorted().first { $0.hasSuffix(".jpg") && $0.hasPrefix("Documents/") })
    try lab.shell(
      "cp -p '\(photo)' /tmp/keep$$; printf X | dd of='\(photo)' bs=1 seek=100 conv=notrunc 2>/dev/null; touch -r /tmp/keep$$ '\(photo)'; rm /tmp/keep$$",
      in: lab.root)
    #expect(Self.text(try compare(lab, a).comparison.difference) == ["changed \(photo) content"])
  }

  /// Another program has stored Drydock's own note, such as tar with `--xattrs`.
  @Test func theOwnNoteOfAnArchiveDoesNotComeBack() throws {
    let lab = try Lab()
    var handmade = try HandmadeArchive(lab)
    try handmade.addFile("file", "content")
    let note = ExtendedAttribute(name: ExtendedAttribute.ownNote, value: [1])
    let last = (handmade.members.count - 1, handmade.entries.count - 1)
    handmade.members[last.0].member.metadata.attributes = [note]
    handmade.entries[last.1].metadata.attributes = [note]
    let archive = try handmade.write()
    try lab.restore(archive)
    #expect(try Directory(lab.root).attribute(note.name, of: "file") == nil)
    #expect(try compare(lab, archive).comparison.difference.isEmpty)
    #expect(try lab.restore(archive).transaction == nil)
  }

  @Test func everyKindOfDifference() throws {
    let lab = try Lab()
    for name in ["same", "content", "size", "mode", "flag", "gone", "kind", "hidden", "was-hidden"] {
      try lab.write(name, "text of \(name)")
    }
    try lab.flag("was-hidden")
    try lab.directory(in: "folder")
    try lab.shell("ln -s same link; ln same hard; mkfifo pipe; mkdir empty", in: lab.root)
    try lab.sql("data.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a')")
    try lab.write("raw.db", Array("SQLite format 3\0".utf8) + Array(repeating: 7, count: 1008))
    let archive = try lab.snapshot().path
    let same = try compare(lab, archive).comparison
    #expect(same.difference.isEmpty, "\(same.difference)")

    try lab.write("content", "text of CONTENT")
    try lab.write("size", "other")
    try lab.shell(
      "chmod 600 mode; rm gone kind; mkdir kind; ln -sfn other link; touch same; rmdir empty; chmod 700 folder",
      in: lab.root)
    try ExtendedAttributes.set("user.note", [1], of: lab.full("flag"))
    try lab.flag("hidden")
    try lab.shell(
      "setfattr -x user.com.apple.metadata:com_apple_backup_excludeItem was-hidden || python3 -c \"import os; os.removexattr('was-hidden', 'user.com.apple.metadata:com_apple_backup_excludeItem')\"",
      in: lab.root)
    try lab.write("new", "new")
    try lab.sql("data.db", "UPDATE t SET v = 'b'; VACUUM")
    try lab.write("raw.db", Array("SQLite format 3\0".utf8) + Array(repeating: 8, count: 1008))
    let found = try compare(lab, archive).comparison
    #expect(
      Self.text(found.difference) == [
        "changed content content", "removed empty ", "changed flag attributes", "changed folder mode",
        "removed gone ", "changed kind type", "changed link target", "changed mode mode", "added new ",
        "changed size content",
      ])
    #expect(found.difference.databases.map(\.path) == ["data.db", "raw.db"])
    #expect(found.difference.databases.first?.tables.map(\.changed) == [1])
    #expect(found.difference.databases.last?.problem?.isEmpty == false)
    #expect(found.notCompared.map(\.path) == ["hidden", "was-hidden"] && !found.isIncomplete)

    var options = ComparisonOptions()
    options.stores = [.databases]
    let databases = try compare(lab, archive, options).comparison.difference
    #expect(databases.files.isEmpty && databases.databases.count == 2)
    options = ComparisonOptions()
    options.scope = ["folder", "kind"]
    #expect(Self.text(try compare(lab, archive, options).comparison.difference).count == 2)
    options.scope = ["nowhere"]
    expectError(.notFound) { try compare(lab, archive, options) }
  }

  /// What is in the database counts, not how it lies there.
  @Test func aDatabaseThatOnlyLiesOtherwiseIsTheSame() throws {
    let lab = try Lab()
    try lab.sql("d", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    let archive = try lab.snapshot().path
    try lab.sql(
      "d", "INSERT INTO t VALUES (3, 'c'); DELETE FROM t WHERE id = 3; PRAGMA page_size = 8192; VACUUM")
    let same = try compare(lab, archive).comparison
    #expect(same.difference.isEmpty, "\(same.difference)")
  }

  @Test func wrongContentOfAnArchiveIsAnError() throws {
    let lab = try Lab()
    try lab.sql("d", "CREATE TABLE t(v)")
    let archive = try lab.snapshot().path
    try lab.sql("d", "INSERT INTO t VALUES (1)")
    try lab.shell("printf XXXX | dd of='\(archive)' bs=1 seek=600 conv=notrunc 2>/dev/null")
    expectError(.damaged) { try compare(lab, archive) }
  }
}
