import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

extension StagedContainer {
  /// Whether a path is the main file of a database.
  package func isDatabase(_ path: ContainerPath) throws -> Bool { try databaseUnit(at: path) != nil }

  /// The database whose main file a path is, with what belongs to it now.
  func databaseUnit(at path: ContainerPath) throws -> DatabaseUnit? {
    let place = place(of: path)
    guard let status = try status(of: path),
      let unit = try place.directory.databaseUnit(
        place.path, status: status, isNamed: live.databases.contains(path))
    else { return nil }
    // A staged database has no sidecars; the live external data falls through unless it was staged itself.
    let sidecars = place.directory === live ? unit.sidecars : []
    let external = DatabaseUnit.externalDataPath(of: path)
    let hasExternal = try self.status(of: external)?.type == .directory
    return DatabaseUnit(main: path, sidecars: sidecars, externalData: hasExternal ? external : nil)
  }

  func isSidecar(_ path: ContainerPath) throws -> Bool {
    guard let main = DatabaseUnit.main(ofSidecar: path) else { return false }
    return try isDatabase(main)
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

  /// Reads a database: a captured copy of a live one, which is never opened itself.
  package func readDatabase<T>(at path: ContainerPath, _ body: (Database) throws -> T) throws -> T {
    let name: ContainerPath
    if case .inode(let inode) = overlay[path] {
      name = try wholeDatabase(inode, at: path)
    } else if let captured = copies.captured[path] {
      name = captured
    } else {
      name = try databaseCopy(of: path)
      copies.captured[path] = name
    }
    // A second connection would find the database locked by the first.
    if let open = copies.open[name] { return try body(open) }
    return try translatingDiskErrors(path) {
      let queue = try DatabaseQueue.alone(with: stage.full(name)) { [settings = container.configuration] in
        $0.prepareDatabase { settings.addFunctions(to: $0) }
      }
      defer { try? queue.close() }
      return try queue.read { db in
        copies.open[name] = db
        defer { copies.open[name] = nil }
        return try body(db)
      }
    }
  }

  /// A full disk is reported with the place that is full, which is not a path of the container.
  private func translatingDiskErrors<T>(_ path: ContainerPath, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DatabaseError where error.isAboutTheDisk {
      guard error.resultCode == .SQLITE_FULL else {
        throw DrydockError.database("cannot work on the staged copy of \(path)", stage.path, error)
      }
      // SQLite sorts in the directory for temporary files.
      let temporary = try? Directory(ProcessInfo.processInfo.environment["TMPDIR"] ?? "/var/tmp")
      let place = [stage, temporary].compactMap { $0 }.min { $0.freeSpace() ?? 0 < $1.freeSpace() ?? 0 }
      throw DrydockError(
        .noSpace, "no space is left here to stage the database \(path); free some space and run it again",
        path: (place ?? stage).path, cause: error)
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
  package func writeDatabase<T>(
    at path: ContainerPath, keepsJournal: Bool = true, _ body: (Database) throws -> T
  ) throws -> T {
    let name = try writableDatabase(at: path)
    // Without a log each page is written once, and no shared memory is needed; the mode is put back below.
    let isLogged = try stage.hasWriteAheadLog(name)
    if isLogged { try stage.setWriteAheadLog(name, false) }
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    // A transaction that the body leaves open is an error here, not the end of the process.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { [settings = container.configuration] in
      try $0.execute(sql: "PRAGMA synchronous=OFF")
      settings.addFunctions(to: $0)
    }
    let result: T = try translatingDiskErrors(path) {
      let queue = try DatabaseQueue(path: stage.full(name), configuration: configuration)
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        if !keepsJournal {
          _ = try String.fetchOne(db, sql: "PRAGMA journal_mode=OFF")
          copies.broken.insert(path)
        }
        let result = try body(db)
        guard !db.isInsideTransaction else {
          throw DrydockError(
            .checkFailed, "the change left a transaction open; end it with COMMIT", path: path.description)
        }
        copies.broken.remove(path)
        return result
      }
    }
    if isLogged { try stage.setWriteAheadLog(name, true) }
    if try stage.status(name)?.size ?? 0 > Self.largeStage { startWriting(name) }
    return result
  }

  private func writableDatabase(at path: ContainerPath) throws -> ContainerPath {
    if case .inode(var inode) = overlay[path], !inode.isShared, stagedSidecars(of: path).isEmpty {
      try keepBefore(path, copyOf: inode.name)
      (inode.made, inode.digest) = (nil, nil)
      overlay.set(.inode(inode), at: path)
      return inode.name
    }
    guard let metadata = try metadata(of: path) else { throw missing(path) }
    let name: ContainerPath
    if case .inode(let inode) = overlay[path] {
      name = area.newName()
      try stage.copyContents(of: wholeDatabase(inode, at: path), to: name, in: stage)
    } else {
      name = try copies.captured[path] ?? databaseCopy(of: path)
    }
    try keepBefore(path, copyOf: name)
    try stage.apply(metadata, to: name)
    for sidecar in DatabaseFormat.sidecarSuffixes.map(path.withSuffix) {
      overlay.set(try live.status(sidecar) == nil ? nil : .removed, at: sidecar)
    }
    copies.captured[path] = nil
    overlay.set(.inode(StagedInode(name: name, type: .file)), at: path)
    return name
  }

  /// What a database was before its first change, when a difference of rows is wanted.
  private func keepBefore(_ path: ContainerPath, copyOf name: ContainerPath) throws {
    guard keepsBefore, copies.before[path] == nil else { return }
    let before = area.newName()
    try area.requireSpace(stage.status(name)?.size ?? 0, for: path)
    try stage.copyContents(of: name, to: before, in: stage)
    copies.before[path] = before
  }

  /// One consistent copy of a live database in the stage.
  func databaseCopy(of path: ContainerPath) throws -> ContainerPath {
    let name = area.newName()
    // SQLite takes an empty file for a database with nothing in it.
    if let status = try live.status(path), status.type == .file, status.size == 0, try liveUnit(path) == nil {
      try stage.createFile(name).close()
      return name
    }
    let parts = [path] + (try liveUnit(path)?.sidecars ?? [])
    try area.requireSpace(parts.map { try live.status($0)?.size ?? 0 }.reduce(0, +), for: path)
    for requiresStable in [false, true] {
      guard case .inPlace(let pages) = try captureLive(path, as: name, requiresStable: requiresStable) else {
        return name
      }
      let copy = try stage.createFile(name)
      defer { try? copy.close() }
      if try pages.copy(to: copy, path: stage.full(name)) { return name }
      // A dry run's lock keeps no app out that opens the database and writes it through a log.
      try stage.removeFile(name)
    }
    throw DrydockError(
      .inUse, "the database changed during every read; close the app that uses it", path: path.description
    )
  }

  private func liveUnit(_ path: ContainerPath) throws -> DatabaseUnit? {
    try live.status(path).flatMap { try live.databaseUnit(path, status: $0) }
  }

  /// A live database's image: in place, or a copy of that name in the stage.
  private func captureLive(
    _ path: ContainerPath, as name: ContainerPath, requiresStable: Bool
  ) throws -> DatabaseImage {
    guard let unit = try liveUnit(path) else {
      throw DrydockError(.missing, "not a database", path: path.description)
    }
    if reads != nil {
      // What a main file holds depends on its logs too.
      for part in ["", "-wal", "-journal"].map(path.withSuffix) {
        reads?.note(try live.status(part), of: part)
      }
    }
    let image = try live.capture(
      unit, into: stage, as: name, busyTimeout: busyTimeout, held: locks[path], requiresStable: requiresStable
    )
    if case .raw(let reason) = image { throw unreadable(path, reason) }
    return image
  }

  fileprivate func unreadable(_ path: ContainerPath, _ reason: String) -> DrydockError {
    DrydockError(
      .malformed,
      "SQLite cannot open the database (\(reason)): it is encrypted or corrupt, so no "
        + "migration can change it", path: path.description)
  }
}

extension DatabaseUnit {
  var parts: [ContainerPath] { sidecars + (externalData.map { [$0] } ?? []) }
}

extension StagedContainer {
  /// The digest of a database's captured content (``ContentDigest``), without a copy where none is needed.
  func databaseDigest(_ path: ContainerPath) throws -> SHA256.Digest {
    if case .inode(let inode) = overlay[path] {
      return try ContentDigest.of(wholeDatabase(inode, at: path), in: stage, isDatabase: true)
    }
    if let captured = copies.captured[path] {
      return try ContentDigest.of(captured, in: stage, isDatabase: true)
    }
    let name = area.newName()
    let copy: ContainerPath
    switch try captureLive(path, as: name, requiresStable: false) {
    case .inPlace(let pages):
      let digest = try ContentDigest.of(pages)
      if try pages.isUnchanged() { return digest }
      copy = try databaseCopy(of: path)
    case .copy, .raw: copy = name
    }
    copies.captured[path] = copy
    return try ContentDigest.of(copy, in: stage, isDatabase: true)
  }

