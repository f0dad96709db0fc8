import CPlatform
import DrydockErrors
import SystemPackage

/// The metadata of a path: mode, owner, modification time, extended attributes, the flag `nodump`.
package struct FileMetadata: Hashable, Sendable, Codable {
  /// Permission bits, with set-user-id, set-group-id and sticky.
  package var mode: UInt16
  package var user, group: UInt32
  /// The modification time in nanoseconds since 1970.
  package var modified: Int64
  /// Extended attributes, sorted by name. On Linux they include POSIX access lists.
  package var attributes: [ExtendedAttribute]
  /// The inode flag `nodump`, which asks backup programs to skip the path. Links have none.
  package var isNoDump: Bool

  package init(
    mode: UInt16, user: UInt32, group: UInt32, modified: Int64, attributes: [ExtendedAttribute],
    isNoDump: Bool = false
  ) {
    (self.mode, self.user, self.group, self.modified) = (mode, user, group, modified)
    (self.attributes, self.isNoDump) = (attributes, isNoDump)
  }

  package init(_ status: FileStatus, attributes: [ExtendedAttribute]) {
    self.init(
      mode: status.mode, user: status.user, group: status.group, modified: status.modified,
      attributes: attributes, isNoDump: status.isNoDump)
  }
}

extension Directory {
  /// The metadata of a path below; nil when it does not exist.
  ///
  /// - Parameters:
  ///   - known: its status, if that is known.
  ///   - unnamed: see ``attributes(_:unnamed:)``.
  package func metadata(
    _ path: ContainerPath, _ known: FileStatus? = nil, unnamed: () -> Void = {}
  ) throws -> FileMetadata? {
    guard let status = try known ?? status(path) else { return nil }
    return FileMetadata(status, attributes: isGroupList(path) ? [] : try attributes(path, unnamed: unnamed))
  }

  /// Applies metadata to a path: the owner first (which clears set-id bits), then attributes, mode, and the time last.
  ///
  /// The owner is set where it differs. A user other than root remains the owner, and the set-id bits for another owner are
  /// dropped. Attributes outside `user.` that this user may not set are skipped, and so are all attributes and the inode
  /// flag on a file system without them. Attributes that the metadata lacks are removed.
  ///
  /// - Parameter includingTime: false for a directory that is still being filled.
  /// - Returns: whether there may be extended attributes now.
  @discardableResult
  package func apply(
    _ metadata: FileMetadata, to path: ContainerPath, includingTime: Bool = true
  ) throws -> Bool {
    guard let status = try status(path) else {
      throw DrydockError(.notFound, "removed while its attributes were set", path: full(path))
    }
    let mode = try setOwner(metadata, of: path, status)
    let present = try attributes(path)
    if present != metadata.attributes, status.type != .symbolicLink, status.mode & 0o200 == 0 {
      // Setting attributes needs write permission; the final mode follows.
      try setMode(status.mode | 0o600, of: path)
    }
    for attribute in metadata.attributes
    where !present.contains(attribute) && attribute.name != ExtendedAttribute.ownNote {
      do {
        try setAttribute(attribute, of: path)
      } catch let error as DrydockError
        where attribute.name.hasPrefix("user.") ? error.meansNotThere : error.meansNotAllowed
      {}
    }
    let kept = Set(metadata.attributes.map { Array($0.name.utf8) })
    for attribute in present where !kept.contains(Array(attribute.name.utf8)) {
      try ignoringPermission { try removeAttribute(attribute.name, of: path) }
    }
    if status.isNoDump != metadata.isNoDump, status.type == .file || status.type == .directory {
      // Setting the flag opens the path; the final mode follows.
      if status.mode & 0o400 == 0 { try setMode(status.mode | 0o400, of: path) }
      try ignoringPermission { try setNoDump(metadata.isNoDump, of: path) }
    }
    if status.type != .symbolicLink { try setMode(mode, of: path) }
    if includingTime { try setModified(metadata.modified, of: path) }
    return !present.isEmpty || !metadata.attributes.isEmpty
  }

