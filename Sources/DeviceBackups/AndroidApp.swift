import AppContainer
import ArchiveFile
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation

/// Where a member of an Android backup belongs: `apps/<package>/<token>/<path>`.
struct AndroidPlace {
  enum Kind: Equatable {
    /// A path of the app's container, or of one of its other directories, by the id of a group.
    case path(ContainerPath, group: String?)
    /// The app's program, and what describes the backup.
    case program
    /// The directory of a token.
    case root
    /// What has no place in a container.
    case other(String)
  }

  let package: String
  let kind: Kind

  /// The directories of the container by token.
  private static let folders = [
    "r": "", "f": "files", "db": "databases", "sp": "shared_prefs", "c": "cache", "nb": "no_backup",
  ]
  /// Directories that are not in `/data/data/<package>`: files on shared storage, expansion files, and the storage that
  /// can be read before the first unlock.
  private static let (external, expansion, protected) = ("external-files", "obb", "device-protected")

  /// Nil for what is not of an app.
  init?(_ member: ArchiveMember) throws {
    let path = try ContainerPath(bytes: member.name)
    let parts = path.components
    guard parts.count >= 2, parts[0].elementsEqual("apps".utf8) else { return nil }
    package = String(decoding: parts[1], as: UTF8.self)
    guard parts.count > 2 else {
      kind = .root
      return
    }
    let token = String(decoding: parts[2], as: UTF8.self)
    let rest = path.rebased(
      from: ContainerPath(unchecked: Array(parts[0..<3].joined(separator: [UInt8(ascii: "/")]))), to: .root)
    if token == "_manifest" || token == "a" || token == "_meta" {
      kind = .program
    } else if rest.isRoot, member.kind != .directory {
      kind = .other(token)
    } else if let folder = Self.folders[token] {
      let place = try ContainerPath(folder)
      // The root of an app's data has the directories of the other tokens too: the app's own paths alone are in it.
      kind = rest.isRoot && folder.isEmpty ? .root : .path(rest.rebased(from: .root, to: place), group: nil)
    } else if token.hasPrefix("d_"), let folder = Self.folders[String(token.dropFirst(2))] {
      kind = .path(rest.rebased(from: .root, to: try ContainerPath(folder)), group: Self.protected)
    } else if token == "ef" || token == "obb" {
      kind = .path(rest, group: token == "ef" ? Self.external : Self.expansion)
    } else {
      kind = .other(token)
    }
  }
}

/// What an Android backup has of one app.
package struct AndroidContents: Sendable, Codable, Equatable {
  package var package: String
  /// Files and the bytes of their contents, without the app's program.
  package var files = 0, bytes: UInt64 = 0
  /// Whether the backup has its program too.
  package var hasProgram = false
  var groups: Set<String> = []

  private enum CodingKeys: CodingKey { case package, files, bytes, hasProgram }
}

extension AndroidBackup {
  /// All apps in the backup, sorted. The whole file is read.
  package func list(_ key: AndroidBackupKey?, limit: ExpansionLimit) throws -> [AndroidContents] {
    var found: [String: AndroidContents] = [:]
    try members(key, limit) { member, _ in
      guard let place = try AndroidPlace(member) else { return }
      var contents = found[place.package] ?? AndroidContents(package: place.package)
      switch place.kind {
      case .program:
        contents.hasProgram =
          contents.hasProgram || member.name.split(separator: 0x2F)[2].elementsEqual("a".utf8)
      case .path(_, let group):
        if let group { contents.groups.insert(group) }
        fallthrough
      case .other:
        if case .file(let size) = member.kind {
          contents.files += 1
          contents.bytes += size
        }
      case .root: break
      }
      found[place.package] = contents
    }
    return found.values.sorted { $0.package < $1.package }
  }
}

/// One app in an Android backup.
package struct AndroidApp: ImportedApp {
  package let app: String
  package let groups: [String]
  package let source: String
  package var layout: ContainerLayout { .android }
  private let backup: AndroidBackup
  private let key: AndroidBackupKey?
  private let limit: ExpansionLimit

  /// Reads the whole backup once, so that a damaged one is refused before anything is written.
  ///
  /// - Throws: `DrydockError`: `missing` when the backup does not have the app, `damaged`, `truncated`, `limit`.
  package init(_ app: String, in backup: AndroidBackup, _ key: AndroidBackupKey?, limit: ExpansionLimit)
    throws
  {
    let all = try backup.list(key, limit: limit)
    guard let contents = all.first(where: { $0.package.isExactly(app) }) else {
      throw ImportReport.missing(app, among: all.map(\.package), backup.path)
    }
    (self.app, self.backup, self.key, self.limit) = (app, backup, key, limit)
    groups = contents.groups.sorted()
    source = backup.path
  }

  package func stage(into staged: StagedContainer) throws -> ImportReport {
    var target = ImportTarget(staged)
    try backup.members(key, limit) { member, read in
      guard let place = try AndroidPlace(member), place.package.isExactly(app) else { return }
      switch place.kind {
      case .root: break
      case .program: target.report.programFiles += member.kind == .directory ? 0 : 1
      case .other(let token):
        target.report.leaveOut(
          ContainerPath.printable(member.name),
          "a file of the kind `\(ContainerPath.printable(Array(token.utf8)))`, which is not in an app's directory"
        )
      case .path(let path, let group): try add(member, at: path, group, read, to: &target)
      }
    }
    return try target.finished()
  }

  private func add(
    _ member: ArchiveMember, at path: ContainerPath, _ group: String?,
    _ read: ((UInt64, UnsafeRawBufferPointer) throws -> Void) throws -> Void, to target: inout ImportTarget
  ) throws {
    var metadata = member.metadata
    (metadata.user, metadata.group) = (geteuid(), getegid())
    metadata.mode &= 0o1777
    metadata.attributes = metadata.attributes.map(\.named)
    switch member.kind {
    case .directory: try target.putDirectory(path, group, metadata)
    case .symbolicLink(let link): try target.putLink(path, group, to: link, metadata)
    case .hardLink:
      throw DrydockError(
        .unsafeName, "the backup has a hard link, which Android does not write", path: member.printableName)
    case .special: target.report.leaveOut(member.printableName, "a device, FIFO or socket")
    case .file(let size):
      try target.putFile(path, group, metadata, space: size) { file in
        var position: UInt64 = 0
        try read { offset, piece in
          try file.writeZeros(offset - position)
          try file.write(piece)
          position = offset + UInt64(piece.count)
        }
        try file.writeZeros(size - position)
        return (size, nil)
      }
    }
  }
}

extension StageFile {
  /// A hole of a sparse file.
  fileprivate func writeZeros(_ count: UInt64) throws {
    let zeros = [UInt8](repeating: 0, count: Int(min(count, 1 << 18)))
    var rest = count
    while rest > 0 {
      let piece = min(rest, UInt64(zeros.count))
      try write(Array(zeros.prefix(Int(piece))))
      rest -= piece
    }
  }
}