  /// The digest of a database's captured content; of one that SQLite cannot open, of its bytes. Any other failure, such
  /// as a full disk, says nothing about the content: it is thrown.
  func databaseOrFileDigest(_ path: ContainerPath) throws -> SHA256.Digest {
    do {
      return try databaseDigest(path)
    } catch let error as DrydockError where error.code == .malformed {
      let place = place(of: path)
      return try ContentDigest.of(place.path, in: place.directory, isDatabase: true)
    }
  }

  /// Records the digest of a staged database's content, which will not change again.
  func note(_ digest: SHA256.Digest, of path: ContainerPath) {
    guard case .inode(var inode) = overlay[path] else { return }
    inode.digest = digest
    overlay.set(.inode(inode), at: path)
  }

  /// The sidecars that are staged for a database: a rollback puts them back with the main file.
  func stagedSidecars(of path: ContainerPath) -> [(suffix: String, inode: StagedInode)] {
    DatabaseFormat.sidecarSuffixes.compactMap { suffix in
      guard case .inode(let inode) = overlay[path.withSuffix(suffix)] else { return nil }
      return (suffix, inode)
    }
  }

  /// A file of the stage with all that a staged database holds: itself, or a copy that SQLite has put its staged log
  /// or journal into.
  func wholeDatabase(_ inode: StagedInode, at path: ContainerPath) throws -> ContainerPath {
    let sidecars = stagedSidecars(of: path).filter { $0.suffix != "-shm" }
    if sidecars.isEmpty { return inode.name }
    if let captured = copies.captured[path] { return captured }
    let copy = area.newName()
    try stage.copyContents(of: inode.name, to: copy, in: stage)
    for sidecar in sidecars {
      try stage.copyContents(of: sidecar.inode.name, to: copy.withSuffix(sidecar.suffix), in: stage)
    }
    let unit = DatabaseUnit(main: copy, sidecars: sidecars.map { copy.withSuffix($0.suffix) })
    let whole = area.newName()
    switch try stage.capture(unit, into: stage, as: whole, busyTimeout: busyTimeout) {
    case .copy: break
    case .inPlace(let pages):
      let file = try stage.createFile(whole)
      defer { try? file.close() }
      _ = try pages.copy(to: file, path: stage.full(whole))
    case .raw(let reason): throw unreadable(path, reason)
    }
    try stage.removeDatabase(copy)
    copies.captured[path] = whole
    return whole
  }
}

/// Copies of databases in the stage, by path.
struct DatabaseCopies {
  /// Captured copies that were only read so far.
  var captured: [ContainerPath: ContainerPath] = [:]
  /// What databases were before their first change.
  var before: [ContainerPath: ContainerPath] = [:]
  /// Captured copies of live databases, for a comparison.
  var live: [ContainerPath: ContainerPath] = [:]
  /// Staged databases that a failure left half written: they can only be thrown away.
  var broken: Set<ContainerPath> = []
  /// Connections to files of the stage that are being read.
  var open: [ContainerPath: Database] = [:]
}
