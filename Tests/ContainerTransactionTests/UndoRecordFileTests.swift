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

  @Test(arguments: [.beside, .inside] as [StateDirectory.Place])
  func `Where it cannot be written, nothing is changed`(_ place: StateDirectory.Place) throws {
    var sandbox = try Sandbox(files: ["a": "one"])
    sandbox.isScratch = true
    let before = try sandbox.listing()
    expectError(.io, "cannot create") {
      try sandbox.run(commit: place) { staged in
        try staged.write([1], to: "a")
        try staged.stage.directory.createDirectory(UndoRecord.file)
      }
    }
    expectNone(try sandbox.listing().changes(from: before))
    #expect(try sandbox.stages().isEmpty)
  }

  @Test func itKnowsWhatItTouches() throws {
    let node = NodeRecord(
      type: .file, metadata: FileMetadata(mode: 0o600, user: 0, group: 0, modified: 0, attributes: []),
      size: 0)
    let changes: [ChangeRecord] = [
      ChangeRecord(path: "a", granularity: .directory, before: node, after: node),
      ChangeRecord(path: "a/db", granularity: .database, before: node, after: node, kept: "before-1"),
      ChangeRecord(path: "a/db-wal", granularity: .sidecar, before: node, after: nil, kept: "before-2"),
      ChangeRecord(path: "a/new", granularity: .directory, before: nil, after: node),
      ChangeRecord(path: "a/new/file", granularity: .file, before: nil, after: node),
    ]
    let record = UndoRecord(
      transaction: try .new(), kind: .restore, summary: "", time: "now", changes: ChangeRecords(changes))
    let expected: Set<ContainerPath> = [
      "a/db", "a/db-wal", "a/db-shm", "a/db-journal", "a/new", "a/new/file",
    ]
    #expect(Set(record.touched) == expected)
    let others: [ContainerPath] = ["a", "a/new-wal", "a/new/file-wal", "a/db-wal-wal", "b"]
    #expect(expected.allSatisfy(record.touches) && !others.contains(where: record.touches))
  }

  @Test func packedRecordsAreTheSame() throws {
    let metadata = FileMetadata(
      mode: 0o640, user: 1, group: 2, modified: 3,
      attributes: [ExtendedAttribute(name: "user.a", value: [1])], isNoDump: true)
    let digest = try SHA256.hash([1])
    let file = NodeRecord(type: .file, metadata: metadata, size: 5, digest: digest)
    let large = NodeRecord(type: .file, metadata: metadata, size: 1 << 32, digest: digest)
    let bare = NodeRecord(type: .file, metadata: metadata, size: 1 << 32 - 1)
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
      ChangeRecord(
        path: "f", granularity: .settings, before: file, after: large, kept: "before-5",
        settingsAfter: "after-5"),
      ChangeRecord(path: "g", granularity: .settings, before: large, after: bare, settingsAfter: "after-6"),
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
    let number = nodes.reserve(2)
    nodes[number + 1] = file
    var sharing = ChangeRecords(sharing: nodes)
    sharing.append(changes[0], sharedAfter: number + 1)
    #expect(sharing["b"]?.after == file && sharing["b"]?.before == nil)
  }
}
