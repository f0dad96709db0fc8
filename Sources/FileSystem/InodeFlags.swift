import CPlatform
import DrydockErrors
import SystemPackage

/// What `chattr` sets on a file or directory, the project that its blocks are counted for, and a file system's own hints.
///
/// Not among them: `nodump`, which is part of ``FileMetadata``; immutable and append-only, which nothing replaces
/// (``FileStatus/isFixed``); and what the file system sets by itself (extents, an index, content in the inode).
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

  /// Whether what is made in a directory with these is of its project, and what comes into it must be.
  package var hasProjectInheritance: Bool { flags & Self.projectInheritance != 0 }

  /// Whether what has other flags may be moved into a directory with these.
  package func accepts(_ other: InodeFlags?) -> Bool {
    !hasProjectInheritance || other?.project == project
  }

  /// What is made in a directory with these gets them from it: as ext4 hands them down.
  package func inherited(by type: FileType) -> InodeFlags {
    var own = self
    own.flags &= ~Self.spread
    if type != .directory { own.flags &= ~(Self.synchronousDirectory | Self.projectInheritance) }
    if !hasProjectInheritance { own.project = 0 }
    (own.extended, own.extentSize, own.copyExtentSize) = (0, 0, 0)
    return own
  }

  /// These, but of the project that a directory with others hands down: nothing else may come into it.
  package func moved(into directory: InodeFlags?) -> InodeFlags {
    var own = self
    if let directory, directory.hasProjectInheritance { own.project = directory.project }
    return own
  }

  /// These without the inheritance of a project.
  package var withoutProjectInheritance: InodeFlags {
    var own = self
    own.flags &= ~Self.projectInheritance
    return own
  }
}

extension Directory {
  /// The directory's own flags; nil where the file system has none.
  package func flags() -> InodeFlags? {
    var flags = platform_flags()
    return platform_get_flags(descriptor.rawValue, &flags) == 0 ? InodeFlags(flags) : nil
  }

  /// Gives the directory flags, as far as this user and the file system can.
  ///
  /// - Returns: whether it has just these now.
  package func setFlags(_ flags: InodeFlags) -> Bool { descriptor.setFlags(flags) }

  /// The flags of a file or directory below; nil where the file system has none, or the path may not be read.
  package func flags(of path: ContainerPath) throws -> InodeFlags? {
    if isRoot(path) { return try directory(path).flags() }
    guard let file = try openForFlags(path) else { return nil }
    defer { try? file.close() }
    var flags = platform_flags()
    return platform_get_flags(file.rawValue, &flags) == 0 ? InodeFlags(flags) : nil
  }

  /// Gives a file or directory below flags, as far as this user and the file system can.
  ///
  /// - Returns: whether it has just these now.
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

extension Directory {
  /// The number of names that a file may have on this file system; a small one where that is not known.
  package var linkLimit: UInt64 { UInt64(platform_link_limit(descriptor.rawValue)) }
}

extension FileDescriptor {
  fileprivate func setFlags(_ flags: InodeFlags) -> Bool {
    var (now, wanted) = (platform_flags(), flags.raw)
    guard platform_get_flags(rawValue, &now) == 0 else { return false }
    if InodeFlags(now) == flags { return true }
    guard platform_set_flags(rawValue, &wanted) == 0, platform_get_flags(rawValue, &now) == 0 else {
      return false
    }
    return InodeFlags(now) == flags
  }
}
