import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// A container in one file: a zip or tar of its directory, or of an `.xcappdata` bundle.
///
/// It is read only, from a private directory that it is unpacked into, which is removed afterwards. Nothing outside
/// of it can be touched: every path is opened below it, and no link is followed.
package final class ForeignContainer {
  private let root: Directory
  /// Whether the archive has an entry for the root itself.
  private var hasRoot = false
  /// A directory gets its mode and time at the end, when it is filled.
  private var directories: [ContainerPath: (mode: UInt16, modified: Int64)] = [:]
  /// Files that may hold the attributes of others.
  private var doubles: [ContainerPath] = []
  /// Those of them whose attributes this file system could not hold, each beside the file that they belong to.
  private var lost: [ContainerPath] = []

  private init(into root: Directory) { self.root = root }

  /// Whether ``with(_:limit:_:)`` unpacks a file, by its first bytes.
  package static func isForeignArchive(_ path: String) -> Bool { (try? ForeignArchive(path: path)) != nil }

  /// Whether a file begins like an archive of Drydock, whole or not.
  package static func isArchive(_ path: String) -> Bool {
    var isHeader = false
    try? ForeignArchive(path: path)?.members(limit: .standard) { member, _ in
      isHeader = member.name.elementsEqual(Archive.Header.memberName.utf8)
      // The others are not read.
      throw CancellationError()
    }
    return isHeader
  }

  /// Unpacks a file and runs a body with the path of the container in it, and the files whose attributes this
  /// file system could not hold. The next command removes what killed runs left.
  ///
  /// - Parameter limit: how large it may be when it is unpacked.
  /// - Throws: `DrydockError`: what is wrong with the file; `notAContainer` for an archive of Drydock and for any other
  ///   format; `noSpace`; and what the body throws.
  package static func with<T>(
    _ path: String, limit: ExpansionLimit = .standard,
    _ body: (_ place: String, _ lost: [ContainerPath]) throws -> T
  ) throws -> T {
    guard let file = try ForeignArchive(path: path) else {
      throw DrydockError(
        .notAContainer, "not a zip, tar, tar.gz or tar.zst; give one of these, or a directory", path: path)
    }
    let temporary = try ScratchDirectory.temporary()
    let scratch = temporary.directory
    let content: ContainerPath = "content"
    try scratch.createDirectory(content)
    let container = ForeignContainer(into: try scratch.directory(content))
    do {
      try container.unpack(file, limit)
    } catch var error as DrydockError {
      // The private directory's path says nothing to the user.
      error.path = error.path.map {
        path + ($0.hasPrefix(scratch.full(content)) ? $0.dropFirst(scratch.full(content).count) : "")
      }
      if error.code == .noSpace {
        error.message += "; it is unpacked below TMPDIR: set it to a directory with more space"
      }
      throw error
    }
    let (place, top) = try container.place(in: scratch, content, stem(path))
    return try body(
      place, container.lost.filter { $0.isInside(top) }.map { $0.rebased(from: top, to: .root) })
  }

  private func unpack(_ file: ForeignArchive, _ limit: ExpansionLimit) throws {
    var isFirst = true
    try file.members(limit: limit) { member, read in
      if isFirst, member.name.elementsEqual(Archive.Header.memberName.utf8) {
        throw DrydockError(
          .notAContainer, "an archive of drydock, not a foreign archive", path: file.path)
      }
      isFirst = false
      try add(member, read)
    }
    try finish()
  }

  /// Names in a container's root: a lone directory with such a name is a part of a container.
  private static let parts: Set<String> = [
    "Documents", "Library", "SystemData", "StoreKit", "GeoJSON", "tmp", "AppData", "files", "databases",
    "shared_prefs", "cache", "code_cache", "no_backup",
  ]

  /// The one directory in it, and its path there; else all of it, in a directory that is named like the file.
  private func place(
    in scratch: Directory, _ content: ContainerPath, _ stem: String
  ) throws -> (String, ContainerPath) {
    let names = try root.names().filter { !$0.elementsEqual(".DS_Store".utf8) }
    guard !names.isEmpty else {
      throw DrydockError(.notAContainer, "an empty archive; a container has an app's data", path: stem)
    }
    if !hasRoot, names.count == 1, let name = names.first,
      !Self.parts.contains(String(decoding: name, as: UTF8.self)),
      try root.status(ContainerPath(name: name))?.type == .directory
    {
      return (root.full(ContainerPath(name: name)), ContainerPath(name: name))
    }
    let isBundle =
      try root.status("AppData")?.type == .directory && root.status("AppDataInfo.plist") != nil
    let named = try ContainerPath(
      stem + (isBundle && !stem.hasSuffix(Self.bundleSuffix) ? Self.bundleSuffix : ""))
    // A container must have no neighbours.
    let place: ContainerPath = "named"
    try scratch.createDirectory(place)
    let folder = try scratch.directory(place)
    let mode = try root.status().mode
    // A directory that is not writable cannot be moved to another one.
    if mode & 0o200 == 0 { try scratch.setMode(mode | 0o200, of: content) }
    try scratch.rename(content, in: folder, to: named)
    if mode & 0o200 == 0 { try folder.setMode(mode, of: named) }
    return (folder.full(named), .root)
  }

  private static let bundleSuffix = ".xcappdata"
  private static let suffixes = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"]

  /// The file's name without its format's suffix.
  private static func stem(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    let suffix = suffixes.first { name.lowercased().hasSuffix($0) } ?? ""
    let stem = String(name.dropLast(suffix.count))
    return stem.isEmpty || stem == "." || stem == ".." ? "container" : stem
  }

  // MARK: Unpacking

  private static let zipFolder = ContainerPath(name: AppleDouble.zipFolder)

  private func add(
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
      directories[path] = (member.metadata.mode, member.metadata.modified)
    case .symbolicLink(let target):
      try root.createLink(path, target: target)
      var own = metadata(member)
      // Linux has no attributes of links.
      own.attributes = []
      try apply(own, path)
    case .hardLink(let target):
      try root.link(ContainerPath(bytes: target), in: root, to: path)
    // It is skipped and named as in a directory.
    case .special: try root.createPipe(path)
    case .file(let size):
      try write(path, size, read)
      try apply(metadata(member), path)
      if path.name.starts(with: AppleDouble.prefix) {
        if size <= UInt64(AppleDouble.sizeLimit) {
          doubles.append(path)
        } else if path.isInside(Self.zipFolder) {
          lost.append(path.rebased(from: Self.zipFolder, to: .root))
        }
      }
    }
  }

  /// An attribute may exclude a path from backups: a file system without attributes is refused.
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
    try read { offset, piece in
      _ = try DrydockError.translating("cannot unpack", root.full(path)) {
        try file.writeAll(toAbsoluteOffset: Int64(offset), piece)
      }
    }
    // A hole at the end is in no piece.
    try DrydockError.translating("cannot unpack", root.full(path)) {
      try file.resize(to: Int64(clamping: size))
    }
  }

  private func metadata(_ member: ArchiveMember) -> FileMetadata {
    var metadata = member.metadata
    metadata.attributes = metadata.attributes.map(\.named)
    return metadata
  }

  /// Turns macOS's files of attributes into attributes, and gives directories their mode and time.
  private func finish() throws {
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

  /// Why a file system does not take an attribute: many hold a few kilobytes for a file, and none on Linux more than 64.
  private static let tooLarge: [Errno?] = [.argListTooLong, .noSpace, .outOfRange]

  private func applyDouble(_ path: ContainerPath) throws {
    guard let attributes = AppleDouble.attributes(in: try contents(path)) else { return }
    let double = path.isInside(Self.zipFolder) ? path.rebased(from: Self.zipFolder, to: .root) : path
    let target = double.parent.appending(name: Array(path.name.dropFirst(AppleDouble.prefix.count)))
    if let status = try root.status(target), status.type == .file || status.type == .directory {
      // Attributes can be set on writable paths only.
      try root.setMode(status.mode | 0o200, of: target)
      // The smallest first, as exclusion flags are.
      for attribute in attributes.map(\.named).sorted(by: { $0.value.count < $1.value.count })
      where try root.attribute(attribute.name, of: target) == nil {
        do {
          try root.setAttribute(attribute, of: target)
        } catch let error as DrydockError where Self.tooLarge.contains(error.cause as? Errno) {
          if lost.last != double { lost.append(double) }
        }
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
