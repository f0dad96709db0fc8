import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

// Contents with holes: ranges that take no room on the disk, and are read as zeros. What reads, copies or writes a
// large content leaves them out: a database of 20 GB may take 1 GB.

extension FileDescriptor {
  /// Longer ranges are read ahead by the system itself.
  private static let longestAdvice: UInt64 = 128 << 10
  /// So many scattered blocks are asked for at once.
  private static let rangesAtOnce = 256

  /// The first ranges that begin in a range and are not holes; none when all of it is one. The last may end behind it.
  ///
  /// The disk is asked for all of them at once: 15,000 scattered blocks took 0.9 s one after the other, and 0.15 s so.
  private func dataRanges(in range: Range<UInt64>) -> [Range<UInt64>] {
    var found: [Range<UInt64>] = []
    var place = range.lowerBound
    while place < range.upperBound, found.count < Self.rangesAtOnce {
      var (start, end): (Int64, Int64) = (0, 0)
      if platform_next_data(rawValue, Int64(place), &start, &end) != 0 {
        // No data follows.
        if currentErrno() == .noSuchAddressOrDevice { break }
        // The file system does not know holes, or fails: then reading fails as well.
        (start, end) = (Int64(place), Int64(range.upperBound))
      }
      guard start < range.upperBound else { break }
      // Not an empty one, when the place became a hole meanwhile.
      place = max(UInt64(end), UInt64(start) + 1)
      found.append(UInt64(start)..<place)
    }
    #if os(Linux)
      if found.count > 1 {
        for data in found where data.upperBound - data.lowerBound <= Self.longestAdvice {
          _ = posix_fadvise(
            rawValue, Int(data.lowerBound), Int(data.upperBound - data.lowerBound), POSIX_FADV_WILLNEED)
        }
      }
    #endif
    return found
  }

  /// As ``fill(_:at:)``, but does not read holes: their zeros would take the room of data in the page cache.
  ///
  /// - Parameter data: where data was found last; empty in the beginning. Its end is not looked for again for each piece:
  ///   btrfs goes through all extents up to it, which took 4 s for 512 MB of compressed ones.
  package func fillAroundHoles(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64, data: inout Range<UInt64>, path: String
  ) throws -> Int {
    let status = try FileStatus(of: self, path: path)
    guard status.isSparse, offset < status.size else { return try fill(buffer, at: offset) }
    let end = min(offset + UInt64(buffer.count), status.size)
    var place = offset
    func room(to next: UInt64) -> UnsafeMutableRawBufferPointer {
      UnsafeMutableRawBufferPointer(rebasing: buffer[Int(place - offset)..<Int(next - offset)])
    }
    while place < end {
      let ranges = data.contains(place) ? [place..<data.upperBound] : dataRanges(in: place..<end)
      for range in ranges {
        room(to: range.lowerBound).initializeMemory(as: UInt8.self, repeating: 0)
        place = range.lowerBound
        let next = min(range.upperBound, end)
        place += UInt64(try fill(room(to: next), at: place))
        // Truncated meanwhile.
        if place < next { return Int(place - offset) }
      }
      if let last = ranges.last {
        data = last
      } else {
        // No data follows, or it was truncated meanwhile.
        let next = try max(place, min(end, FileStatus(of: self, path: path).size))
        room(to: next).initializeMemory(as: UInt8.self, repeating: 0)
        return Int(next - offset)
      }
    }
    return Int(end - offset)
  }

  /// Where the hole ends that a place is in, `size` at last; nil when it is in none, or holes are not known.
  package func endOfHole(at offset: UInt64, size: UInt64, _ path: String) throws -> UInt64? {
    let status = try FileStatus(of: self, path: path)
    // A file that was truncated meanwhile has no hole behind its end.
    let size = min(size, status.size)
    guard offset < size, status.isSparse else { return nil }
    var start: Int64 = 0
    if platform_next_data(rawValue, Int64(offset), &start, nil) == 0 {
      return start > Int64(offset) ? min(UInt64(start), size) : nil
    }
    // No data follows.
    return currentErrno() == .noSuchAddressOrDevice ? size : nil
  }

  /// Gets the content of another file, and shares its blocks until one of both is written to.
  ///
  /// - Returns: false where the file system cannot; nothing has changed then.
  package func clone(_ source: FileDescriptor) -> Bool { platform_clone(source.rawValue, rawValue) == 0 }

  /// Copies the content to an empty file, keeping holes.
  package func copyContents(to target: FileDescriptor, path: String) throws {
    if target.clone(self) { return }
    let status = try FileStatus(of: self, path: path)
    try DrydockError.translating("cannot copy", path) {
      guard status.isSparse else { return try copy(from: 0, to: target) }
      // First: see `FileOutput.extend()`.
      try target.resize(to: Int64(status.size))
      var place: UInt64 = 0
      while place < status.size {
        let ranges = dataRanges(in: place..<status.size)
        for data in ranges {
          let end = min(data.upperBound, status.size)
          try copy(from: Int64(data.lowerBound), Int64(end - data.lowerBound), to: target)
        }
        place = ranges.last?.upperBound ?? status.size
      }
    }
  }

  /// Copies a range, or everything from its start on, to the same offset.
  private func copy(from start: Int64, _ length: Int64? = nil, to target: FileDescriptor) throws {
    try seek(offset: start, from: .start)
    try target.seek(offset: start, from: .start)
    var rest = length ?? .max
    while rest > 0 {
      let count = platform_copy_range(rawValue, target.rawValue, Int(min(rest, 1 << 30)))
      if count == 0 { return }
      if count < 0 {
        let error = currentErrno()
        if error == .interrupted { continue }
        // Across file systems, or without kernel support: continue through a buffer.
        guard [.improperLink, .noFunction, .invalidArgument, .notSupported].contains(error) else {
          throw error
        }
        try readInPieces(0..<UInt64(rest), read: { _, buffer in try read(into: buffer) }) {
          _ = try target.writeAll($0)
        }
        return
      }
      rest -= Int64(count)
    }
  }
}
