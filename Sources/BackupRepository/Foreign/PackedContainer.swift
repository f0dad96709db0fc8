import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem

/// A container in one file: a zip or tar of its directory, or of an `.xcappdata` bundle.
///
/// It is only read, from a private directory that it is unpacked into and that goes afterwards.
package enum PackedContainer {
  /// Whether a file is packed in a way that ``with(_:limit:_:)`` unpacks, as its first bytes tell.
  package static func isOne(_ path: String) -> Bool { PackedFile.isPacked(path) }

  /// Whether a file begins as an archive of Drydock's does, whole or not.
  package static func isArchive(_ path: String) -> Bool {
    struct Seen: Error { var isHeader: Bool }
    do {
      try PackedFile(path: path)?.members(limit: .standard) { member, _ in
        throw Seen(isHeader: member.name.elementsEqual(ArchiveHeader.memberName.utf8))
      }
      return false
    } catch {
      return (error as? Seen)?.isHeader ?? false
    }
  }

  /// Unpacks a file and runs a body with the path of the container in it. What killed runs left is removed by whoever
  /// looks at a container next.
  ///
  /// - Parameter limit: how large it may be when it is unpacked.
  /// - Throws: `DrydockError` for what is wrong with the file, `DrydockError`: `notAContainer` for an archive of
  ///   Drydock's and for what is none of the formats, `noSpace`; and what the body throws.
  package static func with<T>(
    _ path: String, limit: ExpansionLimit = .standard, _ body: (String) throws -> T
  ) throws -> T {
    guard let file = try PackedFile(path: path) else {
      throw DrydockError(
        .notAContainer, "not a zip, tar, tar.gz or tar.zst; give one of these, or a directory", path: path)
    }
    return try ScratchDirectory.withTemporary { scratch in
      let content: ContainerPath = "content"
      try scratch.createDirectory(content)
      let unpacking = Unpacking(into: try scratch.directory(content))
      do {
        try unpack(file, unpacking, limit)
      } catch var error as DrydockError {
        // Where it was unpacked tells nobody anything, but for the file system.
        error.path = error.path.map {
          path + ($0.hasPrefix(scratch.full(content)) ? $0.dropFirst(scratch.full(content).count) : "")
        }
        if error.code == .noSpace {
          error.message += "; it is unpacked below TMPDIR, which may be set to another place"
        }
        throw error
      }
      return try body(root(scratch, content, unpacking.hasRoot, stem(path)))
    }
  }

  private static func unpack(_ file: PackedFile, _ unpacking: Unpacking, _ limit: ExpansionLimit) throws {
    var isFirst = true
    try file.members(limit: limit) { member, read in
      if isFirst, member.name.elementsEqual(ArchiveHeader.memberName.utf8) { throw archiveError(file.path) }
      isFirst = false
      try unpacking.add(member, read)
    }
    try unpacking.finish()
  }

  private static func archiveError(_ path: String) -> DrydockError {
    DrydockError(
      .notAContainer,
      "this is an archive of drydock's and not a packed container; `drydock show` tells what is in it, and `drydock "
        + "restore` makes a container of it", path: path)
  }

  // MARK: The container in it

  /// What lies in a container's root: a lone directory of such a name is a part of one, and no container.
  private static let parts: Set<String> = [
    "Documents", "Library", "SystemData", "StoreKit", "GeoJSON", "tmp", "AppData", "files", "databases",
    "shared_prefs", "cache", "code_cache", "no_backup",
  ]

  /// The one directory in it; else all of it, in a directory that is named like the file.
  private static func root(
    _ scratch: Directory, _ content: ContainerPath, _ hasRoot: Bool, _ stem: String
  ) throws -> String {
    let unpacked = try scratch.directory(content)
    let names = try unpacked.names().filter { !$0.elementsEqual(".DS_Store".utf8) }
    guard !names.isEmpty else {
      throw DrydockError(.notAContainer, "it is empty; a packed container has an app's data", path: stem)
    }
    if !hasRoot, names.count == 1, let name = names.first,
      !parts.contains(String(decoding: name, as: UTF8.self)),
      try unpacked.status(ContainerPath(name: name))?.type == .directory
    {
      return unpacked.full(ContainerPath(name: name))
    }
    let isBundle =
      try unpacked.status("AppData")?.type == .directory && unpacked.status("AppDataInfo.plist") != nil
    let named = try ContainerPath(stem + (isBundle && !stem.hasSuffix(bundleSuffix) ? bundleSuffix : ""))
    // Apart from what else is in the scratch directory: a container has no neighbours here.
    let place: ContainerPath = "named"
    try scratch.createDirectory(place)
    let folder = try scratch.directory(place)
    let mode = try unpacked.status().mode
    // A directory that its owner may not write to cannot be moved to another one.
    if mode & 0o200 == 0 { try scratch.setMode(mode | 0o200, of: content) }
    try scratch.rename(content, in: folder, to: named)
    if mode & 0o200 == 0 { try folder.setMode(mode, of: named) }
    return folder.full(named)
  }

  private static let bundleSuffix = ".xcappdata"
  private static let suffixes = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"]

  /// The file's name without what tells the format.
  private static func stem(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    let suffix = suffixes.first { name.lowercased().hasSuffix($0) } ?? ""
    let stem = String(name.dropLast(suffix.count))
    return stem.isEmpty || stem == "." || stem == ".." ? "container" : stem
  }
}
