import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

#if canImport(Glibc)
  import Glibc
#endif

/// An archive's bytes reach the file as they are, whether past the page cache or through it.
@Suite struct FileOutputTests {
  private static let block = 4 << 20

  /// Writes bytes in random pieces behind what the file has.
  private func write(_ bytes: [UInt8], to file: FileDescriptor, _ random: inout SeededRandom) throws {
    let output = FileOutput(file)
    var start = 0
    while start < bytes.count {
      let count = min(bytes.count - start, Int.random(in: 1...3_000_000, using: &random))
      try bytes[start..<start + count].withUnsafeBytes { try output.append($0) }
      start += count
    }
    #expect(output.size == UInt64(bytes.count))
    try output.flush()
  }

  @Test(arguments: [0, 1, 4095, block - 1, block, block + 1, 2 * block, 2 * block + 12_345], [0, 1, 4096])
  func everyByteIsWritten(size: Int, start: Int) throws {
    var random = SeededRandom(seed: UInt64(size + start))
    // Most file systems can write past the cache; one in memory may not.
    for folder in [try TemporaryDirectory().path, "/dev/shm"] {
      let path = folder + "/drydock-output-\(UUID().uuidString)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: path) }
      let file = try FileDescriptor.open(
        FilePath(path), .readWrite, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
      defer { try? file.close() }
      let (before, bytes) = (random.bytes(start), random.bytes(size))
      try file.writeAll(before)
      try write(bytes, to: file, &random)
      #expect(FileManager.default.contents(atPath: path) == Data(before + bytes))
      #if canImport(Glibc)
        let flags = fcntl(file.rawValue, F_GETFL)
        #expect(flags >= 0 && flags & 0o40000 == 0, "O_DIRECT is still set")
      #endif
    }
  }

  @Test func aFileThatCannotBeWrittenIsAnError() throws {
    let file = try FileDescriptor.open("/dev/full", .writeOnly)
    defer { try? file.close() }
    let output = FileOutput(file)
    #expect(throws: (any Error).self) {
      try [UInt8](repeating: 1, count: Self.block).withUnsafeBytes { try output.append($0) }
      try output.flush()
    }
  }
}
