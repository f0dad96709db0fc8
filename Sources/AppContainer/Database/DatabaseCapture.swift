import Foundation
import GRDB
import SystemPackage

/// One consistent image of a database.
public enum DatabaseImage {
  /// The main file is the image, without sidecars, as long as the lock is held. The lock lets readers work; a
  /// reader of the image compares the file's status before and after (``DatabaseUnit/hasPendingContent(in:)``).
  case inPlace(DatabaseLock)
  /// The image is a file of the scratch directory, to be removed by its taker.
  case copy(ContainerPath)
  /// SQLite cannot open it (encrypted or damaged): its bytes and its sidecars' are all that can be had.
  case raw(reason: String)
}

extension Directory {
  /// Captures a database under SQLite's own locks, without changing a byte of it.
  ///
  /// Nobody has it open: with SQLite's lock bytes locked, the main file is the image; when a log or a journal
  /// may hold more, or the lock would keep writers out for long, all is copied and SQLite recovers the copy. SQLite
  /// never opens an idle database in place: even a read-only open rewrites its `-shm`.
  ///
  /// In use: a read transaction, then SQLite's backup API.
  ///
  /// - Parameters:
  ///   - scratch: a private directory for the copy.
  ///   - name: the copy's name in it; with sidecars for a moment.
  ///   - busyTimeout: seconds to wait for a database that is locked.
  ///   - held: an exclusive lock that the caller has on it already and keeps.
  /// - Throws: ``ContainerError``: `inUse` when it stays locked, `io`, `noSpace`.
  public func capture(
    _ unit: DatabaseUnit, into scratch: Directory, as name: ContainerPath, busyTimeout: Double = 5,
    held: DatabaseLock? = nil
  ) throws -> DatabaseImage {
    guard let lock = try held ?? DatabaseLock.acquire(unit.main, in: self) else {
      return try captureInUse(unit.main, into: scratch, as: name, busyTimeout: busyTimeout)
    }
    // A log may have come or gone until the lock was granted.
    let unit = try unit.refreshed(in: self)
    if try !unit.hasPendingContent(in: self) {
      if held != nil { return .inPlace(lock) }
      // With a log the lock hinders nobody. Without one it keeps writers out, and is held only as long as a copy
      // takes, not until whoever reads the image is done with it.
      if try hasWriteAheadLog(unit.main) {
        try lock.downgrade(path: full(unit.main))
        return .inPlace(lock)
      }
    }
    return try withExtendedLifetime(lock) { try captureIdle(unit, lock, into: scratch, as: name) }
  }

  // MARK: Idle

  private func captureIdle(
    _ unit: DatabaseUnit, _ lock: DatabaseLock, into scratch: Directory, as name: ContainerPath
  ) throws -> DatabaseImage {
    let copies = unit.sidecars.filter { !$0.nameString.hasSuffix("-shm") }
    let main = try scratch.createFile(name)
    defer { try? main.close() }
    try lock.file.copyContents(to: main, path: scratch.full(name))
    for sidecar in copies {
      let suffix = String(sidecar.nameString.dropFirst(unit.main.nameString.count))
      try copyContents(of: sidecar, to: name.withSuffix(suffix), in: scratch)
    }
    do {
      try recover(scratch.full(name))
      // A journal that the database keeps (journal mode PERSIST) stays beside it, without meaning.
      try scratch.removeFile(name.withSuffix("-journal"), missingIsFine: true)
      return .copy(name)
    } catch let error as DatabaseError where error.meansUnreadable {
      try scratch.removeDatabase(name)
      return .raw(reason: error.plainMessage)
    } catch let error as DatabaseError {
      try scratch.removeDatabase(name)
      throw ContainerError.database("cannot recover a copy of the database", full(unit.main), error)
    }
  }

  /// Lets SQLite replay the log, or roll back the journal, of a private copy, leaving one file.
  private func recover(_ path: String) throws {
    var configuration = GRDB.Configuration()
    configuration.journalMode = .default
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous=OFF") }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN IMMEDIATE; ROLLBACK")
      _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }

  // MARK: In use

  private func captureInUse(
    _ main: ContainerPath, into scratch: Directory, as name: ContainerPath, busyTimeout: Double
  ) throws -> DatabaseImage {
    let path = full(main)
    do {
      let schemaVersion = try backUp(path, to: scratch.full(name), busyTimeout: busyTimeout)
      try scratch.setSchemaVersion(schemaVersion, of: name)
      return .copy(name)
    } catch let error as DatabaseError {
      try scratch.removeDatabase(name)
      if error.meansUnreadable { return .raw(reason: error.plainMessage) }
      if error.resultCode == .SQLITE_BUSY || error.resultCode == .SQLITE_LOCKED {
        throw ContainerError(
          .inUse,
          "the database stayed locked for \(busyTimeout) seconds; close the app that uses it, "
            + "or wait longer with --busy-timeout", path: path, cause: error)
      }
      throw ContainerError.database("cannot copy the database", path, error)
    }
  }

  /// Copies what one read transaction sees; gives the source's schema cookie, which the backup API resets.
  private func backUp(_ source: String, to target: String, busyTimeout: Double) throws -> UInt32 {
    var reading = GRDB.Configuration()
    reading.readonly = true
    // SQLite's own handler sleeps up to 100 ms between two tries, and an app that writes all the time leaves the
    // database free for less.
    let deadline = ContinuousClock.now + .seconds(busyTimeout)
    reading.busyMode = .callback { tries in
      usleep(500 + UInt32.random(in: 0..<1000))
      return tries == 0 || ContinuousClock.now < deadline
    }
    let from = try DatabaseQueue(path: source, configuration: reading)
    var writing = GRDB.Configuration()
    writing.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous=OFF") }
    let to = try DatabaseQueue(path: target, configuration: writing)
    let schemaVersion = try from.read { db in
      // The first read starts the transaction that the whole copy is taken in.
      let version = try UInt32.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
      _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema")
      try to.writeWithoutTransaction { try db.backup(to: $0) }
      return version
    }
    try to.close()
    try from.close()
    return schemaVersion
  }

  /// Writes the schema cookie (bytes 40..<44 of the header, big-endian) of a closed private copy.
  private func setSchemaVersion(_ version: UInt32, of path: ContainerPath) throws {
    let file = try open(path, .readWrite)
    defer { try? file.close() }
    do {
      _ = try withUnsafeBytes(of: version.bigEndian) { try file.writeAll(toAbsoluteOffset: 40, $0) }
    } catch let error as Errno {
      throw ContainerError.system("cannot write", full(path), error)
    }
  }

  /// Removes a database file and its sidecars, present or not.
  public func removeDatabase(_ main: ContainerPath) throws {
    for suffix in [""] + DatabaseFormat.sidecarSuffixes {
      try removeFile(main.withSuffix(suffix), missingIsFine: true)
    }
  }
}
