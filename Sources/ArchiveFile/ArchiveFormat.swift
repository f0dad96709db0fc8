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
  /// The last bytes of the file.
  static let seekTableFooterMagic: UInt32 = 0x8F92_EAB1

  /// The low half of XXH64 of no bytes: what the seek table says of a skippable frame.
  static let checksumOfNothing: UInt32 = 0x51D8_E999

  /// Smallest zstd frame: magic, descriptor, one size byte, an empty block's header, checksum.
  static let smallestFrame = 4 + 1 + 1 + 3 + 4

  /// The unit of the tar stream.
  static let tarBlock: UInt64 = 512
  /// The zeros that end a tar stream.
  static let tarEnd: UInt64 = 1024
  /// libarchive and GNU tar refuse a member whose extended header is larger than 1 MiB.
  static let largestExtendedHeader = 1_000_000

  /// The bytes that content takes in a tar stream. Expects a size of less than 2^63, as libarchive gives no other.
  static func padded(_ size: UInt64) -> UInt64 { (size + tarBlock - 1) / tarBlock * tarBlock }
}
