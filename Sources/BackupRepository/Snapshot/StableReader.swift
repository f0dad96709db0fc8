import AgeEncryption
import AppContainer
import SystemPackage

/// Reads files that may change meanwhile, through one buffer.
final class StableReader {
  /// How often a file that does not hold still is read.
  static let attempts = 3
  /// A file up to this size is read whole before any of it is stored.
  static let bufferSize = 1 << 20

  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4096)

  deinit { buffer.deallocate() }

  /// What tells that a file has not changed.
  struct State: Equatable {
    var size: UInt64
    var modified, changed: Int64
  }

  func state(of file: FileDescriptor, _ path: String) throws -> State {
    let status = try FileStatus(of: file, path: path)
    return State(size: status.size, modified: status.modified, changed: status.changed)
  }

  /// The whole content of a small file; fewer bytes than asked for when it shrank. Valid until the next read.
  func readSmall(_ file: FileDescriptor, size: Int, _ path: String) throws -> UnsafeRawBufferPointer {
    var filled = 0
    while filled < size {
      let count = try read(file, at: UInt64(filled), size - filled, into: filled, path)
      if count == 0 { break }
      filled += count
    }
    return UnsafeRawBufferPointer(rebasing: buffer[..<filled])
  }

  /// Passes on `size` bytes from the start.
  ///
  /// - Parameter isDatabase: the digest takes the header's changing fields as zero.
  /// - Returns: the digest, and whether all bytes were there.
  func stream(
    _ file: FileDescriptor, size: UInt64, _ path: String, isDatabase: Bool = false,
    into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> (SHA256.Digest, Bool) {
    let hash = try SHA256()
    var offset: UInt64 = 0
    while offset < size {
      let wanted = Int(min(UInt64(Self.bufferSize), size - offset))
      let count = try read(file, at: offset, wanted, into: 0, path)
      if count == 0 { return (try hash.finalize(), false) }
      let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
      try body(UnsafeRawBufferPointer(chunk))
      if isDatabase && offset == 0 { DatabaseFormat.normalize(header: chunk) }
      hash.update(UnsafeRawBufferPointer(chunk))
      offset += UInt64(count)
    }
    return (try hash.finalize(), true)
  }

  private func read(
    _ file: FileDescriptor, at offset: UInt64, _ count: Int, into start: Int, _ path: String
  ) throws -> Int {
    do {
      return try file.read(
        fromAbsoluteOffset: Int64(offset),
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + count]))
    } catch let error as Errno {
      throw ContainerError.system("cannot read", path, error)
    }
  }
}
