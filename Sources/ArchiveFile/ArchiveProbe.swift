import CLibZstd
import DrydockErrors

/// Finds out whether bytes are an archive, and reads the tables at its end.
struct ArchiveProbe {
  let index: FrameIndex
  let manifest: ManifestLocation
  /// The bytes read so far.
  let bytesRead: UInt64

  /// Enough for the header of a frame.
  private static let headSize: UInt64 = 64

  /// Throws `DrydockError`: `.notAnArchive`, `.truncated`, `.damaged`, `.limit`, `.unsupported`, `.io`.
  init(_ archive: ArchiveBytes) throws {
    let size = archive.size
    guard size > 0 else { throw DrydockError.truncated("the file is empty") }
    let head = try archive.readExactly(Int(min(size, Self.headSize)), at: 0)
    try Self.checkHead(head)
    let footerSize = UInt64(SeekTable.footerSize)
    let footer = size > footerSize ? try archive.readExactly(SeekTable.footerSize, at: size - footerSize) : []
    guard let count = try SeekTable.frameCount(footer: footer) else { throw Self.withoutSeekTable(head) }

    let tableSize = 8 + count * SeekTable.entrySize + SeekTable.footerSize
    guard UInt64(tableSize) < size else {
      throw DrydockError.damaged("the seek table is larger than the file")
    }
    let tableOffset = size - UInt64(tableSize)
    let entries = try SeekTable.decode(try archive.readExactly(tableSize, at: tableOffset), count: count)
    index = try FrameIndex(entries, tableOffset: tableOffset)

    let frame = try archive.readExactly(LocationFrame.size, at: index.locationOffset)
    let isSkippable = frame.withUnsafeBytes {
      $0.littleEndian(at: 0, as: UInt32.self) == ArchiveFormat.locationMagic
        && $0.littleEndian(at: 4, as: UInt32.self) == UInt32(LocationFrame.payloadSize)
    }
    guard isSkippable else {
      throw DrydockError.damaged("the manifest's location is not where the seek table says")
    }
    manifest = try LocationFrame.decode(frame)
    guard manifest.offset <= index.tarSize, manifest.length <= index.tarSize - manifest.offset else {
      throw DrydockError.damaged("the manifest is said to lie outside of the archive")
    }
    bytesRead = UInt64(head.count + tableSize + LocationFrame.size)
  }

  private static func checkHead(_ head: [UInt8]) throws {
    let magic = withUnsafeBytes(of: ArchiveFormat.frameMagic.littleEndian) { Array($0) }
    if head.count < magic.count, magic.starts(with: head) {
      throw DrydockError.truncated("the file has only \(head.count) bytes")
    }
    guard head.starts(with: magic) else {
      throw DrydockError(
        .notAnArchive,
        "the file is not an archive: it does not start with a zstd frame; give a .tar.zst of drydock")
    }
  }

  /// A zstd file without a seek table is a cut archive or a foreign file; the first frame's header tells most of
  /// the foreign ones, as an archive's frames always announce a small size and a checksum.
  private static func withoutSeekTable(_ head: [UInt8]) -> DrydockError {
    let size = head.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // The two results that are no size, as macros that Swift does not import: unknown, and not even a header.
    let isUnknown = size == UInt64.max
    let isTooShort = size == UInt64.max - 1
    let hasChecksum = head.count > 4 && head[4] & 0x04 != 0
    let isOurs = isTooShort || (!isUnknown && size <= UInt64(ArchiveFormat.frameSize) && hasChecksum)
    if isOurs { return .truncated("the file is zstd, but its end, the seek table, is missing") }
    return DrydockError(
      .notAnArchive,
      "the file is zstd, but not an archive written by drydock: it has no seek table, and its frames are of another "
        + "kind; give a .tar.zst of drydock")
  }
}
