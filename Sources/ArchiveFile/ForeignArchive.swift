import AgeEncryption
import CLibArchive
import DrydockErrors
import FileSystem
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A zip or tar (as it is, or with gzip or zstd) that any program may have written: its members, one after the other.
///
/// The file is treated as hostile. Names are clean and relative; none occurs twice or lies below a file or link. Targets
/// of symbolic links are not checked.
package final class ForeignArchive {
  package let path: String
  private let format: ForeignFormat
  /// Nil for a tar that arrives in pieces.
  private let file: FileDescriptor?
  private let next: (() throws -> [UInt8]?)?
  /// The piece that libarchive reads.
  private var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Why the next piece could not be read.
  private var failure: (any Error)?
  private let archive: OpaquePointer
  private let fileSize: UInt64

  /// Opens a file; nil when its first bytes show none of these formats.
  package init?(path: String) throws {
    self.path = path
    let file: FileDescriptor
    do {
      // Without waiting: a FIFO must be refused instead of hanging.
      file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    } catch {
      throw DrydockError.io("opening the file", error).at(path)
    }
    do {
      guard let format = try ForeignFormat(file) else {
        try file.close()
        return nil
      }
      guard let archive = archive_read_new() else { throw LibArchive.outOfMemory }
      (self.format, self.file, next, self.archive) = (format, file, nil, archive)
      fileSize = UInt64(clamping: try file.seek(offset: 0, from: .end))
      try file.seek(offset: 0, from: .start)
    } catch {
      try? file.close()
      throw (error as? DrydockError)?.at(path) ?? error
    }
  }

  /// A tar that arrives in pieces, such as from a file that is decrypted.
  ///
  /// - Parameters:
  ///   - path: the file's, for messages.
  ///   - fileSize: how large the file is, for the limit of its expansion.
  ///   - next: the next piece; nil at the end.
  package init(tarFrom path: String, fileSize: UInt64, next: @escaping () throws -> [UInt8]?) throws {
    guard let archive = archive_read_new() else { throw LibArchive.outOfMemory }
    (self.path, self.archive, self.fileSize) = (path, archive, fileSize)
    (format, file, self.next) = (.tar, nil, next)
  }

  deinit {
    archive_read_free(archive)
    piece.deallocate()
    try? file?.close()
  }

  /// Walks all members, once. `visit` receives each member and a reader of its content, which yields chunks with their
  /// offsets, in order, each valid during the call only; gaps are zeros. The root's own name is empty.
  ///
  /// - Parameter limit: how large all content together may be, with 512 bytes for each member.
  /// - Throws: `DrydockError` at the first thing that is wrong, or what `visit` throws.
  package func members(
    limit: ExpansionLimit,
    _ visit: (ArchiveMember, (_ piece: (UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws
      -> Void
  ) throws {
    try DrydockError.locating(path) { try withNamesAsTheyAre { try walk(limit, visit) } }
  }

  private func walk(
    _ limit: ExpansionLimit,
    _ visit: (ArchiveMember, ((UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws -> Void
  ) throws {
    guard format.enable(archive) else {
      throw DrydockError(
        .newerFormat, "this system's libarchive does not read \(format.name); unpack the file first")
    }
    // AppleDouble members are members like others, on every system.
    archive_read_set_options(archive, "!mac-ext")
    try check(open(), "opening it")
    var tree = MemberTree()
    var size: UInt64 = 0
    var entry: OpaquePointer?
    var end: Int64 = 0
    while true {
      let status = archive_read_next_header(archive, &entry)
      if status == ARCHIVE_EOF { break }
      if !isNameAsItIs(status) { try check(status, "reading a member's header") }
      guard let entry else { return }
      let member = try ArchiveMember(foreign: entry, isTar: format != .zip)
      if !member.name.isEmpty { try tree.add(member) }
      // What the header announces, holes as well: content beyond is refused, and holes are read like data later.
      let (sum, overflow) = size.addingReportingOverflow(ArchiveFormat.tarBlock + member.contentSize)
      size = overflow ? .max : sum
      try limit.check("the file", size, fileSize: fileSize)
      var isRead = false
      let read = { (body: (UInt64, UnsafeRawBufferPointer) throws -> Void) in
        isRead = true
        try self.content(of: member, body)
      }
      try visit(member, read)
      // Always to the end, where checksums are compared.
      if !isRead { try read { _, _ in } }
      end = archive_filter_bytes(archive, 0)
    }
    // libarchive may take a piece that cannot be read for the end.
    if let failure { throw failure }
    try checkEnd(after: end)
  }

  private func open() -> Int32 {
    if next == nil { return archive_read_open_fd(archive, file?.rawValue ?? -1, 1 << 18) }
    return archive_read_open(
      archive, Unmanaged.passUnretained(self).toOpaque(), nil,
      { _, context, start in
        guard let context else { return -1 }
        return Unmanaged<ForeignArchive>.fromOpaque(context).takeUnretainedValue().readPiece(start)
      }, nil)
  }

  /// Lends the next piece to libarchive until the next call; 0 at the end, -1 for a failure.
  private func readPiece(_ start: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
    do {
      // An empty piece would be the end.
      var bytes = try next?()
      while bytes?.isEmpty == true { bytes = try next?() }
      piece.deallocate()
      piece = .allocate(byteCount: bytes?.count ?? 0, alignment: 1)
      piece.copyBytes(from: bytes ?? [])
      start?.pointee = UnsafeRawPointer(piece.baseAddress)
      return piece.count
    } catch {
      failure = error
      return -1
    }
  }

  private func content(
    of member: ArchiveMember, _ body: (UInt64, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let doing = "reading \(member.printableName)"
    var position: UInt64 = 0
    while true {
      var base: UnsafeRawPointer?
      var count = 0
      var offset: Int64 = 0
      let status = archive_read_data_block(archive, &base, &count, &offset)
      if status == ARCHIVE_EOF { break }
      try check(status, doing)
      guard let start = UInt64(exactly: offset), start >= position, start <= member.contentSize,
        UInt64(count) <= member.contentSize - start
      else { throw DrydockError.damaged("\(doing) failed: its content is not what its header announces") }
      if count > 0 { try body(start, UnsafeRawBufferPointer(start: base, count: count)) }
      position = start + UInt64(count)
    }
    // A sparse file may end in a hole; a zip's end of content is in its list.
    guard format != .zip || position == member.contentSize else {
      throw DrydockError.damaged("\(doing) failed: its content is not what its header announces")
    }
  }

  /// libarchive takes the end of the file for the end of a tar; two blocks of zeros are, and a cut file lacks them.
  private func checkEnd(after end: Int64) throws {
    guard format != .zip else { return }
    let block = Int64(ArchiveFormat.tarBlock)
    guard archive_filter_bytes(archive, 0) >= (end + block - 1) / block * block + block else {
      throw DrydockError.truncated("the tar has no end marker")
    }
  }

  /// Whether libarchive only warns of a name that the locale cannot express.
  private func isNameAsItIs(_ status: Int32) -> Bool {
    format != .zip && status == ARCHIVE_WARN
      && LibArchive.reason(archive).contains("can't be converted from UTF-8")
  }

  private func check(_ status: Int32, _ doing: String) throws {
    // Whatever libarchive makes of it: the piece that could not be read is the reason.
    if let failure { throw failure }
    guard status != ARCHIVE_OK else { return }
    let reason = LibArchive.reason(archive)
    if reason.contains("runcated") || (format == .zip && reason.hasPrefix("Unrecognized archive format")) {
      throw DrydockError.truncated("\(doing) failed: \(reason)")
    }
    if reason.contains("cannot be converted from UTF-8") {
      throw DrydockError(
        .newerFormat,
        "a name in the zip is marked as UTF-8 and is not; pack the container as a tar instead")
    }
    throw DrydockError.damaged("\(doing) failed: \(reason)")
  }

  /// libarchive converts names that are marked as UTF-8 to the character set of the thread's locale, and composes
  /// letters. From a tar it passes a name that it cannot convert through, with a warning: so the locale is plain ASCII.
  /// From a zip it would lose such a name.
  private func withNamesAsTheyAre(_ body: () throws -> Void) throws {
    let names = format == .zip ? ["C.UTF-8", "en_US.UTF-8"] : ["C"]
    guard let locale = names.lazy.compactMap({ newlocale(LC_CTYPE_MASK, $0, nil) }).first else {
      return try body()
    }
    let previous = uselocale(locale)
    defer {
      uselocale(previous)
      freelocale(locale)
    }
    try body()
  }
}

/// The format of a foreign archive, by its first bytes; its name does not count.
enum ForeignFormat {
  case zip
  case tar
  case gzipTar
  case zstdTar

  /// What is looked at: the first header of a tar.
  private static let probeLength = 512

  /// Nil for any other file.
  ///
  /// - Throws: `DrydockError` with code `encrypted` for an age file, `io`.
  init?(_ file: FileDescriptor) throws {
    let head: [UInt8]
    do {
      head = try file.bytes(Self.probeLength, at: 0)
    } catch {
      throw DrydockError.io("reading the file", error)
    }
    if AgeHeader.isPresent(in: head) {
      throw DrydockError(
        .encrypted,
        "the file is encrypted, which is not supported for foreign archives; decrypt it first: age -d -i KEY.txt FILE"
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
