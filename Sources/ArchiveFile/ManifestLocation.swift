import AgeEncryption
import DrydockErrors

/// Where in an archive its manifest is: the content of one member.
package struct ManifestLocation: Hashable, Sendable {
  /// Where the content starts in the tar stream, in bytes.
  package let offset: UInt64
  /// The content's length in bytes.
  package let length: UInt64
  /// The content's SHA-256.
  package let sha256: SHA256.Digest

  /// Makes a location.
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
struct LocationFrame {
  static let payloadSize = 72
  static let size = 8 + payloadSize
  private static let magic = Array("drydock\0".utf8)
  private static let version: UInt32 = 1

  static func encode(_ location: ManifestLocation) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: ArchiveFormat.locationMagic)
    bytes.append(littleEndian: UInt32(payloadSize))
    bytes += magic
    bytes.append(littleEndian: version)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(littleEndian: location.offset)
    bytes.append(littleEndian: location.length)
    bytes += location.sha256.bytes
    bytes += try SHA256.hash(bytes).bytes.prefix(8)
    return bytes
  }

  /// Throws `DrydockError`: `.notAnArchive` when the frame is somebody else's, `.unsupported` for a newer version.
  static func decode(_ bytes: [UInt8]) throws -> ManifestLocation {
    guard bytes.count == size, Array(bytes[8..<16]) == magic else {
      throw DrydockError(
        .notAnArchive,
        "this is a seekable zstd file, but it does not say where a drydock manifest is; give an archive")
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
    guard fields.version == version, fields.reserved == 0 else {
      throw DrydockError(
        .newerFormat,
        "the archive has format \(fields.version) and this program reads \(version); use a newer one")
    }
    return ManifestLocation(offset: fields.offset, length: fields.length, sha256: sha256)
  }
}
