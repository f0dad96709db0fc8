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
      transaction: try .new(), kind: .restore, summary: "{\"changes\":[]", time: "now", changes: changes)
    try record.write(in: folder)
    #expect(try folder.contents(UndoRecord.file) == StateRecord.encode(record))
    #expect(try UndoRecord(in: folder).changes.map(\.path) == changes.map(\.path))
  }
}
