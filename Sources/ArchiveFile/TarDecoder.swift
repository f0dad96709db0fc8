import CLibArchive
import DrydockErrors
import FileSystem

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
    else { throw DrydockError.damaged("the tar stream has a header of an unsupported kind") }
    return (
      try TarEntry.member(entry), UInt64(clamping: archive_read_header_position(archive)),
      UInt64(clamping: archive_filter_bytes(archive, 0))
    )
  }

  private func check(_ status: Int32) throws {
    guard status == ARCHIVE_OK else { throw error("opening the tar stream") }
  }

  private func error(_ doing: String) -> any Error { source.failure ?? LibArchive.readError(archive, doing) }
}

/// The tar stream as libarchive's callbacks take it: frame after frame, with skips that touch no frame.
final class TarSource {
  /// The failure that made a callback refuse; libarchive's own message for it says less.
  private(set) var failure: (any Error)?
  private let frames: RangeReader
  private var position: UInt64 = 0
  private var current: PlainFrame?

  /// - Parameter position: where the stream begins for its reader: at a member.
  init(_ frames: RangeReader, from position: UInt64 = 0) {
    (self.frames, self.position) = (frames, position)
  }

  /// The next bytes, valid until the next call; empty at the end; nil on failure.
  func next() -> UnsafeRawBufferPointer? {
    guard failure == nil else { return nil }
    let index = frames.index
    guard position < index.tarSize else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let number = index.frame(at: position)
    do {
      let plain = try frames.frame(number, readingAheadTo: number)
      current = plain
      let frame = index.frames[number]
      let bytes = UnsafeRawBufferPointer(rebasing: plain.bytes[Int(position - frame.tarOffset)...])
      position = frame.tarEnd
      return bytes
    } catch {
      failure = error
      return nil
    }
  }

  /// Skips up to that many bytes and says how many.
  func skip(_ count: Int64) -> Int64 {
    guard count > 0 else { return 0 }
    let step = min(UInt64(count), frames.index.tarSize - position)
    position += step
    return Int64(step)
  }
}

/// A member's headers as libarchive read them, checked and turned into values.
enum TarEntry {
  /// Throws `DrydockError` for what an archive never holds: special files, sparse files, values out of range.
  static func member(_ entry: OpaquePointer) throws -> ArchiveMember {
    guard let text = archive_entry_pathname(entry) else { throw DrydockError.damaged("a member has no name") }
    var name = LibArchive.bytes(text)
    let kind = try kind(entry, name: name)
    // Tar marks directories by a slash at the end.
    if kind == .directory, name.count > 1, name.last == MemberName.slash { name.removeLast() }
    try MemberName.validate(name)
    guard let userID = UInt32(exactly: archive_entry_uid(entry)),
      let groupID = UInt32(exactly: archive_entry_gid(entry))
    else { throw DrydockError.damaged("\(name.printable) has an invalid owner") }
    guard let modified = LibArchive.modified(entry) else {
      throw DrydockError.damaged("\(name.printable) has an invalid time")
    }
    return ArchiveMember(
      name: name, kind: kind,
      metadata: FileMetadata(
        mode: UInt16(truncatingIfNeeded: archive_entry_perm(entry)) & 0o7777, user: userID, group: groupID,
        modified: modified, attributes: try attributes(entry, name: name),
        isNoDump: try isNoDump(entry, name: name)))
  }

  /// How tar names the only inode flag that archives hold.
  static let noDump = "nodump"

  private static func isNoDump(_ entry: OpaquePointer, name: [UInt8]) throws -> Bool {
    guard let text = archive_entry_fflags_text(entry), text.pointee != 0 else { return false }
    guard String(cString: text) == noDump else {
      throw DrydockError.damaged("\(name.printable) has inode flags that are not allowed in an archive")
    }
    return true
  }

  private static func kind(_ entry: OpaquePointer, name: [UInt8]) throws -> ArchiveMember.Kind {
    guard let size = UInt64(exactly: archive_entry_size(entry)) else {
      throw DrydockError.damaged("\(name.printable) has a negative size")
    }
    guard archive_entry_sparse_count(entry) == 0 else {
      throw DrydockError.damaged("\(name.printable) is a sparse file, which is not allowed in an archive")
    }
    let kind: ArchiveMember.Kind
    if let target = archive_entry_hardlink(entry) {
      kind = .hardLink(target: LibArchive.bytes(target))
    } else {
      switch Int(archive_entry_filetype(entry)) {
      case Int(drydock_type_file): return .file(size: size)
      case Int(drydock_type_directory): kind = .directory
      case Int(drydock_type_link):
        guard let target = archive_entry_symlink(entry), target.pointee != 0 else {
          throw DrydockError.damaged("the link \(name.printable) has no target")
        }
        kind = .symbolicLink(target: LibArchive.bytes(target))
      default:
        throw DrydockError.damaged(
          "\(name.printable) is a device, FIFO or socket, which is not allowed in an archive")
      }
    }
    guard size == 0 else { throw DrydockError.damaged("\(name.printable) has content, but is not a file") }
    return kind
  }

