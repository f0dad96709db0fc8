import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage
import Foundation
import GRDB

/// A connection to a staged database for consecutive changes. Its owner closes it before anything else looks at the
/// database.
package final class StagedConnection {
  fileprivate var open: (queue: DatabaseQueue, name: ContainerPath, isLogged: Bool)?
  /// What the last change left in the database; nil when the connection was opened since.
  package var left: Any?

  package init() {}

  fileprivate func take() -> (queue: DatabaseQueue, name: ContainerPath, isLogged: Bool)? {
    defer { (open, left) = (nil, nil) }
    return open
  }
}

extension StagedContainer {
  /// The main files of the live databases that are locked, open until the transaction ends.
  package var lockedDatabases: [ContainerPath: FileDescriptor] { liveContainer.locks.mapValues(\.file) }

  /// See ``LiveContainer/hasPages(_:_:)``.
  package func hasPages(_ path: ContainerPath, _ pages: (Int) throws -> BlockHashes?) throws -> Bool? {
    try liveContainer.hasPages(path, pages)
  }

  package func isDatabase(_ path: ContainerPath) throws -> Bool { try databaseUnit(at: path) != nil }

  /// The database whose main file a path is, with what belongs to it now.
  func databaseUnit(at path: ContainerPath) throws -> DatabaseUnit? {
    let location = location(of: path)
    guard let status = try status(of: path),
      let unit = try location.directory.databaseUnit(
        location.path, status: status, isNamed: live.databases.contains(path))
    else { return nil }
    // A staged database has no sidecars; the live external data falls through unless it was staged itself.
    let sidecars = location.directory === live ? unit.sidecars : []
    let external = DatabaseUnit.externalDataPath(of: path)
    let hasExternal = try self.status(of: external)?.type == .directory
    return DatabaseUnit(main: path, sidecars: sidecars, externalData: hasExternal ? external : nil)
  }

  /// Where a database named in `drydock.yaml` is; nil when none of its places exists.
  ///
  /// - Throws: ``DrydockError`` `ambiguous` when it is in two places: only the user can know which one
  ///   holds the user's data.
  package func databasePlace(_ name: String) throws -> ContainerPath? {
    let existing = try container.databasePlaces(name).filter { try status(of: $0) != nil }
    guard existing.count < 2 else {
      throw DrydockError(
        .ambiguous,
        "the database \(name) exists in \(existing.count) places: "
          + existing.map(\.description).joined(separator: " and ")
          + "; compare them, remove or rename the one that is not the user's, and run it again",
        path: existing.last?.description)
    }
    return existing.first
  }

  /// Reads rows as a step does, which depends on the order of indexes.
  package func readRows<T>(at path: ContainerPath, _ body: (Database) throws -> T) throws -> T {
    let name = try databaseFile(of: path)
    return try readDatabase(at: path) { db in
      try requireDeclaredOrder(db, in: name, of: path)
      return try body(db)
    }
  }

  private func requireDeclaredOrder(_ db: Database, in name: ContainerPath, of path: ContainerPath) throws {
    guard !orderedDatabases.contains(name) else { return }
    try container.configuration.sql.requireDeclaredOrder(db, of: path.description)
    orderedDatabases.insert(name)
  }

  /// Reads a database: a captured copy of a live one, which is never opened itself.
  package func readDatabase<T>(at path: ContainerPath, _ body: (Database) throws -> T) throws -> T {
    let name = try databaseFile(of: path)
    // A second connection would find the database locked by the first.
    if let open = openDatabases[name] { return try body(open) }
    return try translatingDiskErrors(path) {
      let queue = try DatabaseQueue.alone(with: stage.directory.full(name)) {
        [settings = container.configuration] in
        $0.prepareDatabase { settings.sql.define(in: $0) }
      }
      defer { try? queue.close() }
      return try queue.read { db in
        openDatabases[name] = db
        defer { openDatabases[name] = nil }
        return try body(db)
      }
    }
  }

  /// Removes the captured copy of a database that is not read again.
  package func releaseDatabase(at path: ContainerPath) { liveContainer.removeDatabaseFile(of: path) }

  /// A full disk is reported with the place that is full, which is not a path of the container.
  private func translatingDiskErrors<T>(_ path: ContainerPath, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DatabaseError where error.isAboutTheDisk {
      guard error.resultCode == .SQLITE_FULL else {
        throw DrydockError.database("cannot work on the staged copy of \(path)", stage.directory.path, error)
      }
      // SQLite sorts in the directory for temporary files.
      let temporary = try? Directory(ProcessInfo.processInfo.environment["TMPDIR"] ?? "/var/tmp")
      let full = [stage.directory, temporary].compactMap { $0 }.min {
        $0.freeSpace() ?? 0 < $1.freeSpace() ?? 0
      }
      throw DrydockError(
        .noSpace, "no space is left here to stage the database \(path); free some space and run it again",
        path: full?.path ?? stage.directory.path, cause: error)
    }
  }

