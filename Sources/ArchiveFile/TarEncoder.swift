import CLibArchive
import DrydockErrors

/// libarchive's pax writer, whose callback puts the tar stream into frames.
///
/// The result does not depend on the process's locale: names that are not plain ASCII go through a writer that takes names as raw
/// bytes (`hdrcharset=BINARY`). It would do for all names, but GNU tar prints a note at each member that says so.
/// Both writers feed one stream, member by member.
final class TarEncoder {
  /// The bytes of the tar stream so far.
  private(set) var position: UInt64 = 0
  private let frames: FrameWriter
  /// The frame that is being filled.
  private var buffer: FrameBuffer?
  /// The failure that made the callback refuse; libarchive's own message for it says less.
  private var failure: (any Error)?
  private let plain: OpaquePointer
  private let binary: OpaquePointer
  private let entry: OpaquePointer
  /// The writer of the current member.
  private var current: OpaquePointer

  init(_ frames: FrameWriter) throws {
    let plain = archive_write_new()
    let binary = archive_write_new()
    let entry = archive_entry_new()
    guard let plain, let binary, let entry else {
      archive_write_free(plain)
      archive_write_free(binary)
      archive_entry_free(entry)
      throw LibArchive.outOfMemory
    }
    self.frames = frames
    self.plain = plain
    self.binary = binary
    self.entry = entry
    current = plain
    try open(plain, options: [])
    try open(binary, options: ["hdrcharset=BINARY"])
  }

  deinit {
    for archive in [plain, binary] {
      // Without this, freeing would first write the end of the archive.
      archive_write_fail(archive)
      archive_write_free(archive)
    }
    archive_entry_free(entry)
  }

  private func open(_ archive: OpaquePointer, options: [String]) throws {
    let doing = "starting the tar stream"
    try LibArchive.checkWrite(archive_write_set_format_pax(archive), archive, doing)
    try LibArchive.checkWrite(archive_write_add_filter_none(archive), archive, doing)
    // SCHILY.xattr is what GNU tar, bsdtar and star read; with LIBARCHIVE.xattr beside it GNU tar prints notes.
    for option in options + ["xattrheader=SCHILY"] {
      try LibArchive.checkWrite(archive_write_set_options(archive, option), archive, doing)
    }
    try LibArchive.checkWrite(archive_write_set_bytes_per_block(archive, 0), archive, doing)
    // This object frees the writers before it goes.
    let status = archive_write_open(
      archive, Unmanaged.passUnretained(self).toOpaque(), nil,
      { _, context, bytes, count in
        guard let context else { return -1 }
        let encoder = Unmanaged<TarEncoder>.fromOpaque(context).takeUnretainedValue()
        return encoder.append(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : -1
      }, nil)
    try LibArchive.checkWrite(status, archive, doing)
  }

  func writeHeader(_ member: ArchiveMember) throws {
    fill(member)
    current = member.isPlainASCII ? plain : binary
    try check(archive_write_header(current, entry), "adding \(member.printableName)")
  }

  /// Writes content of the current member; never more than its header promised.
  func writeContent(_ bytes: UnsafeRawBufferPointer) throws {
    let written = archive_write_data(current, bytes.baseAddress, bytes.count)
    if written < 0 { try check(ARCHIVE_FATAL, "adding content") }
    guard written == bytes.count else {
      throw DrydockError(
        .io, "adding content failed: libarchive took \(written) of \(bytes.count) bytes; report this")
    }
  }

  /// Ends the current member, filling what is missing of its content with zeros.
  func finishMember() throws { try check(archive_write_finish_entry(current), "ending a member") }

  /// Writes the end of the tar stream, once.
  func finish() throws {
    current = plain
    try check(archive_write_close(plain), "ending the tar stream")
  }

  private func check(_ status: Int32, _ doing: String) throws {
    if let failure { throw failure }
    try LibArchive.checkWrite(status, current, doing)
  }

  private func fill(_ member: ArchiveMember) {
    let metadata = member.metadata
    archive_entry_clear(entry)
    withCString(member.name) { archive_entry_copy_pathname(entry, $0) }
    archive_entry_set_perm(entry, mode_t(metadata.mode))
    // Seconds rounded down and a fraction above: what libarchive writes and reads on both sides. GNU tar reads
    // the text of a time before 1970 with a fraction differently, up to a second off.
    let (seconds, fraction) = metadata.modified.quotientAndRemainder(dividingBy: 1_000_000_000)
    if fraction < 0 {
      archive_entry_set_mtime(entry, Int(seconds - 1), Int(fraction + 1_000_000_000))
    } else {
      archive_entry_set_mtime(entry, Int(seconds), Int(fraction))
    }
    archive_entry_set_uid(entry, Int64(metadata.user))
    archive_entry_set_gid(entry, Int64(metadata.group))
    archive_entry_set_size(entry, Int64(clamping: member.contentSize))
    switch member.kind {
    case .file:
      archive_entry_set_filetype(entry, UInt32(drydock_type_file))
    case .directory:
      archive_entry_set_filetype(entry, UInt32(drydock_type_directory))
    case .symbolicLink(let target):
      archive_entry_set_filetype(entry, UInt32(drydock_type_link))
      withCString(target) { archive_entry_copy_symlink(entry, $0) }
    case .hardLink(let target):
      archive_entry_set_filetype(entry, UInt32(drydock_type_file))
      withCString(target) { archive_entry_copy_hardlink(entry, $0) }
    case .special: break
    }
    // As SCHILY.fflags, which bsdtar and star put back.
    if metadata.isNoDump { _ = archive_entry_copy_fflags_text(entry, LibArchive.noDump) }
    for attribute in metadata.attributes {
      attribute.value.withUnsafeBytes {
        archive_entry_xattr_add_entry(entry, attribute.name, $0.baseAddress, $0.count)
      }
    }
  }

  private func withCString(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> Void) {
    (bytes + [0]).withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { text in
        if let base = text.baseAddress { body(base) }
      }
    }
  }

  // MARK: Frames

  /// The one copy of the content on its way. False after a failure.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard failure == nil else { return false }
    do {
      var rest = bytes[...]
      while !rest.isEmpty {
        let buffer = try currentBuffer()
        let count = min(rest.count, ArchiveFormat.frameSize - buffer.plainCount)
        UnsafeMutableRawBufferPointer(rebasing: buffer.plain[buffer.plainCount..<buffer.plainCount + count])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
        buffer.plainCount += count
        rest = rest.dropFirst(count)
        if buffer.plainCount == ArchiveFormat.frameSize {
          self.buffer = nil
          frames.submit(buffer)
        }
      }
      position += UInt64(bytes.count)
      return true
    } catch {
      failure = error
      return false
    }
  }

  /// Hands over the frame that is being filled, if there is one.
  func flush() {
    guard let buffer else { return }
    self.buffer = nil
    frames.submit(buffer)
  }

  private func currentBuffer() throws -> FrameBuffer {
    if let buffer { return buffer }
    let next = try frames.nextBuffer()
    next.plainCount = 0
    buffer = next
    return next
  }
}

extension ArchiveMember {
  /// Whether the name and the link target are plain ASCII.
  fileprivate var isPlainASCII: Bool {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target):
      guard target.allSatisfy({ $0 < 0x80 }) else { return false }
    case .file, .directory, .special: break
    }
    return name.allSatisfy { $0 < 0x80 }
  }
}