  private static func attributes(_ entry: OpaquePointer, name: [UInt8]) throws -> [ExtendedAttribute] {
    let attributes = LibArchive.attributes(entry).sorted {
      $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
    }
    guard
      !zip(attributes, attributes.dropFirst()).contains(where: { $0.name.utf8.elementsEqual($1.name.utf8) })
    else { throw DrydockError.damaged("\(name.printable) has an extended attribute twice") }
    return attributes
  }
}

/// Accepts the headers of a member only as the format has them: one ustar block, or a pax header and one.
///
/// libarchive understands much more: global headers, GNU's long names, volumes, sparse maps, numbers in base 256,
/// records that come twice. Other programs read those differently or not at all, so that an archive with them could
/// show one thing here and another there.
enum TarHeader {
  private static let block = Int(ArchiveFormat.tarBlock)
  private static let records: Set<String> = [
    "path", "linkpath", "size", "mtime", "uid", "gid", "hdrcharset",
    "SCHILY.fflags",
  ]
  private static let attributePrefix = "SCHILY.xattr."

  /// Checks all blocks before a member's content. Throws `DrydockError` `.damaged`.
  static func check(_ bytes: [UInt8], of member: ArchiveMember) throws {
    let wrong = { (what: String) in
      DrydockError.damaged(
        "the tar header of \(member.printableName) has \(what), which is not allowed in an archive")
    }
    var rest = bytes[...]
    var records: Set<String> = []
    if kind(rest) == UInt8(ascii: "x") {
      guard isPlain(rest.prefix(block)), let size = octal(rest.dropFirst(124).prefix(12)),
        size <= rest.count - block
      else { throw wrong("an odd pax header") }
      let extra = rest.dropFirst(block).prefix(size)
      guard let keys = keys(of: extra), Set(keys).count == keys.count,
        keys.allSatisfy({ Self.records.contains($0) || $0.hasPrefix(attributePrefix) })
      else { throw wrong("a pax record that is unknown, malformed or duplicate") }
      records = Set(keys)
      rest = rest.dropFirst(block + (size + block - 1) / block * block)
    }
    guard rest.count == block, let kind = kind(rest), "0125".utf8.contains(kind), isPlain(rest, records)
    else {
      throw wrong("a block of another kind")
    }
  }

  private static func kind(_ header: ArraySlice<UInt8>) -> UInt8? { header.dropFirst(156).first }

  /// A ustar block whose numbers are octal, but for those that a pax record replaces.
  private static func isPlain(_ header: ArraySlice<UInt8>, _ replaced: Set<String> = []) -> Bool {
    let numbers =
      [(100, 8), (148, 8), (329, 8), (337, 8)]
      + [("uid", 108, 8), ("gid", 116, 8), ("size", 124, 12), ("mtime", 136, 12)]
      .filter { !replaced.contains($0.0) }.map { ($0.1, $0.2) }
    return header.count == block && header.dropFirst(257).prefix(8).elementsEqual("ustar\u{0}00".utf8)
      && numbers.allSatisfy { octal(header.dropFirst($0.0).prefix($0.1)) != nil }
  }

  /// Octal digits up to a space or NUL; none are zero.
  private static func octal(_ field: ArraySlice<UInt8>) -> Int? {
    let digits = field.prefix { $0 != 0 && $0 != 0x20 }
    guard digits.allSatisfy({ (0x30...0x37).contains($0) }) else { return nil }
    return digits.reduce(0) { $0 << 3 | Int($1 - 0x30) }
  }

  /// The keys of pax records, each `LENGTH KEY=VALUE\n`; nil when malformed.
  private static func keys(of records: ArraySlice<UInt8>) -> [String]? {
    var keys: [String] = []
    var rest = records
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != 0x20 }
      guard digits.count < 8, let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count,
        length > digits.count + 3, digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "0")
      else { return nil }
      let record = rest.prefix(length)
      guard record.last == UInt8(ascii: "\n"), let equals = record.firstIndex(of: UInt8(ascii: "=")) else {
        return nil
      }
      keys.append(String(decoding: record[(digits.endIndex + 1)..<equals], as: UTF8.self))
      rest = rest.dropFirst(length)
    }
    return keys
  }
}
