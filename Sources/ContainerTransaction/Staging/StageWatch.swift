import Cryptography
import DrydockErrors
import FileSystem

/// Finds which paths the parts of a run change, one after the other: their type, content, mode, owner or attributes. Times
/// do not count, nor does staging an unchanged path.
///
/// It does not hold the stage, and with it the locks, so that it may outlive the transaction.
package struct StageWatch {
  private var known: [ContainerPath: SHA256.Digest?] = [:]

  package init(_ stage: StagedContainer) throws {
    for path in stage.stage.overlay.paths { known[path] = .some(try stage.fingerprint(of: path)) }
  }

  /// The paths that have changed since the last call, sorted; a database is one path, without its sidecars.
  ///
  /// - Parameter stage: the one that the watch began with.
  package mutating func changes(on stage: StagedContainer) throws -> [ContainerPath] {
    var changed: [ContainerPath] = []
    for path in Set(known.keys).union(stage.stage.overlay.paths) {
      let before = try known[path] ?? stage.liveContainer.fingerprint(of: path)
      let now = try stage.fingerprint(of: path)
      if before != now { changed.append(path) }
      known[path] = .some(now)
      stage.liveContainer.removeDatabaseFile(of: path)
    }
    return changed.sorted()
  }
}

extension ContainerContent {
  /// A fingerprint of a path, without its time; nil where nothing is, and for a sidecar.
  fileprivate func fingerprint(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let metadata = try metadata(of: path), let type = try status(of: path)?.type, try !isSidecar(path)
    else { return nil }
    // Names and values of attributes have their lengths before them, so that no two give the same bytes.
    var bytes = Array(
      "\(type.rawValue) \(metadata.mode) \(metadata.user) \(metadata.group) \(metadata.isNoDump)\n".utf8)
    for attribute in metadata.attributes {
      bytes += Array("\(attribute.name.utf8.count) \(attribute.value.count)\n\(attribute.name)".utf8)
      bytes += attribute.value
    }
    return try SHA256.hash(bytes + [0] + (contentDigest(of: path)?.bytes ?? []))
  }
}
