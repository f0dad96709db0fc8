import AppContainer
import ContainerDiff
import ContainerTransaction
import FileSystem
import Formats
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Snapshots of a container with groups, and what of them comes back where.
@Suite(.everyPlace) struct GroupArchiveTests {
  private static let group: ContainerPath = ".groups/group.lab"

  /// A container with a database of its own and one in its group, whose settings are there too.
  private func lab() throws -> Lab {
    let lab = try Lab()
    lab.configuration.groups = ["group.lab": "../Shared/lab"]
    try lab.make(lab.directory("Shared/lab/Library/Preferences"))
    try lab.write("Documents/a.txt", "a")
    try lab.write("+early", "sorts before groups")
    try lab.write("../Shared/lab/note.txt", "note")
    try lab.write("../Shared/lab/sub/deep.txt", "deep")
    try lab.write("../Shared/lab/cached/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    try lab.write("../Shared/lab/cached/x", "left out")
    try lab.sql(
      "../Shared/lab/shared.sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    var settings = PropertyListFile()
    settings.root["theme"] = .string("dark")
    try lab.write("../Shared/lab/Library/Preferences/group.lab.plist", settings.encoded())
    return lab
  }

  private func shared(_ lab: Lab) throws -> TreeListing { try TreeListing(lab.directory("Shared/lab")) }

  @Test func roundTrip() throws {
    let lab = try lab()
    let report = try lab.snapshot()
    let (own, group) = (try TreeListing(lab.root), try shared(lab))
    #expect(report.header.groups == ["group.lab"])
    #expect(report.excluded.map(\.path.description) == [".groups/group.lab/cached/x"])
    _ = try Verification.run(Archive(path: report.path), data: true)
    let names = try lab.shell("tar --zstd -tf '\(lab.localCopy(of: report.path))'").split(separator: "\n")
      .map(String.init)
    #expect(names.contains("groups/group.lab/") && names.contains("groups/group.lab/sub/deep.txt"))
    #expect(names.contains("container/+early") && !names.contains { $0.hasPrefix("container/.groups") })

    // Nothing changed: nothing is to do, and the same snapshot.
    let same = try lab.dryRun(report.path)
    #expect(same.difference.isEmpty && same.value.restored.isEmpty && same.value.removed.isEmpty)
    #expect(try lab.snapshot().snapshot == report.snapshot)

    try lab.write("../Shared/lab/note.txt", "changed")
    try lab.write("../Shared/lab/extra.txt", "extra")
    try lab.write("../Shared/lab/cached/x", "the app's own cache")
    try lab.remove("../Shared/lab/sub")
    try lab.write("Documents/a.txt", "b")
    try lab.sql("../Shared/lab/shared.sqlite", "DELETE FROM t")
    let outcome = try lab.restore(report.path)
    #expect(outcome.value.removedPaths == [".groups/group.lab/extra.txt"] && !outcome.value.isIncomplete)
    #expect(outcome.value.restoredPaths.contains(".groups/group.lab/sub/deep.txt"))
    expectSame(try TreeListing(lab.root), as: own, comparing: TreeListing.copied)
    #expect(try lab.read("../Shared/lab/cached/x") == "the app's own cache")
    let left = try shared(lab).without("cached", "shared.sqlite")
    expectSame(left, as: group.without("cached", "shared.sqlite"), comparing: TreeListing.copied)
    #expect(try lab.sql("../Shared/lab/shared.sqlite", "SELECT a FROM t") == "1\n")
    _ = try Transaction.rollback(lab.container())
    #expect(try lab.read("../Shared/lab/note.txt") == "changed" && lab.read("Documents/a.txt") == "b")
  }

  @Test(.atEachPlace) func exportAndComparison() throws {
    let lab = try lab()
    let report = try lab.snapshot()
    let file = lab.directory("exported")
    let exported = try SnapshotCopy.export(Archive(path: report.path), to: .file(file), tool: "test")
    #expect(try Archive(path: file).snapshot == report.snapshot && exported.header.groups == ["group.lab"])
    _ = try Verification.run(Archive(path: file), data: true)
    try lab.write("../Shared/lab/note.txt", "changed")
    var settings = PropertyListFile()
    settings.root["theme"] = .string("light")
    try lab.write("../Shared/lab/Library/Preferences/group.lab.plist", settings.encoded())
    let archive = try Archive(path: file)
    let difference = try Transaction.inspect(lab.container()) { staged in
      try Comparison(
        of: ArchiveSide(archive, configuration: lab.configuration), with: ContentSide(live: staged),
        options: ComparisonOptions()
      ).difference
    }
    #expect(difference.files.map(\.path) == [try Self.group.appending("note.txt")])
    #expect(difference.settings.map(\.key) == ["theme"])
  }

  @Test func whatHasNoPlaceStaysInTheArchive() throws {
    let lab = try lab()
    let archive = try lab.snapshot().path
    lab.configuration.groups = [:]
    try lab.write("Documents/a.txt", "b")
    let outcome = try lab.restore(archive)
    #expect(outcome.value.missingGroups == ["group.lab"] && outcome.value.isIncomplete)
    #expect(try lab.read("Documents/a.txt") == "a" && !lab.exists(".groups"))
    // A container that is made takes a group that is there.
    try lab.make(lab.directory("elsewhere"))
    lab.configuration.groups = ["group.lab": "../elsewhere"]
    let planned = try lab.dryRun(archive, to: lab.directory("made"))
    #expect(planned.value.restored.contains(try Self.group.appending("sub/deep.txt")))
    #expect(!planned.value.isIncomplete && !lab.exists("sub", in: lab.directory("elsewhere")))
    let made = try lab.restore(archive, to: lab.directory("made"))
    #expect(!made.value.isIncomplete && made.isFinished)
    #expect(planned.value.restored == made.value.restored)
    #expect(try lab.read("sub/deep.txt", in: lab.directory("elsewhere")) == "deep")
    #expect(try lab.read("Documents/a.txt", in: lab.directory("made")) == "a")
    let container = try Container(at: lab.directory("made"), configuration: lab.configuration)
    #expect(try Transaction.recover(container).isEmpty)
  }

  @Test func aGroupThatTheArchiveDoesNotKnowIsSpared() throws {
    let lab = try lab()
    let groups = lab.configuration.groups
    lab.configuration.groups = [:]
    let archive = try lab.snapshot().path
    lab.configuration.groups = groups
    let before = try shared(lab)
    try lab.write("Documents/a.txt", "b")
    let outcome = try lab.restore(archive)
    #expect(outcome.value.preservedPaths == [".groups/group.lab"] && outcome.value.removed.isEmpty)
    expectSame(try shared(lab), as: before)
    #expect(try lab.read("Documents/a.txt") == "a")
  }

  @Test func aDirectoryOfThatNameIsNoGroup() throws {
    let lab = try Lab()
    try lab.write(".groups/group.lab/own.txt", "own")
    let report = try lab.snapshot()
    #expect(report.header.groups == nil)
    let names = try lab.shell("tar --zstd -tf '\(lab.localCopy(of: report.path))'")
    #expect(names.contains("container/.groups/group.lab/own.txt"))
    try lab.remove(".groups")
    try lab.restore(report.path)
    #expect(try lab.read(".groups/group.lab/own.txt") == "own")
    // Where groups are shown there is no place for it.
    try lab.remove(".groups")
    try lab.make(lab.directory("Shared/lab"))
    lab.configuration.groups = ["group.lab": "../Shared/lab"]
    let outcome = try lab.restore(report.path)
    #expect(outcome.value.missingGroups == [".groups"] && outcome.value.isIncomplete)
    #expect(try shared(lab).paths == [])
  }

  @Test func parts() throws {
    let lab = try lab()
    let archive = try lab.snapshot().path
    try lab.write("../Shared/lab/note.txt", "changed")
    try lab.write("../Shared/lab/sub/deep.txt", "changed")
    try lab.write("Documents/a.txt", "changed")
    try lab.restore(archive) { $0.scope = [Self.group.appending(name: Array("sub".utf8))] }
    #expect(try lab.read("../Shared/lab/sub/deep.txt") == "deep" && lab.read("Documents/a.txt") == "changed")
    #expect(try lab.read("../Shared/lab/note.txt") == "changed")
    try lab.restore(archive) { $0.scope = [Self.group] }
    #expect(try lab.read("../Shared/lab/note.txt") == "note" && lab.read("Documents/a.txt") == "changed")
    expectError(.overlap) { try lab.snapshot(to: lab.directory("Shared/lab/archive")) }
  }
}
