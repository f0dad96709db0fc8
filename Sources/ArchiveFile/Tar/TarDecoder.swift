import CLibArchive
import DrydockErrors

/// libarchive's tar reader over a `TarSource`: only tar, no filters, raw names, and no status but OK and EOF.
final class TarDecoder {
  private let source: TarSource
  private let archive: OpaquePointer

  init(_ source: TarSource) throws {
    guard let archive = archive_read_new() else { throw LibArchive.outOfMemory }
    self.source = source
    self.archive = archive
    try check(archive_read_support_format_tar(archive))
    // AppleDouble members are members like others, on every system.
    try check(archive_read_set_options(archive, "!mac-ext"))
    try check(archive_read_set_callback_data(archive, Unmanaged.passUnretained(source).toOpaque()))
    try check(
      archive_read_set_read_callback(archive) { _, context, target in
        guard let context, let target else { return -1 }
        guard let bytes = Unmanaged<TarSource>.fromOpaque(context).takeUnretainedValue().next() else {
          return -1
        }
        target.pointee = bytes.baseAddress
        return bytes.count
      })
    try check(
      archive_read_set_skip_callback(archive) { _, context, count in
        guard let context else { return 0 }
        return Unmanaged<TarSource>.fromOpaque(context).takeUnretainedValue().skip(count)
      })
    try check(archive_read_open1(archive))
  }

  deinit { archive_read_free(archive) }

  /// The next member, and where its headers and its content start in the tar stream; nil at the stream's end.
  func nextMember() throws -> (member: ArchiveMember, headerOffset: UInt64, contentOffset: UInt64)? {
    var entry: OpaquePointer?
    let status = archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK, let entry else { throw error("reading a member's header") }
    let format = archive_format(archive)
    guard
      [ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_GNUTAR].contains(
        format)
    else { throw DrydockError.damaged("the tar stream has a header of an old or unknown kind") }
    return (
      try TarEntry.member(entry), UInt64(clamping: archive_read_header_position(archive)),
      UInt64(clamping: archive_filter_bytes(archive, 0))
    )
  }

  /// The content of the current member, piece by piece. Each is valid during the call only.
  func readContent(size: UInt64, into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    var position: UInt64 = 0
    while true {
      var base: UnsafeRawPointer?
      var count = 0
      var offset: Int64 = 0
      let status = archive_read_data_block(archive, &base, &count, &offset)
      if status == ARCHIVE_EOF { break }
      guard status == ARCHIVE_OK else { throw error("reading a member's content") }
      guard UInt64(exactly: offset) == position, UInt64(count) <= size - position else {
        throw DrydockError.damaged("a member's content is not what its header announces")
      }
      if count > 0 { try body(UnsafeRawBufferPointer(start: base, count: count)) }
      position += UInt64(count)
    }
    guard position == size else { throw DrydockError.truncated("a member's content ends too early") }
  }

  private func check(_ status: Int32) throws {
    guard status == ARCHIVE_OK else { throw error("opening the tar stream") }
  }

  private func error(_ doing: String) -> any Error { source.failure ?? LibArchive.readError(archive, doing) }
}
