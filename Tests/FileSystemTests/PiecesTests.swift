import Testing

@testable import FileSystem

@Suite struct PiecesTests {
  @Test(arguments: [1, 3, 10, 64]) func everyByteOfARangeIsReadOnce(pieceSize: Int) throws {
    let content = (0..<50).map { UInt8($0) }
    let ranges: [Range<UInt64>] = [0..<50, 7..<20, 45..<90, 60..<70]
    for range in ranges {
      var bytes: [UInt8] = []
      let end = try readInPieces(
        range, of: pieceSize,
        read: { offset, buffer in
          let rest = content.dropFirst(Int(offset)).prefix(buffer.count)
          buffer.copyBytes(from: rest)
          return rest.count
        }
      ) { bytes += $0 }
      #expect(bytes == Array(content.dropFirst(Int(range.lowerBound)).prefix(range.count)))
      #expect(end == max(range.lowerBound, min(range.upperBound, 50)))
    }
  }
}
