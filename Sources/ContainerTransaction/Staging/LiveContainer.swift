import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// The content of a container in one state: as it is (``LiveContainer``), or as it will be (``StagedContainer``).
package protocol ContainerContent {
  func status(of path: ContainerPath) throws -> FileStatus?
  func metadata(of path: ContainerPath) throws -> FileMetadata?
  /// Whether a path is the main file of a database.
  func isDatabase(_ path: ContainerPath) throws -> Bool
  /// Where the bytes of a file or link are: the live container or the stage.
  func location(of path: ContainerPath) -> (directory: Directory, path: ContainerPath)
  /// A file of the stage with the captured content of a database.
  ///
  /// - Throws: ``DrydockError`` `malformed` when SQLite cannot open it.
  func databaseFile(of path: ContainerPath) throws -> ContainerPath
  /// The digest of a database's captured content (``ContentHash``), without a copy where none is needed.
  func databaseDigest(_ path: ContainerPath) throws -> SHA256.Digest
}

extension ContainerContent {
  package func linkTarget(_ path: ContainerPath) throws -> [UInt8] {
    let location = location(of: path)
    return try location.directory.linkTarget(location.path)
  }

  package func isSidecar(_ path: ContainerPath) throws -> Bool {
    guard let main = DatabaseUnit.main(ofSidecar: path) else { return false }
    return try isDatabase(main)
  }

  /// The digest of one path: of a file's content, a database's captured content, or a link's target; nil when nothing is
  /// there.
  func contentDigest(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let status = try status(of: path) else { return nil }
    switch status.type {
    case .symbolicLink: return try SHA256.hash(linkTarget(path))
    case .file: return try isDatabase(path) ? databaseOrFileDigest(path) : fileDigest(path)
    case .directory, .other: return try status.type.digest
    }
  }

  func fileDigest(_ path: ContainerPath, isDatabase: Bool = false) throws -> SHA256.Digest {
    let location = location(of: path)
    return try ContentHash.of(location.path, in: location.directory, isDatabase: isDatabase)
  }

  /// The digest of a database's captured content; of one that SQLite cannot open, of its bytes. Any other failure, such
  /// as a full disk, says nothing about the content: it is thrown.
  func databaseOrFileDigest(_ path: ContainerPath) throws -> SHA256.Digest {
    do {
      return try databaseDigest(path)
    } catch let error as DrydockError where error.code == .malformed {
      return try fileDigest(path, isDatabase: true)
    }
  }
}