  /// Sets the owner as far as this user may: user and group, else the group alone.
  ///
  /// - Returns: the mode for the resulting owner.
  private func setOwner(
    _ metadata: FileMetadata, of path: ContainerPath, _ status: FileStatus
  ) throws -> UInt16 {
    guard status.user != metadata.user || status.group != metadata.group else { return metadata.mode }
    do {
      try setOwner(user: metadata.user, group: metadata.group, of: path)
      return metadata.mode
    } catch let error as DrydockError where error.meansNotAllowed {
      try ignoringPermission { try setOwner(user: status.user, group: metadata.group, of: path) }
    }
    let made = try self.status(path)
    var mode = metadata.mode
    if made?.user != metadata.user { mode &= ~0o4000 }
    if made?.group != metadata.group && status.type == .file { mode &= ~0o2000 }
    return mode
  }

  private func ignoringPermission(_ body: () throws -> Void) throws {
    do { try body() } catch let error as DrydockError where error.meansNotAllowed {}
  }
}

extension DrydockError {
  /// Whether this user or this file system cannot do what was asked.
  fileprivate var meansNotAllowed: Bool {
    // A user or group that this user namespace does not map is an invalid argument.
    code == .permission || meansNotThere || cause as? Errno == .invalidArgument
  }

  /// Whether this file system does not support what was asked.
  fileprivate var meansNotThere: Bool {
    (cause as? Errno).map { $0 == .notSupported || $0 == .inappropriateIOCTLForDevice } ?? false
  }
}

/// Set-user-id and set-group-id bits, and capabilities: rights that an archive's file would give to everybody who runs it.
/// They come back on demand only, so that a hostile archive cannot leave a program that runs as root. The set-group-id
/// bit of a directory counts too.
extension FileMetadata {
  private static let setIDs: UInt16 = 0o6000
  private static let capability = "security.capability"

  package var givesRights: Bool {
    mode & Self.setIDs != 0 || attributes.contains { $0.name == Self.capability }
  }

  /// The metadata without rights, but for those that the path has already, for the same content and owner.
  package func withoutRights(keepingThoseOf present: FileMetadata? = nil) -> FileMetadata {
    let present = present.flatMap { $0.user == user && $0.group == group ? $0 : nil }
    var metadata = self
    metadata.mode &= ~Self.setIDs | (present?.mode ?? 0)
    metadata.attributes.removeAll { attribute in
      attribute.name == Self.capability && present?.attributes.contains(attribute) != true
    }
    return metadata
  }
}

/// An extended attribute. On Linux the name includes the namespace, such as `user.`.
package struct ExtendedAttribute: Hashable, Sendable, Codable {
  /// Drydock's own note on a file that it is changing. Lists of attributes leave it out, so that it is never captured,
  /// compared or restored.
  package static let ownNote = "user.drydock.marking"

  package var name: String
  package var value: [UInt8]

  package init(name: String, value: [UInt8]) {
    self.name = name
    self.value = value
  }

  /// The attribute as this system names it. Attribute names of Apple's systems have no namespace, which Linux requires.
  package var named: ExtendedAttribute {
    #if os(Linux)
      if !["user.", "system.", "security.", "trusted."].contains(where: name.hasPrefix) {
        return ExtendedAttribute(name: "user." + name, value: value)
      }
    #endif
    return self
  }

  /// Compares bytes: to a file system, two Unicode spellings of one text are two names.
  package static func == (left: Self, right: Self) -> Bool {
    left.name.utf8.elementsEqual(right.name.utf8) && left.value == right.value
  }
}

extension Directory {
  /// All extended attributes of a path below, sorted by name, without following a link. Empty on a file system without
  /// attributes.
  ///
  /// - Parameter unnamed: called for an attribute that is left out because its name is not UTF-8.
  package func attributes(
    _ below: ContainerPath, unnamed: () -> Void = {}
  ) throws -> [ExtendedAttribute] {
    try withParent(of: below) { parent, name in
      try attributeNames(parent, name, below, unnamed: unnamed).sorted().compactMap { attribute in
        try attributeValue(parent, name, attribute, below).map {
          ExtendedAttribute(name: attribute, value: $0)
        }
      }
    }
  }