  /// The number of a database's tables, SQLite's own not counted.
  package func tableCount(of path: ContainerPath) throws -> Int {
    try readDatabase(at: path) { db in
      try Int.fetchOne(
        db,
        sql:
          "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
      ) ?? 0
    }
  }

  /// Changes a database: its captured copy becomes the staged one. Foreign keys are off and no transaction is
  /// open when the body starts. The stage is discarded on any failure, so nothing waits for the disk.
  ///
  /// - Parameter keepsJournal: false for a body that throws whatever fails in it, and takes nothing back by itself: then
  ///   SQLite does not have to write down what it overwrites, and the database cannot be used after a failure.
  /// - Parameter shared: is used if it is open for the same database, and stays open for the next change: only for bodies
  ///   that leave nothing in the connection, such as temporary tables, and with the same `keepsJournal`.
  package func writeDatabase<T>(
    at path: ContainerPath, keepsJournal: Bool = true, on shared: StagedConnection? = nil,
    _ body: (Database) throws -> T
  ) throws -> T {
    let name = try writableDatabase(at: path)
    let connection = shared ?? StagedConnection()
    do {
      let result: T = try translatingDiskErrors(path) {
        let queue = try connect(connection, to: name, keepsJournal: keepsJournal, isShared: shared != nil)
        return try queue.writeWithoutTransaction { db in
          try requireDeclaredOrder(db, in: name, of: path)
          if !keepsJournal { brokenDatabases.insert(path) }
          let result = try body(db)
          guard !db.isInsideTransaction else {
            throw DrydockError(
              .checkFailed, "the change left a transaction open; end it with COMMIT", path: path.description)
          }
          brokenDatabases.remove(path)
          return result
        }
      }
      if shared == nil { try close(connection) }
      return result
    } catch {
      // The stage is discarded: its database need not get its log back.
      try? connection.take()?.queue.close()
      throw error
    }
  }

