import AgeEncryption
import SystemPackage

/// The bytes of an archive, at any place and from any thread: those of a file, or what is sealed in an age file.
enum ArchiveBytes: Sendable {
  /// A file that is not encrypted, and its size.
  case plain(FileDescriptor, size: UInt64)

  /// The bytes of an open file, whatever it is.
  ///
  /// - Throws: `ArchiveError`: `encrypted`, `io`.
  init(_ file: FileDescriptor) throws {
    let size: UInt64
    do {
      size = UInt64(clamping: try file.seek(offset: 0, from: .end))
    } catch {
      throw ArchiveError.io("finding the archive's size", error)
    }
    let plain = ArchiveBytes.plain(file, size: size)
    let head = try plain.readExactly(Int(min(size, UInt64(AgeHeader.probeLength))), at: 0)
    guard !AgeHeader.isPresent(in: head) else {
      throw ArchiveError(
        .encrypted,
        "the archive is encrypted, which this version cannot read; decrypt it first: "
          + "age -d -i KEY.txt ARCHIVE.tar.zst.age > ARCHIVE.tar.zst")
    }
    self = plain
  }

  /// How many there are.
  var size: UInt64 {
    switch self {
    case .plain(_, let size): size
    }
  }

  /// Reads that many bytes at a place.
  ///
  /// - Throws: `ArchiveError`: `truncated` when they end before, `io`.
  func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    switch self {
    case .plain(let file, _): try file.readExactly(target, at: offset)
    }
  }

  /// As above, into an array.
  func readExactly(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try readExactly($0, at: offset) }
    return bytes
  }
}

extension FileDescriptor {
  /// Reads that many bytes at a place. Throws `ArchiveError` `.truncated` when the file ends before.
  func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    var done = 0
    while done < target.count {
      let count: Int
      do {
        count = try read(
          fromAbsoluteOffset: Int64(clamping: offset) + Int64(done),
          into: UnsafeMutableRawBufferPointer(rebasing: target[done...]))
      } catch {
        throw ArchiveError.io("reading the archive", error)
      }
      guard count > 0 else { throw ArchiveError.truncated("the archive shrank while it was read") }
      done += count
    }
  }
}
