import DrydockErrors
import Foundation
import TestSupport
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

  /// The room for a secret grows with what is read, up to the limit.
  @Test(arguments: [0, 1, 65535, 65536, 65537, 262_144, 300_000])
  func aSecretIsReadWhole(size: Int) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/secret"
    let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 3) }
    try Data(content).write(to: URL(fileURLWithPath: path))
    #expect(try SecretFile.read(path, limit: 300_000).withBytes(Array.init) == content)
    #expect(try SecretFile.read(path, limit: size).count == size)
    #expect(throws: DrydockError.self) { try SecretFile.read(path, limit: size - 1) }
  }
}
