import Cryptography
import DrydockErrors
import FileSystem

/// The numbers of the format. All integers in a file are little-endian.
enum ArchiveFormat {
  /// The most tar bytes in one frame. Readers refuse more: it bounds what a frame can make them allocate.
  static let frameSize = 4 << 20
  /// The most frames in one archive: 64 TiB of tar.
  static let maximumFrames = 1 << 24

  /// The first bytes of a zstd frame.
  static let frameMagic: UInt32 = 0xFD2F_B528
  /// The skippable frame that holds the manifest's location.
  static let locationMagic: UInt32 = 0x184D_2A50
  /// The skippable frame that holds the seek table.
  static let seekTableMagic: UInt32 = 0x184D_2A5E
  static let seekTableFooterMagic: UInt32 = 0x8F92_EAB1

  /// The low half of XXH64 of no bytes: what the seek table says of a skippable frame.
  static let checksumOfNothing: UInt32 = 0x51D8_E999
  /// The same of a whole frame of zeros.
  static let checksumOfZeros: UInt32 = 0x7CBC_9D28

  /// Smallest zstd frame: magic, descriptor, one size byte, an empty block's header, checksum.
  static let smallestFrame = 4 + 1 + 1 + 3 + 4

  /// The unit of the tar stream.
  static let tarBlock: UInt64 = 512
  /// The zeros that end a tar stream.
  static let tarEnd: UInt64 = 1024
  /// libarchive and GNU tar refuse a member whose extended header is larger than 1 MiB.
  static let largestExtendedHeader = 1_000_000

  /// The bytes that content takes in a tar stream. Expects a size of less than 2^63; libarchive gives no larger one.
  static func padded(_ size: UInt64) -> UInt64 { (size + tarBlock - 1) / tarBlock * tarBlock }
}

/// The seek table at the end of an archive, as the zstd seekable format (version 0.1.0) describes it.
struct SeekTable: Sendable {
  struct Entry: Sendable, Equatable {
    var compressedSize: UInt32
    var plainSize: UInt32
    /// The low half of XXH64 of the plain bytes.
    var checksum: UInt32
  }

  static let footerSize = 9
  static let entrySize = 12
  private static let checksumsPresent: UInt8 = 0x80

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

  /// The number of frames from a footer (the file's last 9 bytes); nil for anything else.
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
        "the seek table has flags that this format does not use; the file is damaged, or of a newer version"
      )
    }
    guard count <= ArchiveFormat.maximumFrames else {
      throw DrydockError.damaged("the seek table claims \(count) frames, more than an archive may have")
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

/// Where in an archive the content of one of Drydock's own members is: of the manifest, of the vault's items.
package struct MemberLocation: Hashable, Sendable {
  /// Where the content starts in the tar stream, and its length, in bytes.
  package let offset: UInt64, length: UInt64
  package let sha256: SHA256.Digest

  package init(offset: UInt64, length: UInt64, sha256: SHA256.Digest) {
    self.offset = offset
    self.length = length
    self.sha256 = sha256
  }
}

/// The skippable frame that holds the manifest's location. All fields are little-endian:
///
///     u32  0x184D2A50        skippable frame
///     u32  72                bytes that follow
///     8 B  "drydock" NUL
///     u32  1                 version of this frame
///     u32  0                 reserved
///     u64  offset            of the manifest's content in the tar stream
///     u64  length            of the content
///     32 B sha256            of the content
///     8 B  check             first 8 bytes of the SHA-256 of all bytes of the frame before it
extension MemberLocation {
  static let payloadSize = 72
  static let frameSize = 8 + payloadSize
  private static let magic = Array("drydock\0".utf8)
  private static let version: UInt32 = 1

  func frame() throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: ArchiveFormat.locationMagic)
    bytes.append(littleEndian: UInt32(Self.payloadSize))
    bytes += Self.magic
    bytes.append(littleEndian: Self.version)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(littleEndian: offset)
    bytes.append(littleEndian: length)
    bytes += sha256.bytes
    bytes += try SHA256.hash(bytes).bytes.prefix(8)
    return bytes
  }

  static let missing = DrydockError(
    .notAnArchive, "the file is seekable zstd without the location of a drydock manifest; give an archive")

  /// Throws `DrydockError`: `.notAnArchive` for another program's frame, `.newerFormat` for a newer version.
  init(frame bytes: [UInt8]) throws {
    guard bytes.count == Self.frameSize, Array(bytes[8..<16]) == Self.magic else {
      throw Self.missing
    }
    guard try SHA256.hash(Array(bytes.dropLast(8))).bytes.prefix(8).elementsEqual(bytes.suffix(8)) else {
      throw DrydockError.damaged("the manifest's location fails its check")
    }
    let fields: (version: UInt32, reserved: UInt32, offset: UInt64, length: UInt64)? = bytes.withUnsafeBytes {
      guard let version = $0.littleEndian(at: 16, as: UInt32.self),
        let reserved = $0.littleEndian(at: 20, as: UInt32.self),
        let offset = $0.littleEndian(at: 24, as: UInt64.self),
        let length = $0.littleEndian(at: 32, as: UInt64.self)
      else { return nil }
      return (version, reserved, offset, length)
    }
    guard let fields, let sha256 = SHA256.Digest(bytes: bytes[40..<72]) else {
      throw DrydockError.damaged("the manifest's location is too short")
    }
    guard fields.version == Self.version, fields.reserved == 0 else {
      throw DrydockError(
        .newerFormat,
        "the archive has format \(fields.version), and this version reads \(Self.version); use a newer Drydock"
      )
    }
    self.init(offset: fields.offset, length: fields.length, sha256: sha256)
  }
}

/// Little-endian integers in byte arrays.
extension [UInt8] {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// The integer at a place, or nil when the buffer ends before it does.
  func littleEndian<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T? {
    guard offset >= 0, count - offset >= MemoryLayout<T>.size else { return nil }
    return T(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }

  var isZero: Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) != 0 { return false }
      index += 8
    }
    return self[index...].allSatisfy { $0 == 0 }
  }
}

extension [UInt8] {
  var printable: String { ContainerPath.printable(self) }
}

extension DrydockError {
  package static func damaged(_ what: String) -> Self {
    Self(.damaged, "\(what); the archive is damaged: use another copy, or fetch it again")
  }

  package static func truncated(_ what: String) -> Self {
    Self(.truncated, "\(what); the archive was cut short: use another copy, or fetch it again")
  }

  static func io(_ doing: String, _ cause: any Error) -> Self {
    Self(.io, "\(doing) failed: \(cause); fix that and try again", cause: cause)
  }
}
