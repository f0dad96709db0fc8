import CLibArchive
import DrydockErrors

/// A walk over all members, in their order.
///
/// Names are checked (see `MemberName`), that no name occurs twice, that nothing lies below a file or link,
/// and that hard links name earlier files. Targets of symbolic links are not checked.
package final class MemberWalk {
  private let reader: ArchiveReader
  private let mayRepeat: ([UInt8]) -> Bool
  private let walk: HeaderWalk
  private var tree = MemberTree()

  init(_ reader: ArchiveReader, mayRepeat: @escaping ([UInt8]) -> Bool) throws {
    (self.reader, self.mayRepeat) = (reader, mayRepeat)
    walk = try reader.located { try reader.ranges.headers(from: 0) }
    reader.ranges.readsEverything = true
  }

  /// The next member with the offset of its content in the tar stream; nil at the stream's end, which is checked then.
  package func next() throws -> (member: ArchiveMember, offset: UInt64)? {
    guard let (member, offset) = try reader.located({ try walk.nextIfAny() }) else {
      try reader.located { try reader.ranges.checkEnd(after: walk.position) }
      return nil
    }
    try reader.located { try tree.add(member, mayRepeat: mayRepeat(member.name)) }
    return (member, offset)
  }
}

extension ArchiveReader {
  /// A walk over all members.
  ///
  /// - Parameter mayRepeat: whether a file of that name may come again: one that changed while it was stored is
  ///   stored once more, and the later one counts.
  package func walk(mayRepeat: @escaping ([UInt8]) -> Bool = { _ in false }) throws -> MemberWalk {
    try MemberWalk(self, mayRepeat: mayRepeat)
  }

  /// The first member, and where its content starts; nil when there is none.
  package func firstMember() throws -> (member: ArchiveMember, contentOffset: UInt64)? {
    try located { try ranges.headers(from: 0).nextIfAny() }
  }
}

