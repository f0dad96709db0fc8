import SystemPackage

/// What a path carries besides its content: mode, owner, modification time, extended attributes, inode flag.
public struct FileMetadata: Hashable, Sendable, Codable {
  /// Permission bits, with set-user-id, set-group-id and sticky.
  public var mode: UInt16
  /// Owner and group.
  public var user, group: UInt32
  /// Modification time, nanoseconds since 1970.
  public var modified: Int64
  /// Extended attributes, sorted by name; POSIX access lists are among them on Linux.
  public var attributes: [ExtendedAttribute]
  /// The inode flag `nodump`, which asks backup programs to pass the path over; links have none.
  public var isNoDump: Bool

  /// Metadata from its parts.
  public init(
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
  public func metadata(_ path: ContainerPath) throws -> FileMetadata? {
    guard let status = try status(path) else { return nil }
    return FileMetadata(
      mode: status.mode, user: status.user, group: status.group, modified: status.modified,
      attributes: try attributes(path), isNoDump: status.isNoDump)
  }

  /// Puts metadata on a path: owner first (it clears set-id bits), attributes, mode, and the time last.
  ///
  /// The owner is set only where it differs; one who is not root keeps what he made as his own. Attributes
  /// outside `user.` that this user may not set are passed over likewise, and so is the inode flag on a file system
  /// that has none. Attributes that the path has and the
  /// metadata lacks are removed.
  ///
  /// - Parameter includingTime: false for a directory that is still being filled.
  public func apply(_ metadata: FileMetadata, to path: ContainerPath, includingTime: Bool = true) throws {
    guard let status = try status(path) else {
      throw ContainerError(.notFound, "gone while its attributes were set", path: full(path))
    }
    if status.user != metadata.user || status.group != metadata.group {
      try ignoringPermission { try setOwner(user: metadata.user, group: metadata.group, of: path) }
    }
    let present = try attributes(path)
    for attribute in metadata.attributes where !present.contains(attribute) {
      if attribute.name.hasPrefix("user.") {
        try setAttribute(attribute, of: path)
      } else {
        try ignoringPermission { try setAttribute(attribute, of: path) }
      }
    }
    for attribute in present where !metadata.attributes.contains(where: { $0.name == attribute.name }) {
      try ignoringPermission { try removeAttribute(attribute.name, of: path) }
    }
    if status.isNoDump != metadata.isNoDump, status.type == .file || status.type == .directory {
      // Whoever sets it opens the path; the right mode follows.
      if status.mode & 0o400 == 0 { try setMode(status.mode | 0o400, of: path) }
      try ignoringPermission { try setNoDump(metadata.isNoDump, of: path) }
    }
    if status.type != .symbolicLink { try setMode(metadata.mode, of: path) }
    if includingTime { try setModified(metadata.modified, of: path) }
  }

  private func ignoringPermission(_ body: () throws -> Void) throws {
    do { try body() } catch let error as ContainerError where error.meansNotAllowed {}
  }
}

extension ContainerError {
  /// Whether a call failed only because this user, or this file system, does not do such a thing.
  var meansNotAllowed: Bool {
    code == .permission
      || (cause as? Errno).map { $0 == .notSupported || $0 == .inappropriateIOCTLForDevice } ?? false
  }
}
