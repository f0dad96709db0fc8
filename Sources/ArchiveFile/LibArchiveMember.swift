import CLibArchive
import DrydockErrors
import FileSystem

/// Members as libarchive read their headers, checked and turned into values.
extension ArchiveMember {
  /// A member of an archive of Drydock's.
  ///
  /// - Throws: `DrydockError` for what such an archive never holds: special files, sparse files, values out of range.
  init(own entry: OpaquePointer) throws {
    guard let text = archive_entry_pathname(entry) else { throw DrydockError.damaged("a member has no name") }
    var name = LibArchive.bytes(text)
    let kind = try Self.ownKind(entry, name)
    // Tar marks directories by a slash at the end.
    if kind == .directory, name.count > 1, name.last == MemberName.slash { name.removeLast() }
    try MemberName.validate(name)
    guard let owner = LibArchive.owner(entry) else {
      throw DrydockError.damaged("\(name.printable) has an invalid owner")
    }
    guard let modified = LibArchive.modified(entry) else {
      throw DrydockError.damaged("\(name.printable) has an invalid time")
    }
    let flags = LibArchive.flags(entry)
    guard flags.isEmpty || flags == LibArchive.noDump else {
      throw DrydockError.damaged("\(name.printable) has inode flags that are not allowed in an archive")
    }
    let attributes = LibArchive.attributes(entry)
    guard
      !zip(attributes, attributes.dropFirst()).contains(where: { $0.name.utf8.elementsEqual($1.name.utf8) })
    else { throw DrydockError.damaged("\(name.printable) has an extended attribute twice") }
    self.init(
      name: name, kind: kind,
      metadata: FileMetadata(
        mode: LibArchive.mode(entry), user: owner.user, group: owner.group, modified: modified,
        attributes: attributes, isNoDump: !flags.isEmpty))
  }

  private static func ownKind(_ entry: OpaquePointer, _ name: [UInt8]) throws -> Kind {
    // Whatever the kind is.
    guard let size = UInt64(exactly: archive_entry_size(entry)) else {
      throw DrydockError.damaged("\(name.printable) has a negative size")
    }
    guard archive_entry_sparse_count(entry) == 0 else {
      throw DrydockError.damaged("\(name.printable) is a sparse file, which is not allowed in an archive")
    }
    let kind = try kind(entry, name)
    if case .file = kind { return kind }
    guard kind != .special else {
      throw DrydockError.damaged(
        "\(name.printable) is a device, FIFO or socket, which is not allowed in an archive")
    }
    guard size == 0 else { throw DrydockError.damaged("\(name.printable) has content, but is not a file") }
    return kind
  }

  /// A member of a foreign archive: less strict about its form, and as strict about what it could do. Its name is empty when
  /// it is the root itself.
  init(foreign entry: OpaquePointer, isTar: Bool) throws {
    guard let text = archive_entry_pathname(entry) else {
      throw DrydockError.damaged("a member has no readable name")
    }
    let name = try Self.plain(LibArchive.bytes(text))
    guard archive_entry_is_encrypted(entry) == 0 else {
      throw DrydockError(
        .encrypted,
        "\(name.printable) is encrypted with a password, which is not supported; unpack the file first")
    }
    var kind = try Self.kind(entry, name)
    if case .hardLink(let target) = kind { kind = .hardLink(target: try Self.plain(target)) }
    if name.isEmpty, kind != .directory { throw MemberName.unsafe(name, "is empty") }
    // bsdtar writes each attribute twice, under SCHILY and LIBARCHIVE: the last one counts.
    let attributes = LibArchive.attributes(entry).reduce(into: [ExtendedAttribute]()) { kept, attribute in
      if kept.last?.name.utf8.elementsEqual(attribute.name.utf8) == true { kept.removeLast() }
      kept.append(attribute)
    }
    var metadata = FileMetadata(
      mode: LibArchive.mode(entry), user: 0, group: 0,
      // Data with an invalid time is read all the same.
      modified: LibArchive.modified(entry) ?? 0, attributes: attributes)
    if isTar {
      guard let owner = LibArchive.owner(entry) else {
        throw DrydockError.damaged("\(name.printable) has an invalid owner")
      }
      (metadata.user, metadata.group) = owner
      metadata.isNoDump = LibArchive.flags(entry).split(separator: ",").contains { $0 == LibArchive.noDump }
    }
    self.init(name: name, kind: kind, metadata: metadata)
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

  private static func kind(_ entry: OpaquePointer, _ name: [UInt8]) throws -> Kind {
    if let target = archive_entry_hardlink(entry) { return .hardLink(target: LibArchive.bytes(target)) }
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
}
