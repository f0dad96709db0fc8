/// The committed frames of a write-ahead log: which page of the database is where in it.
///
/// Header of 32 bytes, then frames of 24 bytes and a page (<https://www.sqlite.org/fileformat2.html#walformat>), all
/// numbers big-endian. A frame counts when it has the header's salts, its checksum goes on from that of the frame
/// before, and a commit follows (<https://www.sqlite.org/fileformat2.html#wal_file_checksum_algorithm>). The salts alone
/// are not enough: a log is used again from its start, over the frames of the last time.
struct WriteAheadLog {
  static let headerLength = 32, frameHeaderLength = 24

  /// The header's bytes: others when the log was started anew.
  let header: [UInt8]
  /// What every frame repeats.
  var salts: ArraySlice<UInt8> { header[16..<24] }
  /// Bytes of a page.
  let pageSize: Int
  /// Pages of the database after the last commit; 0 without one.
  private(set) var pageCount: UInt32 = 0
  /// Number of frames up to the last commit.
  private(set) var frameCount = 0
  /// Page number and frame index as one number each, sorted, the last frame of each page only.
  private var places: [UInt64] = []

  /// Reads a log.
  ///
  /// - Parameters:
  ///   - size: bytes that are looked at: what comes later belongs to later transactions.
  ///   - limit: frames that are looked at.
  ///   - read: gives what is at an offset, less at the end.
  /// - Returns: nil when its header is none, as SQLite takes it then: nothing in it counts.
  init?(size: UInt64, limit: Int? = nil, read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int) throws {
    var header = [UInt8](repeating: 0, count: Self.headerLength)
    guard try size >= 32 && header.withUnsafeMutableBytes({ try read(0, $0) }) == Self.headerLength else {
      return nil
    }
    let fields = header.withUnsafeBytes { bytes in (0..<8).map { bytes.bigEndian(at: $0 * 4) } }
    guard fields[0] & ~1 == 0x377f_0682, let pageSize = DatabaseHeader.pageSize(Int(fields[2])) else {
      return nil
    }
    self.header = header
    self.pageSize = pageSize
    var sum = Checksum(isBigEndian: fields[0] & 1 == 1)
    header.withUnsafeBytes { sum.add($0[..<24]) }
    guard sum.first == fields[6] && sum.second == fields[7] else { return nil }
    guard fields[1] == 3_007_000 else {
      throw UnreadableDatabase(reason: "its log is of a version that is not known: \(fields[1])")
    }
    try readFrames(size: size, limit, sum, salts: (fields[4], fields[5]), read)
  }

  private mutating func readFrames(
    size: UInt64, _ limit: Int?, _ start: Checksum, salts: (UInt32, UInt32),
    _ read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int
  ) throws {
    let frameSize = Self.frameHeaderLength + pageSize
    let atOnce = max(1, (1 << 20) / frameSize)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: atOnce * frameSize, alignment: 4096)
    defer { buffer.deallocate() }
    var sum = start
    var index = 0
    let count = (size - 32) / UInt64(frameSize)
    guard count < 1 << 32 else { throw UnreadableDatabase(reason: "its log is larger than a log can be") }
    let last = min(Int(count), limit ?? .max)
    reading: while index < last {
      let wanted = min(atOnce, last - index)
      let filled = try read(
        offset(ofFrame: index), UnsafeMutableRawBufferPointer(rebasing: buffer[..<(wanted * frameSize)]))
      guard filled >= frameSize else { break }
      for position in 0..<(filled / frameSize) {
        let frame = UnsafeRawBufferPointer(
          rebasing: buffer[(position * frameSize)..<((position + 1) * frameSize)])
        let page = frame.bigEndian(at: 0)
        guard page != 0, frame.bigEndian(at: 8) == salts.0, frame.bigEndian(at: 12) == salts.1 else {
          break reading
        }
        sum.add(frame[..<8])
        sum.add(frame[24...])
        guard sum.first == frame.bigEndian(at: 16), sum.second == frame.bigEndian(at: 20) else {
          break reading
        }
        places.append(UInt64(page) << 32 | UInt64(index))
        index += 1
        let pages = frame.bigEndian(at: 4)
        if pages != 0 { (pageCount, frameCount) = (pages, index) }
      }
    }
    keepLast()
  }

  /// Sorts, and drops what is not committed and what a later frame replaces.
  private mutating func keepLast() {
    places.removeSubrange(frameCount...)
    places.sort()
    var kept = 0
    for index in places.indices {
      if index + 1 < places.count, places[index] >> 32 == places[index + 1] >> 32 { continue }
      places[kept] = places[index]
      kept += 1
    }
    places.removeSubrange(kept...)
  }

  private func offset(ofFrame index: Int) -> UInt64 {
    UInt64(Self.headerLength) + UInt64(index) * UInt64(Self.frameHeaderLength + pageSize)
  }

  /// Where the first page of the log from a page on is.
  ///
  /// - Returns: the page's number, and the offset of its content in the log; nil when there is none from there on.
  func next(from page: UInt32) -> (page: UInt32, offset: UInt64)? {
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle] >> 32 < UInt64(page) { low = middle + 1 } else { high = middle }
    }
    guard low < places.count else { return nil }
    let place = places[low]
    return (UInt32(place >> 32), offset(ofFrame: Int(place & 0xffff_ffff)) + UInt64(Self.frameHeaderLength))
  }

  /// Two sums over pairs of 32-bit numbers.
  private struct Checksum {
    let isBigEndian: Bool
    private(set) var first: UInt32 = 0
    private(set) var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    mutating func add(_ bytes: Slice<UnsafeRawBufferPointer>) {
      let bytes = UnsafeRawBufferPointer(rebasing: bytes)
      let swaps = isBigEndian != (1.bigEndian == 1)
      var (first, second) = (first, second)
      var offset = 0
      while offset < bytes.count {
        let left = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        let right = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        first &+= (swaps ? left.byteSwapped : left) &+ second
        second &+= (swaps ? right.byteSwapped : right) &+ first
        offset += 8
      }
      (self.first, self.second) = (first, second)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The big-endian number of 32 bits at an offset.
  func bigEndian(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
