import Cryptography
import FileSystem
import TestSupport
import Testing

@testable import ContainerTransaction

@Suite struct UndoRecordFileTests {
  @Test(arguments: [0, 1, 999, 1000, 1001, 2500]) func itIsWrittenInParts(count: Int) throws {
    let directory = try TemporaryDirectory()
    let folder = try Directory(directory.path)
    let changes = try (0..<count).map {
      ChangeRecord(
        path: try ContainerPath("\"changes\":[]/\($0)"), granularity: .file, before: nil, after: nil)
    }
    let record = UndoRecord(
      transaction: try .new(), kind: .restore, summary: "{\"changes\":[]", time: "now",
      changes: ChangeRecords(changes))
    try record.write(in: folder)
    #expect(try folder.contents(UndoRecord.file) == record.stateRecord())
    #expect(try UndoRecord(in: folder).changes.map(\.path) == changes.map(\.path))
  }

  @Test func packedRecordsAreTheSame() throws {
    let metadata = FileMetadata(
      mode: 0o640, user: 1, group: 2, modified: 3,
      attributes: [ExtendedAttribute(name: "user.a", value: [1])], isNoDump: true)
    let digest = try SHA256.hash([1])
    let file = NodeRecord(type: .file, metadata: metadata, size: 5, digest: digest)
    var directory = NodeRecord(type: .directory, metadata: metadata, size: 0)
    directory.metadata.modified = -1
    let changes = [
      ChangeRecord(path: "b", granularity: .file, before: nil, after: file),
      ChangeRecord(
        path: "a", granularity: .settings, before: file, after: file, kept: "before-0",
        settingsAfter: "after-7"),
      ChangeRecord(path: "a/c", granularity: .directory, before: directory, after: nil),
      ChangeRecord(path: "d", granularity: .database, before: file, after: nil, kept: "before-01"),
      ChangeRecord(path: "e", granularity: .file, before: file, after: nil, kept: "other"),
    ]
    let expected = try changes.map { try $0.stateRecord() }
    let packed = ChangeRecords(changes)
    #expect(try packed.map { try $0.stateRecord() } == expected)
    for (change, bytes) in zip(changes, expected) {
      #expect(try packed[change.path].map { try $0.stateRecord() } == bytes)
    }
    #expect(
      packed["missing"] == nil
        && ChangeRecords(changes.sorted { $0.path < $1.path })["d"]?.kept == "before-01")
    var nodes = NodeTable()
    let number = nodes.append(file)
    var sharing = ChangeRecords(sharing: nodes)
    sharing.append(changes[0], sharedAfter: number)
    #expect(sharing["b"]?.after == file && sharing["b"]?.before == nil)
  }
}