  /// The names of the extended attributes of a path below that are UTF-8, unordered; one call for most paths.
  package func attributeNames(of below: ContainerPath) throws -> [String] {
    try withParent(of: below) { try attributeNames($0, $1, below) }
  }

  /// The value of an extended attribute; nil when it is not set.
  package func attribute(_ attribute: String, of below: ContainerPath) throws -> [UInt8]? {
    try withParent(of: below) { try attributeValue($0, $1, attribute, below) }
  }

  package func setAttribute(_ attribute: ExtendedAttribute, of below: ContainerPath) throws {
    try call("cannot set the extended attribute \(attribute.name)", below) { parent, name in
      attribute.value.withUnsafeBytes {
        platform_set_attribute(parent, name, attribute.name, $0.baseAddress, $0.count)
      }
    }
  }

  package func removeAttribute(_ attribute: String, of below: ContainerPath) throws {
    try call(
      "cannot remove the extended attribute \(attribute)", below, accepting: .noData, .attributeNotFound
    ) { platform_remove_attribute($0, $1, attribute) }
  }

  private func attributeNames(
    _ parent: Int32, _ name: UnsafePointer<CChar>, _ path: ContainerPath, unnamed: () -> Void = {}
  ) throws -> [String] {
    let names = Self.filled(1024) {
      platform_list_attributes(parent, name, $0?.assumingMemoryBound(to: CChar.self), $1)
    } result: { list in
      list.split(separator: 0).compactMap { bytes in
        let name = String(validating: bytes, as: UTF8.self)
        if name == nil { unnamed() }
        return name == ExtendedAttribute.ownNote ? nil : name
      }
    }
    if let names { return names }
    if currentErrno().meansNoAttributes { return [] }
    throw DrydockError.lastCall("cannot list the extended attributes", full(path))
  }

  private func attributeValue(
    _ parent: Int32, _ name: UnsafePointer<CChar>, _ attribute: String, _ path: ContainerPath
  ) throws -> [UInt8]? {
    let value = Self.filled(256) {
      platform_get_attribute(parent, name, attribute, $0, $1)
    } result: {
      Array($0)
    }
    if value != nil || currentErrno().meansNoAttributes { return value }
    throw DrydockError.lastCall("cannot read the extended attribute \(attribute)", full(path))
  }

