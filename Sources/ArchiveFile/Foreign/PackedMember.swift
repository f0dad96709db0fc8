import CLibArchive
import DrydockErrors

/// What libarchive read of a member of somebody else's archive: less strict than ``TarEntry``, as any program may have
/// written it, and as strict about what it could do.
enum PackedMember {
  /// The member; its name is empty when it is the root itself.
  ///
  /// - Throws: `DrydockError`: `unsafeName`, `encrypted`, `unsupported`, `limit`.
  static func make(_ entry: OpaquePointer, isTar: Bool) throws -> ArchiveMember {
    guard let text = archive_entry_pathname(entry) else {
      throw DrydockError.damaged("a member has no name that can be read")
    }
    let name = try plain(LibArchive.bytes(text))
    guard archive_entry_is_encrypted(entry) == 0 else {
      throw DrydockError(
        .encrypted,
        "\(name.printable) is encrypted with a password, which is not supported; unpack the file first")
    }
    let kind = try kind(entry, name)
    if name.isEmpty, kind != .directory { throw MemberName.unsafe(name, "is empty") }
    var member = ArchiveMember(
      name: name, kind: kind, mode: UInt16(truncatingIfNeeded: archive_entry_perm(entry)) & 0o7777,
      // An impossible time is as good as none: it is no reason not to read somebody's data.
      modified: LibArchive.modified(entry) ?? 0, attributes: attributes(entry))
    if isTar {
      guard let user = UInt32(exactly: archive_entry_uid(entry)),
        let group = UInt32(exactly: archive_entry_gid(entry))
      else { throw DrydockError.damaged("\(name.printable) has an impossible owner") }
      (member.userID, member.groupID) = (user, group)
      let flags = archive_entry_fflags_text(entry).map { String(cString: $0) } ?? ""
      member.isNoDump = flags.split(separator: ",").contains { $0 == TarEntry.noDump }
    }
    return member
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
    default:
      throw DrydockError(
        .newerFormat,
        "\(name.printable) is a device, FIFO or socket, which is not unpacked; pack again without it")
    }
  }

  /// Of one name in two spellings (SCHILY and LIBARCHIVE, which bsdtar writes both) one.
  private static func attributes(_ entry: OpaquePointer) -> [ArchiveMember.Attribute] {
    let pairs = LibArchive.attributes(entry).map { ($0.name, $0.value) }
    return Dictionary(pairs, uniquingKeysWith: { $1 }).map { .init(name: $0, value: $1) }
      .sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }
}