  private func connect(
    _ connection: StagedConnection, to name: ContainerPath, keepsJournal: Bool, isShared: Bool
  ) throws -> DatabaseQueue {
    if let open = connection.open, open.name == name { return open.queue }
    try close(connection)
    // Without a log each page is written once, and no shared memory is needed; `close` puts the mode back.
    let isLogged = try stage.directory.hasWriteAheadLog(name)
    if isLogged { try stage.directory.setWriteAheadLog(name, false) }
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    // A transaction that the body leaves open is an error here, not the end of the process.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { [settings = container.configuration] in
      try $0.execute(sql: "PRAGMA synchronous=OFF")
      if !keepsJournal { try $0.execute(sql: "PRAGMA journal_mode=OFF") }
      // Whoever opens the database without closing this one gets an error, and not what is not written yet.
      if isShared { try $0.execute(sql: "PRAGMA locking_mode=EXCLUSIVE") }
      settings.sql.define(in: $0)
    }
    let file = stage.directory.full(name)
    let queue = try DatabaseError.namingObject(in: file) {
      try DatabaseQueue(path: file, configuration: configuration)
    }
    connection.open = (queue, name, isLogged)
    return queue
  }

  /// Closes a connection; nothing to do when it is not open.
  package func close(_ connection: StagedConnection) throws {
    guard let (queue, name, isLogged) = connection.take() else { return }
    try? queue.close()
    if isLogged { try stage.directory.setWriteAheadLog(name, true) }
    if try stage.directory.status(name)?.size ?? 0 > Stage.largeSize { startWriting(name) }
  }

  private func writableDatabase(at path: ContainerPath) throws -> ContainerPath {
    if case .inode(var inode) = stage.overlay[path], !inode.isShared, stagedSidecars(of: path).isEmpty {
      try keepBefore(path, copyOf: inode.name)
      (inode.made, inode.digest) = (nil, nil)
      stage.overlay.set(.inode(inode), at: path)
      return inode.name
    }
    guard let metadata = try metadata(of: path) else { throw missing(path) }
    let name = try newDatabaseFile(of: path)
    try keepBefore(path, copyOf: name)
    try stage.directory.apply(metadata, to: name)
    for sidecar in DatabaseFormat.sidecarSuffixes.map(path.withSuffix) {
      stage.overlay.set(try live.status(sidecar) == nil ? nil : .removed, at: sidecar)
    }
    stage.overlay.set(.inode(StagedInode(name: name, type: .file)), at: path)
    return name
  }

  /// What a database was before its first change, when a difference of rows is wanted.
  private func keepBefore(_ path: ContainerPath, copyOf name: ContainerPath) throws {
    guard keepsBefore, databasesBefore[path] == nil else { return }
    databasesBefore[path] = try stage.copy(name, for: path)
  }

  package func databaseFile(of path: ContainerPath) throws -> ContainerPath {
    guard case .inode(let inode) = stage.overlay[path] else {
      return try liveContainer.databaseFile(of: path)
    }
    return try mergedDatabase(inode, at: path)
  }

  /// A new file of the stage with the content of a database.
  func newDatabaseFile(of path: ContainerPath) throws -> ContainerPath {
    guard case .inode(let inode) = stage.overlay[path] else {
      return try liveContainer.takeDatabaseFile(of: path)
    }
    return try stage.copy(mergedDatabase(inode, at: path), for: path)
  }

  package func databaseDigest(_ path: ContainerPath) throws -> SHA256.Digest {
    guard case .inode(let inode) = stage.overlay[path] else { return try liveContainer.databaseDigest(path) }
    return try ContentHash.of(mergedDatabase(inode, at: path), in: stage.directory, isDatabase: true)
  }

  /// Records the digest of a staged database's content, which will not change again.
  func note(_ digest: SHA256.Digest, of path: ContainerPath) {
    guard case .inode(var inode) = stage.overlay[path] else { return }
    inode.digest = digest
    stage.overlay.set(.inode(inode), at: path)
  }

  /// The sidecars that are staged for a database: a rollback puts them back with the main file.
  func stagedSidecars(of path: ContainerPath) -> [(suffix: String, inode: StagedInode)] {
    DatabaseFormat.sidecarSuffixes.compactMap { suffix in
      guard case .inode(let inode) = stage.overlay[path.withSuffix(suffix)], inode.type == .file else {
        return nil
      }
      return (suffix, inode)
    }
  }

  /// A file of the stage with all that a staged database holds: itself, or a copy that SQLite has put its staged log
  /// or journal into.
  func mergedDatabase(_ inode: StagedInode, at path: ContainerPath) throws -> ContainerPath {
    // SQLite would follow a link.
    guard inode.type == .file else {
      throw DrydockError(.missing, "not a database", path: path.description)
    }
    let sidecars = stagedSidecars(of: path).filter { $0.suffix != "-shm" }
    if sidecars.isEmpty { return inode.name }
    if let merged = inode.merged { return merged }
    let directory = stage.directory
    // Mostly a clone, or sparse: its size says nothing about the space that it needs.
    let copy = stage.newName()
    try directory.copyContents(of: inode.name, to: copy, in: directory)
    for sidecar in sidecars {
      try directory.copyContents(of: sidecar.inode.name, to: copy.withSuffix(sidecar.suffix), in: directory)
    }
    if sidecars.contains(where: { $0.suffix == "-journal" }) { try requireOwnJournal(copy, of: path) }
    let unit = DatabaseUnit(main: copy, sidecars: sidecars.map { copy.withSuffix($0.suffix) })
    let merged = stage.newName()
    if let reason = try captureUnit(unit, in: directory, as: merged) {
      throw DrydockError.unreadableDatabase(path, reason)
    }
    try directory.removeDatabase(copy)
    var inode = inode
    inode.merged = merged
    stage.overlay.set(.inode(inode), at: path)
    return merged
  }

  /// Whether a transaction over several databases is committed, only files in their old places say.
  private func requireOwnJournal(_ copy: ContainerPath, of path: ContainerPath) throws {
    let directory = stage.directory
    let journal = try directory.open(copy.withSuffix("-journal"), .readWrite)
    defer { try? journal.close() }
    let size = try directory.status(copy)?.size ?? 0
    do {
      guard try journal.takeSuperJournal(mainSize: size, path: path.description) != nil else { return }
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError.unreadableDatabase(path, error.message)
    }
    throw DrydockError.unreadableDatabase(
      path, "its transaction over several databases did not end; open it in its app first")
  }

  /// Captures a database that no other process uses in a file of the stage.
  ///
  /// - Returns: nil, or the reason why SQLite cannot open it.
  func captureUnit(
    _ unit: DatabaseUnit, in directory: Directory, as name: ContainerPath, requiresStable: Bool = false
  ) throws -> String? {
    switch try directory.capture(
      unit, into: stage.directory, as: name, busyTimeout: liveContainer.busyTimeout,
      requiresStable: requiresStable)
    {
    case .copy: break
    case .inPlace(let pages): _ = try stage.write(pages, as: name)
    case .raw(let reason): return reason
    }
    return nil
  }
}
