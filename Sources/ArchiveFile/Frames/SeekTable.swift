import DrydockErrors

/// The seek table at the end of an archive, as the zstd seekable format (version 0.1.0) describes it.
struct SeekTable: Sendable {
  /// What the table says of one frame.
  struct Entry: Sendable, Equatable {
    var compressedSize: UInt32
    var plainSize: UInt32
    /// The low half of XXH64 of the plain bytes.
    var checksum: UInt32
  }

  static let footerSize = 9
  static let entrySize = 12
  private static let checksumsPresent: UInt8 = 0x80

  /// The whole skippable frame.
  static func encode(_ entries: [Entry]) throws -> [UInt8] {
    guard entries.count <= ArchiveFormat.maximumFrames else {
      throw DrydockError(
        .limit, "the archive would have more than \(ArchiveFormat.maximumFrames) frames; split it")
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(8 + entries.count * entrySize + footerSize)
    bytes.append(littleEndian: ArchiveFormat.seekTableMagic)
    bytes.append(littleEndian: UInt32(entries.count * entrySize + footerSize))
    for entry in entries {
      bytes.append(littleEndian: entry.compressedSize)
      bytes.append(littleEndian: entry.plainSize)
      bytes.append(littleEndian: entry.checksum)
    }
    bytes.append(littleEndian: UInt32(entries.count))
    bytes.append(checksumsPresent)
    bytes.append(littleEndian: ArchiveFormat.seekTableFooterMagic)
    return bytes
  }

  /// The number of frames from a footer (the file's last 9 bytes); nil when these are no footer.
  static func frameCount(footer: [UInt8]) throws -> Int? {
    guard footer.count == footerSize else { return nil }
    let found = footer.withUnsafeBytes {
      ($0.littleEndian(at: 0, as: UInt32.self), $0.littleEndian(at: 5, as: UInt32.self))
    }
    guard let count = found.0, found.1 == ArchiveFormat.seekTableFooterMagic else { return nil }
    // The specification leaves seven bits for later; archives have the checksum bit and no other.
    guard footer[4] == checksumsPresent else {
      throw DrydockError(
        .newerFormat,
        "the seek table is of a kind that no archive of this format has; the file is damaged, or of a newer version"
      )
    }
    guard count <= ArchiveFormat.maximumFrames else {
      throw DrydockError.damaged("the seek table claims \(count) frames, more than any archive has")
    }
    return Int(count)
  }

  /// The entries of a whole skippable frame that has that many.
  static func decode(_ bytes: [UInt8], count: Int) throws -> [Entry] {
    try bytes.withUnsafeBytes { bytes in
      guard bytes.count == 8 + count * entrySize + footerSize,
        bytes.littleEndian(at: 0, as: UInt32.self) == ArchiveFormat.seekTableMagic,
        let size = bytes.littleEndian(at: 4, as: UInt32.self), Int(size) == bytes.count - 8
      else { throw DrydockError.damaged("the seek table's start and end disagree") }
      return try (0..<count).map { index in
        let at = 8 + index * entrySize
        guard let compressedSize = bytes.littleEndian(at: at, as: UInt32.self),
          let plainSize = bytes.littleEndian(at: at + 4, as: UInt32.self),
          let checksum = bytes.littleEndian(at: at + 8, as: UInt32.self)
        else { throw DrydockError.damaged("the seek table is too short") }
        return Entry(compressedSize: compressedSize, plainSize: plainSize, checksum: checksum)
      }
    }
  }
}
