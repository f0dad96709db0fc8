@testable import ArchiveManifest
import FileSystem
import Testing

@testable import BackupRepository

/// The headers in front of contents are compared once for each reader, whatever the order of the pieces.
@Suite struct MemberCheckTests {
  @Test func alternatingPiecesAreCheckedOnce() throws {
    let lab = try Lab()
    var handmade = try HandmadeArchive(lab)
    for name in ["a", "b", "c"] { try handmade.addFile(ContainerPath(name), "content of \(name)") }
    let part = try Archive(path: handmade.write()).parts[0]
    let rows = part.manifest.entries()
    var reads = 0
    let counted = EntryRows<ManifestEntry>(part.manifest) { after, _ in
      reads += 1
      return try rows.value(after + 1).map { [$0] } ?? []
    }
    let check = MemberCheck(part.reader.ranges, try part.allExpectedMembers(), counted)
    let offsets = try (["a", "c"] as [ContainerPath]).map { path in
      try #require(try part.manifest.entry(path)?.extents.single).offset
    }
    for offset in offsets { try check.check(contentAt: offset) }
    let once = reads
    #expect(once > 0)
    for round in 0..<1000 { try check.check(contentAt: offsets[round % 2] + UInt64(round % 7)) }
    #expect(reads == once)
  }
}
