import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import FileSystem

#if canImport(Glibc)
  import Glibc
#endif

/// An archive's bytes reach the file as they are, whether past the page cache or through it.
@Suite struct FileOutputTests {
  private static let block = 4 << 20

  /// Made once: without the optimizer random bytes take long.
  private static let noise: [UInt8] = {
    var random = SeededRandom(seed: 1)
    return random.bytes(2 * block + 3 * 4096)
  }()

  /// Writes bytes in random pieces behind what the file has.
  private func write(_ bytes: ArraySlice<UInt8>, to file: FileDescriptor) throws {
    let output = FileOutput(file, .init(.always), at: Int64(bytes.startIndex))
    var random = SeededRandom(seed: UInt64(bytes.count))
    var rest = bytes
    while !rest.isEmpty {
      let piece = rest.prefix(.random(in: 1...3_000_000, using: &random))
      try piece.withUnsafeBytes { try output.append($0) }
      rest = rest.dropFirst(piece.count)
    }
    #expect(output.size == UInt64(bytes.count))
    let cached = try output.finish()
    // All of them, or what is behind the last whole block of the disk.
    #expect([bytes.count, bytes.count % 4096].contains(Int(cached)))
  }

  /// Most file systems can write past the cache; one in memory may not.
  @Test(
    arguments: [0, 1, 4095, block - 1, block, block + 1, 2 * block + 1234],
    [(0, nil), (1, nil), (4096, nil), (0, "/dev/shm")] as [(Int, String?)])
  func everyByteIsWritten(size: Int, place: (Int, String?)) throws {
    let directory = try TemporaryDirectory()
    let (start, folder) = (place.0, place.1 ?? directory.path)
    try RawFiles.createDirectories(folder)
    let path = folder + "/drydock-output-\(UUID().uuidString)"
    let file = try FileDescriptor.open(
      FilePath(path), .readWrite, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    defer {
      try? file.close()
      try? FileManager.default.removeItem(atPath: path)
    }
    let bytes = Self.noise.prefix(start + size)
    try file.writeAll(bytes.prefix(start))
    try write(bytes.dropFirst(start), to: file)
    #expect(FileManager.default.contents(atPath: path) == Data(bytes))
    #if canImport(Glibc)
      let flags = fcntl(file.rawValue, F_GETFL)
      #expect(flags >= 0 && flags & 0o40000 == 0, "O_DIRECT is still set")
    #endif
  }

  #if os(Linux)
    /// A file system may have no room for a whole block, and no file of that length.
    @Test func theLastBlockNeedNotFitAsAWhole() throws {
      // A file in memory that may not grow; Swift does not see the call.
      typealias Create = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
      let create = unsafeBitCast(try #require(dlsym(nil, "memfd_create")), to: Create.self)
      let (allowSealing, addSeals, growing): (UInt32, Int32, Int32) = (2, 1033, 4)
      let file = FileDescriptor(rawValue: create("sealed", allowSealing))
      defer { try? file.close() }
      let bytes = Self.noise.prefix((64 << 10) + 1)
      try file.resize(to: Int64(bytes.count))
      #expect(fcntl(file.rawValue, addSeals, growing) == 0)
      try write(bytes, to: file)
      #expect(try FileStatus(of: file, path: "").size == UInt64(bytes.count))
      #expect(try file.bytes(bytes.count, at: 0) == Array(bytes))
    }
  #endif

  @Test func aFileThatCannotBeWrittenIsAnError() throws {
    let file = try FileDescriptor.open("/dev/full", .writeOnly)
    defer { try? file.close() }
    let output = FileOutput(file, .init(.always))
    #expect(throws: (any Error).self) {
      try [UInt8](repeating: 1, count: Self.block).withUnsafeBytes { try output.append($0) }
      try output.finish()
    }
  }
}
