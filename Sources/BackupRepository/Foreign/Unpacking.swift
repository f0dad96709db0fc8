import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// Puts the members of somebody else's archive into a directory: nothing outside of it can be touched, as every path is
/// opened below it and no link is followed.
final class Unpacking {
  /// Whether the archive has an entry for the root itself.
  private(set) var hasRoot = false
  private let root: Directory
  /// A directory's own mode and time follow at the end, when it is filled.
  private var directories: [ContainerPath: (mode: UInt16, modified: Int64)] = [:]
  /// Files that may be the attributes of others.
  private var doubles: [ContainerPath] = []

  private static let zipFolder = ContainerPath(name: AppleDouble.zipFolder)

  init(into root: Directory) { self.root = root }

  /// Adds a member.
  ///
  /// - Throws: `DrydockError`, and what reading it throws.
  func add(
    _ member: ArchiveMember, _ read: ((UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void
  ) throws {
    let path = try ContainerPath(bytes: member.name)
    if path.isRoot { hasRoot = true } else { try root.createDirectories(path.parent, mode: 0o755) }
    switch member.kind {
    case .directory:
      try root.createDirectories(path)
      var open = metadata(member)
      open.mode |= 0o700
      try apply(open, path, includingTime: false)
      directories[path] = (member.mode, member.modified)
    case .symbolicLink(let target):
      try root.createLink(path, target: target)
      var own = metadata(member)
      // Linux has none for links.
      own.attributes = []
      try apply(own, path)
    case .hardLink(let target):
      try root.link(ContainerPath(bytes: target), in: root, to: path)
    case .file(let size):
      try write(path, size, read)
      try apply(metadata(member), path)
      if path.name.starts(with: AppleDouble.prefix) && size <= UInt64(AppleDouble.sizeLimit) {
        doubles.append(path)
      }
    }
  }

  /// What an attribute says may keep a path out of a backup: a place that takes none is no place to unpack to.
  private func apply(_ metadata: FileMetadata, _ path: ContainerPath, includingTime: Bool = true) throws {
    do {
      try root.apply(metadata, to: path, includingTime: includingTime)
    } catch var error as DrydockError where error.cause as? Errno == .notSupported {
      error.message += "; set TMPDIR to a directory on a file system with extended attributes"
      throw error
    }
  }

  private func write(
    _ path: ContainerPath, _ size: UInt64,
    _ read: ((UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void
  ) throws {
    let file = try root.createFile(path)
    defer { try? file.close() }
    let telling = { (body: () throws -> Void) in
      do {
        try body()
      } catch let error as Errno {
        throw DrydockError.system("cannot unpack", self.root.full(path), error)
      }
    }
    try read { offset, piece in
      try telling { _ = try file.writeAll(toAbsoluteOffset: Int64(offset), piece) }
    }
    // A hole at the end is in no piece.
    try telling { try file.resize(to: Int64(clamping: size)) }
  }

  private func metadata(_ member: ArchiveMember) -> FileMetadata {
    FileMetadata(
      mode: member.mode, user: member.userID, group: member.groupID, modified: member.modified,
      attributes: member.attributes.map(attribute), isNoDump: member.isNoDump)
  }

  /// Names of macOS have no namespace, and Linux takes none without.
  private func attribute(_ attribute: ArchiveMember.Attribute) -> ExtendedAttribute {
    var name = String(decoding: attribute.name, as: UTF8.self)
    #if os(Linux)
      if !["user.", "system.", "security.", "trusted."].contains(where: name.hasPrefix) {
        name = "user." + name
      }
    #endif
    return ExtendedAttribute(name: name, value: attribute.value)
  }

  // MARK: The end

  /// Turns what macOS puts beside files into their attributes, and gives directories their own mode and time.
  func finish() throws {
    for path in doubles { try applyDouble(path) }
    try root.removeTree(Self.zipFolder)
    for path in directories.keys.sorted().reversed() {
      guard let own = directories[path], path != Self.zipFolder, !path.isInside(Self.zipFolder) else {
        continue
      }
      try root.setMode(own.mode, of: path)
      try root.setModified(own.modified, of: path)
    }
  }

  private func applyDouble(_ path: ContainerPath) throws {
    let isInZip = path.isInside(Self.zipFolder)
    guard let attributes = AppleDouble.attributes(in: try contents(path)) else { return }
    let parent = isInZip ? path.parent.rebased(from: Self.zipFolder, to: .root) : path.parent
    let target = parent.appending(name: Array(path.name.dropFirst(AppleDouble.prefix.count)))
    if let status = try root.status(target), status.type == .file || status.type == .directory {
      // One who may not write to a path may not set its attributes either.
      try root.setMode(status.mode | 0o200, of: target)
      for attribute in attributes.map(attribute) where try root.attribute(attribute.name, of: target) == nil {
        try root.setAttribute(attribute, of: target)
      }
      try root.setMode(status.mode, of: target)
    }
    try root.removeFile(path)
  }

  private func contents(_ path: ContainerPath) throws -> [UInt8] {
    if let mode = try root.status(path)?.mode, mode & 0o400 == 0 { try root.setMode(mode | 0o400, of: path) }
    return try root.contents(path, limit: AppleDouble.sizeLimit)
  }
}
