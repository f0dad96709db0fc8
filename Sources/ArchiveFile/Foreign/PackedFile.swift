import CLibArchive
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A zip or tar (as it is, or with gzip or zstd) that any program may have written: its members, one after the other.
///
/// Everything in it is taken for hostile. Names come clean and relative; none comes twice, and none lies below a file or
/// link. Where symbolic links point is not checked.
package final class PackedFile {
  /// The file's path.
  package let path: String
  private let format: PackedFormat
  private let file: FileDescriptor
  private let archive: OpaquePointer
  private let fileSize: UInt64

  /// Opens a file; nil when it is none of these formats, as its first bytes tell.
  ///
  /// - Throws: `DrydockError`: `io`, `encrypted`, `damaged`.
  package init?(path: String) throws {
    self.path = path
    let file: FileDescriptor
    do {
      // Without waiting, so that a FIFO is refused instead of hanging; nothing else minds.
      file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    } catch {
      throw DrydockError.io("opening the file", error).at(path)
    }
    do {
      guard let format = try PackedFormat(file) else {
        try file.close()
        return nil
      }
      guard let archive = archive_read_new() else { throw LibArchive.outOfMemory }
      (self.format, self.file, self.archive) = (format, file, archive)
      fileSize = UInt64(clamping: try file.seek(offset: 0, from: .end))
      try file.seek(offset: 0, from: .start)
    } catch {
      try? file.close()
      throw (error as? DrydockError)?.at(path) ?? error
    }
  }

  deinit {
    archive_read_free(archive)
    try? file.close()
  }

  /// Whether a file is packed in one of these formats.
  package static func isPacked(_ path: String) -> Bool { (try? PackedFile(path: path)) != nil }

  /// Walks all members, once. `visit` gets each with what reads its content: that gives the pieces with their offsets, in
  /// order, each valid during the call only; what is between is zeros. The root's own name is empty.
  ///
  /// - Parameter limit: how large all content together may be, with 512 bytes for each member.
  /// - Throws: `DrydockError` at the first thing that is wrong, or what `visit` throws.
  package func members(
    limit: ExpansionLimit,
    _ visit: (ArchiveMember, (_ piece: (UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws
      -> Void
  ) throws {
    do {
      try withNamesAsTheyAre { try walk(limit, visit) }
    } catch let error as DrydockError {
      throw error.at(path)
    }
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
    try check(archive_read_open_fd(archive, file.rawValue, 1 << 18), "opening it")
    var tree = MemberTree()
    var size: UInt64 = 0
    var entry: OpaquePointer?
    var end: Int64 = 0
    while true {
      let status = archive_read_next_header(archive, &entry)
      if status == ARCHIVE_EOF { break }
      if !isNameAsItIs(status) { try check(status, "reading a member's header") }
      guard let entry else { return }
      let member = try PackedMember.make(entry, isTar: format != .zip)
      if !member.name.isEmpty { try tree.add(member) }
      size += ArchiveFormat.tarBlock
      try limit.check("the file", size, fileSize: fileSize)
      var isRead = false
      let read = { (body: (UInt64, UnsafeRawBufferPointer) throws -> Void) in
        isRead = true
        try self.content(of: member) { offset, piece in
          size += UInt64(piece.count)
          try limit.check("the file", size, fileSize: self.fileSize)
          try body(offset, piece)
        }
      }
      try visit(member, read)
      // To its end in any case, where checksums are compared.
      if !isRead { try read { _, _ in } }
      end = archive_filter_bytes(archive, 0)
    }
    try checkEnd(after: end)
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

  /// libarchive takes the end of the file for the end of a tar; but two blocks of zeros are, and a cut has none.
  private func checkEnd(after end: Int64) throws {
    guard format != .zip else { return }
    let block = Int64(ArchiveFormat.tarBlock)
    guard archive_filter_bytes(archive, 0) >= (end + block - 1) / block * block + block else {
      throw DrydockError.truncated("the tar has no end")
    }
  }

  /// Whether libarchive only warns of a name that the locale has no letters for.
  private func isNameAsItIs(_ status: Int32) -> Bool {
    format != .zip && status == ARCHIVE_WARN
      && LibArchive.reason(archive).contains("can't be converted from UTF-8")
  }

  private func check(_ status: Int32, _ doing: String) throws {
    guard status != ARCHIVE_OK else { return }
    let reason = LibArchive.reason(archive)
    if reason.contains("runcated") || (format == .zip && reason.hasPrefix("Unrecognized archive format")) {
      throw DrydockError.truncated("\(doing) failed: \(reason)")
    }
    if reason.contains("cannot be converted from UTF-8") {
      throw DrydockError(
        .newerFormat,
        "a name in the zip says that it is UTF-8 and is not; pack the container as a tar instead")
    }
    throw DrydockError.damaged("\(doing) failed: \(reason)")
  }

  /// libarchive turns names that are said to be UTF-8 into the character set of the thread's locale, composing letters
  /// on its way. Of a tar it gives a name that it cannot turn as it is, and a warning: so it gets a locale without any
  /// letters but ASCII's. Of a zip it would lose such a name.
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
