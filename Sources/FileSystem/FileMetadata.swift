import DrydockErrors
import SystemPackage

/// What a path carries besides its content: mode, owner, modification time, extended attributes, inode flag.
package struct FileMetadata: Hashable, Sendable, Codable {
  /// Permission bits, with set-user-id, set-group-id and sticky.
  package var mode: UInt16
  /// Owner and group.
  package var user, group: UInt32
  /// Modification time, nanoseconds since 1970.
  package var modified: Int64
  /// Extended attributes, sorted by name; POSIX access lists are among them on Linux.
  package var attributes: [ExtendedAttribute]
  /// The inode flag `nodump`, which asks backup programs to pass the path over; links have none.
  package var isNoDump: Bool

  /// Metadata from its parts.
  package init(
    mode: UInt16, user: UInt32, group: UInt32, modified: Int64, attributes: [ExtendedAttribute],
    isNoDump: Bool = false
  ) {
    self.mode = mode
    self.user = user
    self.group = group
    self.modified = modified
    self.attributes = attributes
    self.isNoDump = isNoDump
  }
}

extension Directory {
  /// The metadata of a path below, nil when nothing is there.
  package func metadata(_ path: ContainerPath) throws -> FileMetadata? {
    guard let status = try status(path) else { return nil }
    return FileMetadata(
      mode: status.mode, user: status.user, group: status.group, modified: status.modified,
      attributes: isGroupList(path) ? [] : try attributes(path), isNoDump: status.isNoDump)
  }

  /// Puts metadata on a path: owner first (it clears set-id bits), attributes, mode, and the time last.
  ///
  /// The owner is set only where it differs; one who is not root keeps what he made as his own, without the set-id bits
  /// that were meant for somebody else's. Attributes outside `user.` that this user may not set are passed over
  /// likewise, and so are all attributes, and the inode flag, on a file system that has none. Attributes that the path has
  /// and the metadata lacks are removed.
  ///
  /// - Parameter includingTime: false for a directory that is still being filled.
  package func apply(_ metadata: FileMetadata, to path: ContainerPath, includingTime: Bool = true) throws {
    guard let status = try status(path) else {
      throw DrydockError(.notFound, "gone while its attributes were set", path: full(path))
    }
    let mode = try setOwner(metadata, of: path, status)
    let present = try attributes(path)
    if present != metadata.attributes, status.type != .symbolicLink, status.mode & 0o200 == 0 {
      // Whoever sets one must be able to write the path; the right mode follows.
      try setMode(status.mode | 0o600, of: path)
    }
    for attribute in metadata.attributes where !present.contains(attribute) {
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
      // Whoever sets it opens the path; the right mode follows.
      if status.mode & 0o400 == 0 { try setMode(status.mode | 0o400, of: path) }
      try ignoringPermission { try setNoDump(metadata.isNoDump, of: path) }
    }
    if status.type != .symbolicLink { try setMode(mode, of: path) }
    if includingTime { try setModified(metadata.modified, of: path) }
  }

  /// Sets the owner as far as this user may: both, else the group alone.
  ///
  /// - Returns: the mode that goes with the owner that the path has now.
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
  /// Whether a call failed only because this user, or this file system, does not do such a thing.
  fileprivate var meansNotAllowed: Bool {
    // A user or group that this user namespace does not know is an invalid argument.
    code == .permission || meansNotThere || cause as? Errno == .invalidArgument
  }

  /// Whether a call failed because this file system has no such thing.
  fileprivate var meansNotThere: Bool {
    (cause as? Errno).map { $0 == .notSupported || $0 == .inappropriateIOCTLForDevice } ?? false
  }
}
