import CLibArchive

/// libarchive's pax writer, with its bytes going to a `TarSink`.
///
/// Names and attributes are raw bytes (`hdrcharset=BINARY`): the process's locale plays no part.
final class TarEncoder {
  let sink: TarSink
  private let archive: OpaquePointer
  private let entry: OpaquePointer

  init(_ sink: TarSink) throws {
    guard let archive = archive_write_new() else { throw LibArchive.outOfMemory }
    guard let entry = archive_entry_new() else {
      archive_write_free(archive)
      throw LibArchive.outOfMemory
    }
    self.sink = sink
    self.archive = archive
    self.entry = entry
    let doing = "starting the tar stream"
    try LibArchive.checkWrite(archive_write_set_format_pax(archive), archive, doing)
    try LibArchive.checkWrite(archive_write_add_filter_none(archive), archive, doing)
    try LibArchive.checkWrite(archive_write_set_options(archive, "hdrcharset=BINARY"), archive, doing)
    // SCHILY.xattr is what GNU tar, bsdtar and star read; with LIBARCHIVE.xattr beside it GNU tar warns.
    try LibArchive.checkWrite(archive_write_set_options(archive, "xattrheader=SCHILY"), archive, doing)
    try LibArchive.checkWrite(archive_write_set_bytes_per_block(archive, 0), archive, doing)
    // The sink is owned by this object, which ends the archive before it goes.
    let context = Unmanaged.passUnretained(sink).toOpaque()
    let status = archive_write_open(
      archive, context, nil,
      { _, context, bytes, count in
        guard let context else { return -1 }
        let sink = Unmanaged<TarSink>.fromOpaque(context).takeUnretainedValue()
        return sink.append(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : -1
      }, nil)
    try LibArchive.checkWrite(status, archive, doing)
  }

  deinit {
    // Without this, freeing would first write the end of the archive into the sink.
    archive_write_fail(archive)
    archive_write_free(archive)
    archive_entry_free(entry)
  }

  /// Writes a member's headers.
  func writeHeader(_ member: ArchiveMember) throws {
    fill(member)
    try check(archive_write_header(archive, entry), "adding \(member.printableName)")
  }

  /// Writes content of the current member; never more than its header promised.
  func writeContent(_ bytes: UnsafeRawBufferPointer) throws {
    let written = archive_write_data(archive, bytes.baseAddress, bytes.count)
    if written < 0 { try check(ARCHIVE_FATAL, "adding content") }
    guard written == bytes.count else {
      throw ArchiveError(.io, "adding content failed: libarchive took \(written) of \(bytes.count) bytes; report this")
    }
  }

  /// Ends the current member, filling what is missing of its content with zeros.
  func finishMember() throws { try check(archive_write_finish_entry(archive), "ending a member") }

  /// Writes the end of the tar stream.
  func finish() throws { try check(archive_write_close(archive), "ending the tar stream") }

  private func check(_ status: Int32, _ doing: String) throws {
    if let failure = sink.failure { throw failure }
    try LibArchive.checkWrite(status, archive, doing)
  }

  private func fill(_ member: ArchiveMember) {
    archive_entry_clear(entry)
    withCString(member.name) { archive_entry_copy_pathname(entry, $0) }
    archive_entry_set_perm(entry, mode_t(member.mode))
    // Seconds rounded down and a fraction above: what libarchive writes and reads on both sides. GNU tar reads
    // the text of a time before 1970 with a fraction differently, up to a second off.
    let (seconds, fraction) = member.modified.quotientAndRemainder(dividingBy: 1_000_000_000)
    if fraction < 0 {
      archive_entry_set_mtime(entry, Int(seconds - 1), Int(fraction + 1_000_000_000))
    } else {
      archive_entry_set_mtime(entry, Int(seconds), Int(fraction))
    }
    archive_entry_set_uid(entry, Int64(member.userID))
    archive_entry_set_gid(entry, Int64(member.groupID))
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
    }
    for attribute in member.attributes {
      withCString(attribute.name) { name in
        attribute.value.withUnsafeBytes { archive_entry_xattr_add_entry(entry, name, $0.baseAddress, $0.count) }
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
}
