import CLibArchive
import DrydockErrors

/// What libarchive read of a member's headers, checked and turned into values.
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
    else { throw DrydockError.damaged("\(name.printable) has an impossible owner") }
    return ArchiveMember(
      name: name, kind: kind, mode: UInt16(truncatingIfNeeded: archive_entry_perm(entry)) & 0o7777,
      modified: try modified(entry, name: name), userID: userID, groupID: groupID,
      attributes: try attributes(entry, name: name), isNoDump: try isNoDump(entry, name: name))
  }

  /// How tar names the only inode flag that archives hold.
  static let noDump = "nodump"

  private static func isNoDump(_ entry: OpaquePointer, name: [UInt8]) throws -> Bool {
    guard let text = archive_entry_fflags_text(entry), text.pointee != 0 else { return false }
    guard String(cString: text) == noDump else {
      throw DrydockError.damaged("\(name.printable) has inode flags that no archive holds")
    }
    return true
  }

  private static func kind(_ entry: OpaquePointer, name: [UInt8]) throws -> ArchiveMember.Kind {
    guard let size = UInt64(exactly: archive_entry_size(entry)) else {
      throw DrydockError.damaged("\(name.printable) has a negative size")
    }
    guard archive_entry_sparse_count(entry) == 0 else {
      throw DrydockError.damaged("\(name.printable) is a sparse file, which no archive holds")
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
        throw DrydockError.damaged("\(name.printable) is a device, FIFO or socket, which no archive holds")
      }
    }
    guard size == 0 else { throw DrydockError.damaged("\(name.printable) is no file, but has content") }
    return kind
  }

  private static func modified(_ entry: OpaquePointer, name: [UInt8]) throws -> Int64 {
    guard let time = LibArchive.modified(entry) else {
      throw DrydockError.damaged("\(name.printable) has an impossible time")
    }
    return time
  }

  private static func attributes(_ entry: OpaquePointer, name: [UInt8]) throws -> [ArchiveMember.Attribute] {
    var attributes = LibArchive.attributes(entry)
    attributes.sort { $0.name.lexicographicallyPrecedes($1.name) }
    guard !zip(attributes, attributes.dropFirst()).contains(where: { $0.name == $1.name }) else {
      throw DrydockError.damaged("\(name.printable) has an extended attribute twice")
    }
    return attributes
  }
}