/// The live container that a stage is based on: it is read, never written.
package final class LiveContainer: ContainerContent {
  /// The root, open and locked.
  package let root: Directory
  /// SQLite's locks on the databases, held until after the commit; none in a dry run.
  let locks: [ContainerPath: DatabaseLock]
  private let stage: Stage
  /// Seconds to wait for a database that is locked.
  let busyTimeout: Double
  /// Captured copies of databases: files of the stage, by path.
  private var captures: [ContainerPath: ContainerPath] = [:]
  /// In the planning phase: each path as it was when it was first read.
  private var reads: [ContainerPath: FileStatus?]?

  init(_ root: Directory, locks: [ContainerPath: DatabaseLock], stage: Stage, busyTimeout: Double) {
    (self.root, self.locks, self.stage, self.busyTimeout) = (root, locks, stage, busyTimeout)
  }

  package func status(of path: ContainerPath) throws -> FileStatus? {
    let status = try root.status(path)
    // The state directory may come into the root, and moves its time.
    if reads != nil, !path.isRoot, reads?[path] == nil { reads?[path] = .some(status) }
    return status
  }

  package func metadata(of path: ContainerPath) throws -> FileMetadata? { try root.metadata(path) }

  package func isDatabase(_ path: ContainerPath) throws -> Bool { try databaseUnit(path) != nil }

  func databaseUnit(_ path: ContainerPath) throws -> DatabaseUnit? {
    try root.status(path).flatMap { try root.databaseUnit(path, status: $0) }
  }

  package func location(of path: ContainerPath) -> (directory: Directory, path: ContainerPath) {
    (root, path)
  }

  package func databaseFile(of path: ContainerPath) throws -> ContainerPath {
    if let captured = captures[path] { return captured }
    let captured = try copyDatabase(path)
    captures[path] = captured
    return captured
  }

  /// A captured copy that the caller may change.
  func takeDatabaseFile(of path: ContainerPath) throws -> ContainerPath {
    try captures.removeValue(forKey: path) ?? copyDatabase(path)
  }

  /// Removes a captured copy that is no longer needed.
  func removeDatabaseFile(of path: ContainerPath) {
    guard let captured = captures.removeValue(forKey: path) else { return }
    try? stage.directory.removeDatabase(captured)
  }

  package func databaseDigest(_ path: ContainerPath) throws -> SHA256.Digest {
    if let pages = try pagesInPlace(path) {
      let digest = try ContentHash.of(pages)
      if try pages.isUnchanged() { return digest }
    }
    return try ContentHash.of(databaseFile(of: path), in: stage.directory, isDatabase: true)
  }

  /// Whether the pages of a database have these hashes. It is read from its end, where most is new, to the first difference.
  ///
  /// - Parameter pages: the hashes of pages of a size; nil when they are not known.
  /// - Returns: nil when that is to be found out by its digest.
  func hasPages(_ path: ContainerPath, _ pages: (Int) throws -> BlockHashes?) throws -> Bool? {
    guard let own = try pagesInPlace(path), let size = own.pageSize, let wanted = try pages(size) else {
      return nil
    }
    if own.size / UInt64(size) != wanted.count { return false }
    for start in stride(from: 0, to: wanted.count, by: Self.comparedPages).reversed() {
      let end = min(start + Self.comparedPages, wanted.count)
      var hasher = try BlockHasher(blockSize: size, isDatabaseStart: start == 0)
      try readInPieces(UInt64(start * size)..<UInt64(end * size), read: own.read) { try hasher.update($0) }
      let found = hasher.blocks
      guard found.count == end - start, (start..<end).allSatisfy({ found[$0 - start] == wanted[$0] }) else {
        return false
      }
    }
    return try own.isUnchanged() ? true : nil
  }

  private static let comparedPages = 1024

  /// The pages of a database that can be read where it is; else nil, and there is a captured copy of it.
  private func pagesInPlace(_ path: ContainerPath) throws -> DatabasePages? {
    if captures[path] != nil { return nil }
    let name = stage.newName()
    if case .inPlace(let pages) = try capture(path, as: name, requiresStable: false) { return pages }
    captures[path] = name
    return nil
  }

  /// A new consistent copy of a database in the stage.
  private func copyDatabase(_ path: ContainerPath) throws -> ContainerPath {
    let name = stage.newName()
    let unit = try databaseUnit(path)
    // SQLite takes an empty file for a database with nothing in it.
    if unit == nil, let status = try root.status(path), status.type == .file, status.size == 0 {
      try stage.directory.createFile(name).close()
      return name
    }
    let parts = [path] + (unit?.sidecars ?? [])
    try stage.requireSpace(parts.map { try root.status($0)?.space ?? 0 }.reduce(0, +), for: path)
    for requiresStable in [false, true] {
      guard case .inPlace(let pages) = try capture(path, as: name, requiresStable: requiresStable) else {
        return name
      }
      if try stage.write(pages, as: name) { return name }
      // A dry run's lock keeps no app out that opens the database and writes it through a log.
      try stage.directory.removeFile(name)
    }
    throw DrydockError(
      .inUse, "the database changed during every read; close the app that uses it", path: path.description)
  }

  /// A database's image: in place, or a copy of that name in the stage.
  private func capture(
    _ path: ContainerPath, as name: ContainerPath, requiresStable: Bool
  ) throws -> DatabaseImage {
    guard let unit = try databaseUnit(path) else {
      throw DrydockError(.missing, "not a database", path: path.description)
    }
    if reads != nil {
      // What a main file holds depends on its logs too.
      for part in ["", "-wal", "-journal"].map(path.withSuffix) { _ = try status(of: part) }
    }
    let image = try root.capture(
      unit, into: stage.directory, as: name, busyTimeout: busyTimeout, held: locks[path],
      requiresStable: requiresStable)
    if case .raw(let reason) = image { throw DrydockError.unreadableDatabase(path, reason) }
    return image
  }
}

extension DrydockError {
  static func unreadableDatabase(_ path: ContainerPath, _ reason: String) -> DrydockError {
    DrydockError(
      .malformed,
      "SQLite cannot open the database (\(reason)): it is encrypted or corrupt, so no "
        + "migration can change it", path: path.description)
  }
}

/// The planning phase: what it reads must not have changed when the change begins.
extension LiveContainer {
  func beginPlanning() { reads = [:] }

  /// - Throws: ``DrydockError`` with code `changedMeanwhile` when a path that was read since then has changed.
  func requireUnchangedReads() throws {
    // On an overlay a file that is opened to be locked gets another inode, and its directory another size.
    let isOverlay = root.isOverlay()
    for (path, seen) in reads ?? [:] {
      let now = try root.status(path)
      if isOverlay, now?.type == seen?.type, now?.type == .directory || now?.size == seen?.size,
        now?.modified == seen?.modified
      {
        continue
      }
      if now == nil && seen == nil { continue }
      if !isOverlay, let now, let seen, now.isSame(as: seen, byChangeTime: true) { continue }
      throw DrydockError.changed(path, in: root.path)
    }
  }
}