  /// What a call writes into a buffer; nil (and errno) when it fails. Most lists and values fit in one call; for a larger one it
  /// fails with ERANGE, and a list may grow between two calls.
  private static func filled<Value>(
    _ capacity: Int, by call: (UnsafeMutableRawPointer?, Int) -> Int,
    result: (UnsafeRawBufferPointer) -> Value
  ) -> Value? {
    var capacity = capacity
    while true {
      let value = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer -> Value? in
        let count = call(buffer.baseAddress, buffer.count)
        return count < 0 ? nil : result(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
      if value != nil || currentErrno() != .outOfRange { return value }
      let needed = call(nil, 0)
      if needed < 0 { return nil }
      capacity = max(needed, 1)
    }
  }
}

/// The inode flags that `chattr` sets on a file or directory, its quota project, and hints of the file system.
///
/// Not included: `nodump`, which is part of ``FileMetadata``; immutable and append-only, since such paths are never replaced
/// (``FileStatus/isImmutable``); and flags that the file system maintains (extents, index, inline data).
package struct InodeFlags: Hashable, Sendable, Codable {
  var flags, project, extended, extentSize, copyExtentSize: UInt32

  private static let spread: UInt32 = 0x2_0000
  private static let synchronousDirectory: UInt32 = 0x1_0000
  private static let projectInheritance: UInt32 = 0x2000_0000

  init(_ flags: platform_flags) {
    (self.flags, project, extended) = (flags.flags, flags.project, flags.extended)
    (extentSize, copyExtentSize) = (flags.extent_size, flags.copy_extent_size)
  }

  fileprivate var raw: platform_flags {
    platform_flags(
      flags: flags, project: project, extended: extended, extent_size: extentSize,
      copy_extent_size: copyExtentSize)
  }

  /// Whether new files in a directory with these flags inherit its project, and files moved into it must have it.
  package var hasProjectInheritance: Bool { flags & Self.projectInheritance != 0 }

  /// Whether a file with other flags may be moved into a directory with these.
  package func accepts(_ other: InodeFlags?) -> Bool {
    !hasProjectInheritance || other?.project == project
  }

  /// The flags of new files in a directory with these, as ext4 inherits them.
  package func inherited(by type: FileType) -> InodeFlags {
    #if os(Linux)
      var own = self
      own.flags &= ~Self.spread
      if type != .directory { own.flags &= ~(Self.synchronousDirectory | Self.projectInheritance) }
      if !hasProjectInheritance { own.project = 0 }
      (own.extended, own.extentSize, own.copyExtentSize) = (0, 0, 0)
      return own
    #else
      // macOS: untested. User flags are not inherited.
      return InodeFlags(platform_flags())
    #endif
  }

  /// These flags after a move into a directory: its project, where it passes that on.
  package func moved(into directory: InodeFlags?) -> InodeFlags {
    var own = self
    if let directory, directory.hasProjectInheritance { own.project = directory.project }
    return own
  }

  package var withoutProjectInheritance: InodeFlags {
    var own = self
    own.flags &= ~Self.projectInheritance
    return own
  }
}

extension Directory {
  /// The flags of this directory; nil where the file system has none.
  package func flags() -> InodeFlags? { descriptor.flags }

  /// Sets the flags of this directory, as far as possible.
  ///
  /// - Returns: whether it now has exactly these.
  package func setFlags(_ flags: InodeFlags) -> Bool { descriptor.setFlags(flags) }

  /// The flags of a file or directory below; nil where the file system has none, or the path is unreadable.
  package func flags(of path: ContainerPath) throws -> InodeFlags? {
    if isRoot(path) { return try directory(path).flags() }
    guard let file = try openForFlags(path) else { return nil }
    defer { try? file.close() }
    return file.flags
  }

  /// Sets the flags of a file or directory below, as far as possible.
  ///
  /// - Returns: whether it now has exactly these.
  @discardableResult
  package func setFlags(_ flags: InodeFlags, of path: ContainerPath) throws -> Bool {
    if isRoot(path) { return try directory(path).setFlags(flags) }
    guard let file = try openForFlags(path) else { return false }
    defer { try? file.close() }
    return file.setFlags(flags)
  }

  private func openForFlags(_ path: ContainerPath) throws -> FileDescriptor? {
    guard !isGroupList(path), let type = try status(path)?.type, type == .file || type == .directory else {
      return nil
    }
    do {
      return try open(path, .readOnly, options: [.nonBlocking])
    } catch let error as DrydockError where error.code == .permission || error.code == .notFound {
      return nil
    }
  }
}

extension FileDescriptor {
  /// Sets ``ExtendedAttribute/ownNote``, or removes it (nil), where the file system has room for it and this user may.
  package func setOwnNote(_ note: [UInt8]?) {
    let name = ExtendedAttribute.ownNote
    guard let note else { return _ = platform_remove_attribute(rawValue, "", name) }
    _ = note.withUnsafeBytes { platform_set_attribute(rawValue, "", name, $0.baseAddress, $0.count) }
  }

  fileprivate var flags: InodeFlags? {
    var flags = platform_flags()
    return platform_get_flags(rawValue, &flags) == 0 ? InodeFlags(flags) : nil
  }

  fileprivate func setFlags(_ flags: InodeFlags) -> Bool {
    guard let now = self.flags else { return false }
    if now == flags { return true }
    var wanted = flags.raw
    return platform_set_flags(rawValue, &wanted) == 0 && self.flags == flags
  }
}