/// A walk over the headers of some members, whose content is read by its place. Names that occur twice in the archive
/// are found by ``MemberWalk`` only.
///
/// It is libarchive's tar reader: only tar, no filters, raw names, and no status but OK and EOF.
package final class HeaderWalk {
  private let ranges: RangeReader
  private let archive: OpaquePointer
  private let start: UInt64
  /// Where the last member's content ends in the tar stream. Zeros up to the end of its block follow, and the next
  /// member's headers.
  package private(set) var position: UInt64

  /// How far libarchive has read, and the frame that it reads.
  private var read: UInt64, frame: PlainFrame?
  /// The failure that made a callback refuse; libarchive's own message for it says less.
  private var failure: (any Error)?

  init(_ ranges: RangeReader, from start: UInt64) throws {
    guard let archive = archive_read_new() else { throw LibArchive.outOfMemory }
    (self.ranges, self.archive) = (ranges, archive)
    (self.start, position) = (ArchiveFormat.padded(start), start)
    read = self.start
    try check(archive_read_support_format_tar(archive))
    // AppleDouble members are members like others, on every system.
    try check(archive_read_set_options(archive, "!mac-ext"))
    try check(archive_read_set_callback_data(archive, Unmanaged.passUnretained(self).toOpaque()))
    try check(
      archive_read_set_read_callback(archive) { _, context, target in
        guard let context, let target else { return -1 }
        guard let bytes = Unmanaged<HeaderWalk>.fromOpaque(context).takeUnretainedValue().nextBytes() else {
          return -1
        }
        target.pointee = bytes.baseAddress
        return bytes.count
      })
    try check(
      archive_read_set_skip_callback(archive) { _, context, count in
        guard let context else { return 0 }
        return Unmanaged<HeaderWalk>.fromOpaque(context).takeUnretainedValue().skip(count)
      })
    try check(archive_read_open1(archive))
  }

  deinit { archive_read_free(archive) }

  private func check(_ status: Int32) throws {
    guard status == ARCHIVE_OK else { throw error("opening the tar stream") }
  }

  private func error(_ doing: String) -> any Error { failure ?? LibArchive.readError(archive, doing) }

  /// The next bytes of the tar stream, frame after frame, valid until the next call; empty at the end; nil on failure.
  private func nextBytes() -> UnsafeRawBufferPointer? {
    guard failure == nil else { return nil }
    let index = ranges.index
    guard read < index.tarSize else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let number = index.frame(at: read)
    do {
      let plain = try ranges.frame(number, readingAheadTo: number)
      frame = plain
      let bytes = UnsafeRawBufferPointer(
        rebasing: plain.bytes[Int(read - index.frames[number].tarOffset)...])
      read = index.frames[number].tarEnd
      return bytes
    } catch {
      failure = error
      return nil
    }
  }

  /// Skips up to that many bytes, which touches no frame, and says how many.
  private func skip(_ count: Int64) -> Int64 {
    guard count > 0 else { return 0 }
    let step = min(UInt64(count), ranges.index.tarSize - read)
    read += step
    return Int64(step)
  }

  /// The next member, and where its content starts; nil at the stream's end.
  func nextIfAny() throws -> (member: ArchiveMember, contentOffset: UInt64)? {
    var entry: OpaquePointer?
    let status = archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK, let entry else { throw error("reading a member's header") }
    let format = archive_format(archive)
    guard
      [ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_GNUTAR].contains(
        format)
    else { throw DrydockError.damaged("the tar stream has a header of an unsupported kind") }
    let member = try ArchiveMember(own: entry)
    // libarchive counts from where it began.
    let headerOffset = start &+ UInt64(clamping: archive_read_header_position(archive))
    let contentOffset = start &+ UInt64(clamping: archive_filter_bytes(archive, 0))
    // Another program could take data between members for a member.
    guard headerOffset == ArchiveFormat.padded(position), headerOffset < contentOffset else {
      throw DrydockError.damaged("unexpected data in front of \(member.printableName)")
    }
    var bytes: [UInt8] = []
    try ranges.read(offset: position, length: contentOffset - position) { bytes += $0 }
    let padding = Int(headerOffset - position)
    guard bytes[..<padding].allSatisfy({ $0 == 0 }) else {
      throw DrydockError.damaged("other bytes than zeros in front of \(member.printableName)")
    }
    bytes.removeFirst(padding)
    try TarHeader.check(bytes, of: member)
    let (size, tarSize) = (member.contentSize, ranges.index.tarSize)
    let room = tarSize - min(contentOffset, tarSize)
    guard size <= room, ArchiveFormat.padded(size) <= room else {
      throw DrydockError.truncated("\(member.printableName) reaches beyond the end of the tar stream")
    }
    position = contentOffset + size
    return (member, contentOffset)
  }

  /// As ``nextIfAny()``, where a member must come.
  package func next() throws -> (member: ArchiveMember, contentOffset: UInt64) {
    guard let next = try nextIfAny() else {
      try ranges.checkEnd(after: position)
      throw DrydockError.truncated("the tar stream ends before its last member")
    }
    return next
  }
}

extension RangeReader {
  /// Walks over the headers behind the end of a content, or from the start of the tar stream.
  package func headers(from start: UInt64) throws -> HeaderWalk { try HeaderWalk(self, from: start) }

  /// Checks that only zeros, at least two blocks, follow the last member: else another reader could see more members.
  package func checkEnd(after end: UInt64) throws {
    let (tarSize, padded) = (index.tarSize, ArchiveFormat.padded(end))
    guard padded <= tarSize, tarSize - padded >= ArchiveFormat.tarEnd else {
      throw DrydockError.truncated("the tar stream has no end marker")
    }
    try read(offset: end, length: tarSize - end) { bytes in
      guard bytes.isZero else { throw DrydockError.damaged("the tar stream continues after its end") }
    }
  }
}
