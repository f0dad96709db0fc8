import AgeEncryption
import CLibArchive
import DrydockErrors
import SystemPackage

/// How a packed file is packed, as its first bytes say: its name is not asked.
enum PackedFormat {
  case zip
  case tar
  case gzipTar
  case zstdTar

  /// What is looked at: the first header of a tar.
  private static let probeLength = 512

  /// Nil for a file that is none of these.
  ///
  /// - Throws: `DrydockError` with code `encrypted` for an age file, `io`.
  init?(_ file: FileDescriptor) throws {
    var head = [UInt8](repeating: 0, count: Self.probeLength)
    do {
      let count = try head.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
      head.removeLast(head.count - count)
    } catch {
      throw DrydockError.io("reading the file", error)
    }
    if AgeHeader.isPresent(in: head) {
      throw DrydockError(
        .encrypted,
        "the file is encrypted, and a packed container is read only in the clear; decrypt it first: age -d -i KEY.txt FILE"
      )
    }
    if head.starts(with: [0x50, 0x4B, 3, 4]) {
      self = .zip
    } else if head.starts(with: [0x1F, 0x8B]) {
      self = .gzipTar
    } else if head.starts(with: withUnsafeBytes(of: ArchiveFormat.frameMagic.littleEndian) { Array($0) }) {
      self = .zstdTar
    } else if Self.isTarHeader(head) {
      self = .tar
    } else {
      return nil
    }
  }

  /// A tar has no magic number that all writers write, but a sum over its first header.
  private static func isTarHeader(_ head: [UInt8]) -> Bool {
    guard head.count == probeLength else { return false }
    let field = head[148..<156]
    let digits = String(decoding: field, as: UTF8.self).prefix { $0 == " " || $0.isNumber }
    let sum = head.reduce(0) { $0 + Int($1) } - field.reduce(0) { $0 + Int($1) } + 8 * 0x20
    return Int(digits.filter { $0 != " " }, radix: 8) == sum
  }

  /// For messages.
  var name: String {
    switch self {
    case .zip: "zip"
    case .tar: "tar"
    case .gzipTar: "tar.gz"
    case .zstdTar: "tar.zst"
    }
  }

  /// Lets libarchive read this and nothing else.
  func enable(_ archive: OpaquePointer) -> Bool {
    let isFormat =
      self == .zip
      ? archive_read_support_format_zip_seekable(archive) : archive_read_support_format_tar(archive)
    let isFilter =
      switch self {
      case .zip, .tar: ARCHIVE_OK
      case .gzipTar: archive_read_support_filter_gzip(archive)
      case .zstdTar: archive_read_support_filter_zstd(archive)
      }
    return isFormat == ARCHIVE_OK && isFilter == ARCHIVE_OK
  }
}
