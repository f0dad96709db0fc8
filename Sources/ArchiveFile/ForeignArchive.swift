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
  private let pieces: TarPieces?
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
      (self.format, self.file, self.pieces, self.archive) = (format, file, nil, archive)
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
    (format, file, pieces) = (.tar, nil, TarPieces(next))
  }

  deinit {
    archive_read_free(archive)
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
      let member = try ForeignMember.make(entry, isTar: format != .zip)
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
    if let failure = pieces?.failure { throw failure }
    try checkEnd(after: end)
  }

  private func open() -> Int32 {
    guard let pieces else { return archive_read_open_fd(archive, file?.rawValue ?? -1, 1 << 18) }
    return archive_read_open(
      archive, Unmanaged.passUnretained(pieces).toOpaque(), nil,
      { _, pieces, start in
        guard let pieces else { return -1 }
        return Unmanaged<TarPieces>.fromOpaque(pieces).takeUnretainedValue().read(start)
      }, nil)
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
    if let failure = pieces?.failure { throw failure }
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

/// The pieces of a tar, as libarchive asks for them.
private final class TarPieces {
  private let next: () throws -> [UInt8]?
  private var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private(set) var failure: (any Error)?

  init(_ next: @escaping () throws -> [UInt8]?) { self.next = next }

  deinit { piece.deallocate() }

  /// Lends the next piece until the next call; 0 at the end, -1 for a failure.
  func read(_ start: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
    do {
      // An empty piece would be the end.
      var bytes = try next()
      while bytes?.isEmpty == true { bytes = try next() }
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

/// A member of a foreign archive as libarchive read it: less strict than ``TarEntry`` about its form, and as strict
/// about what it could do.
enum ForeignMember {
  /// The member; its name is empty when it is the root itself.
  static func make(_ entry: OpaquePointer, isTar: Bool) throws -> ArchiveMember {
    guard let text = archive_entry_pathname(entry) else {
      throw DrydockError.damaged("a member has no readable name")
    }
    let name = try plain(LibArchive.bytes(text))
    guard archive_entry_is_encrypted(entry) == 0 else {
      throw DrydockError(
        .encrypted,
        "\(name.printable) is encrypted with a password, which is not supported; unpack the file first")
    }
    let kind = try kind(entry, name)
    if name.isEmpty, kind != .directory { throw MemberName.unsafe(name, "is empty") }
    var metadata = FileMetadata(
      mode: UInt16(truncatingIfNeeded: archive_entry_perm(entry)) & 0o7777, user: 0, group: 0,
      // An invalid time is no reason to refuse the data.
      modified: LibArchive.modified(entry) ?? 0, attributes: attributes(entry))
    if isTar {
      guard let user = UInt32(exactly: archive_entry_uid(entry)),
        let group = UInt32(exactly: archive_entry_gid(entry))
      else { throw DrydockError.damaged("\(name.printable) has an invalid owner") }
      (metadata.user, metadata.group) = (user, group)
      let flags = archive_entry_fflags_text(entry).map { String(cString: $0) } ?? ""
      metadata.isNoDump = flags.split(separator: ",").contains { $0 == TarEntry.noDump }
    }
    return ArchiveMember(name: name, kind: kind, metadata: metadata)
  }

  /// Without `./` in front and `/` behind, as `tar` of a directory's content and zip programs write names.
  private static func plain(_ name: [UInt8]) throws -> [UInt8] {
    var name = name[...]
    while name.starts(with: "./".utf8) {
      name = name.dropFirst(2)
      // `.//etc` must not become `/etc`, nor `etc`.
      if name.first == MemberName.slash { throw MemberName.unsafe(Array(name), "has an empty component") }
    }
    if name.count > 1, name.last == MemberName.slash { name.removeLast() }
    if name.isEmpty || name.elementsEqual(".".utf8) { return [] }
    try MemberName.validate(Array(name))
    return Array(name)
  }

  private static func kind(_ entry: OpaquePointer, _ name: [UInt8]) throws -> ArchiveMember.Kind {
    if let target = archive_entry_hardlink(entry) {
      return .hardLink(target: try plain(LibArchive.bytes(target)))
    }
    switch Int(archive_entry_filetype(entry)) {
    case Int(drydock_type_file):
      guard let size = UInt64(exactly: archive_entry_size(entry)) else {
        throw DrydockError.damaged("\(name.printable) has a negative size")
      }
      return .file(size: size)
    case Int(drydock_type_directory): return .directory
    case Int(drydock_type_link):
      guard let target = archive_entry_symlink(entry), target.pointee != 0 else {
        throw DrydockError.damaged("the link \(name.printable) has no target")
      }
      return .symbolicLink(target: LibArchive.bytes(target))
    default: return .special
    }
  }

  /// bsdtar writes each attribute twice, under SCHILY and LIBARCHIVE: one of them counts.
  private static func attributes(_ entry: OpaquePointer) -> [ExtendedAttribute] {
    let pairs = LibArchive.attributes(entry).map { (Array($0.name.utf8), $0) }
    return Dictionary(pairs, uniquingKeysWith: { $1 }).sorted { $0.key.lexicographicallyPrecedes($1.key) }
      .map(\.value)
  }
}
