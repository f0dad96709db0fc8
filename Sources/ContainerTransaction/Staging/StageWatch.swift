import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem

/// Finds which paths the parts of a run change, one after the other: their type, content, mode, owner or attributes. Times
/// do not count, nor does it count that something was staged which is what it was.
///
/// It does not hold the stage, and with it the locks, so that it may outlive the transaction.
package struct StageWatch {
  private var known: [ContainerPath: SHA256.Digest?] = [:]

  /// A watch that starts with what is staged now.
  package init(_ stage: StagedContainer) throws {
    for path in stage.overlay.nodes.keys { known[path] = .some(try stage.print(of: path)) }
  }

  /// The paths that have changed since the last call, sorted; a database is one path, without its sidecars.
  ///
  /// - Parameter stage: the one that the watch began with.
  package mutating func changes(on stage: StagedContainer) throws -> [ContainerPath] {
    var changed: [ContainerPath] = []
    for path in Set(known.keys).union(stage.overlay.nodes.keys) {
      let before = try known[path] ?? stage.livePrint(of: path)
      let now = try stage.print(of: path)
      if before != now { changed.append(path) }
      known[path] = .some(now)
    }
    return changed.sorted()
  }
}

extension StagedContainer {
  /// A fingerprint of a path as it will be; nil where nothing will be.
  fileprivate func print(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let metadata = try metadata(of: path), let type = try status(of: path)?.type,
      try !isSidecar(path)
    else { return nil }
    switch type {
    case .directory, .other: return try metadata.print(type, [])
    case .symbolicLink: return try metadata.print(type, linkTarget(path))
    case .file: return try metadata.print(type, Array(content(of: path).hex.utf8))
    }
  }

  private func content(of path: ContainerPath) throws -> SHA256.Digest {
    if try isDatabase(path) { return try databaseOrFileDigest(path) }
    let place = place(of: path)
    return try ContentDigest.of(place.path, in: place.directory, isDatabase: false)
  }

  /// A fingerprint of a path of the live container; nil where nothing is.
  fileprivate func livePrint(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let metadata = try live.metadata(path), let status = try live.status(path),
      try !live.isSidecar(path)
    else { return nil }
    switch status.type {
    case .directory, .other: return try metadata.print(status.type, [])
    case .symbolicLink: return try metadata.print(status.type, live.linkTarget(path))
    case .file: return try metadata.print(status.type, Array(liveContent(of: path, status).hex.utf8))
    }
  }

  private func liveContent(of path: ContainerPath, _ status: FileStatus) throws -> SHA256.Digest {
    let isDatabase = try live.databaseUnit(path, status: status) != nil
    if isDatabase {
      do {
        defer { forgetCapture(of: path) }
        return try ContentDigest.of(liveCapture(of: path), in: stage, isDatabase: true)
      } catch let error as DrydockError where error.code == .malformed {
        // One that SQLite cannot open is compared by its bytes.
      }
    }
    return try ContentDigest.of(path, in: live, isDatabase: isDatabase)
  }
}

extension FileMetadata {
  /// A fingerprint of something with this metadata, except its time.
  fileprivate func print(_ type: FileType, _ content: [UInt8]) throws -> SHA256.Digest {
    // Names and values of attributes have their lengths before them, so that no two give the same bytes.
    var bytes = Array("\(type.rawValue) \(mode) \(user) \(group) \(isNoDump)\n".utf8)
    for attribute in attributes {
      bytes += Array("\(attribute.name.utf8.count) \(attribute.value.count)\n\(attribute.name)".utf8)
      bytes += attribute.value
    }
    return try SHA256.hash(bytes + [0] + content)
  }
}
