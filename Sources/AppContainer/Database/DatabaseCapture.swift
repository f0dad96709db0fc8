import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

/// One consistent image of a database.
package enum DatabaseImage {
  /// Its pages where they lie. After the last read ``DatabasePages/isStill()`` tells whether they are one image.
  case inPlace(DatabasePages)
  /// The image is a file of the scratch directory, to be removed by its taker.
  case copy(ContainerPath)
  /// SQLite cannot open it (encrypted or damaged): its bytes and its sidecars' are all that can be had.
  case raw(reason: String)
}

extension Directory {
  /// Captures a database under SQLite's own locks, without changing anything about it: SQLite never opens it, and
  /// even a read-only open would rewrite its `-shm`.
  ///
  /// With a log, or with nothing in the main file that a lock would keep a writer from, the image is read in place. In
  /// a rollback mode the lock keeps writers out, and is held only as long as a copy takes. SQLite puts a copy in
  /// order where a journal has to be rolled back.
  ///
  /// A database that this process has open itself is copied through SQLite alone, which shares its locks among all
  /// connections of a process.
  ///
  /// - Parameters:
  ///   - scratch: a private directory for a copy.
  ///   - name: the copy's name in it; with sidecars for a moment.
  ///   - busyTimeout: seconds to wait for a database that is locked.
  ///   - held: an exclusive lock that the caller has on it already and keeps.
  ///   - certainly: makes an image that nothing can disturb, if need be a copy: for one who was disturbed before.
  /// - Throws: ``DrydockError``: `inUse` when it stays locked, `io`, `noSpace`.
  package func capture(
    _ unit: DatabaseUnit, into scratch: Directory, as name: ContainerPath, busyTimeout: Double = 5,
    held: DatabaseLock? = nil, certainly: Bool = false
  ) throws -> DatabaseImage {
    let target = DatabaseCopy(directory: scratch, name: name)
    do {
      if held == nil, let status = try status(unit.main), try OpenHere.descriptor(of: status.identity) != nil
      {
        return try captureThroughSQLite(unit.main, target, busyTimeout: busyTimeout)
      }
      let deadline = ContinuousClock.now + .seconds(busyTimeout)
      while true {
        do {
          let image =
            if let lock = try held ?? DatabaseLock.acquire(unit.main, in: self) {
              try captureIdle(unit, lock, target, keepsLock: held != nil, certainly: certainly)
            } else {
              try captureUsed(unit, target, certainly: certainly)
            }
          if let image { return image }
        } catch let error as DrydockError where error.code == .notFound {
          // An app that closes the database removes its log and shared memory, at any moment.
          guard try status(unit.main) != nil else { throw error }
          try target.remove()
        }
        guard ContinuousClock.now < deadline else { throw stayedLocked(unit.main, busyTimeout) }
        // SQLite's own wait grows to 100 ms, and an app that writes all the time leaves the database free for less.
        usleep(500 + UInt32.random(in: 0..<1000))
      }
    } catch let error as UnreadableDatabase {
      return .raw(reason: error.reason)
    }
  }

  func stayedLocked(_ main: ContainerPath, _ seconds: Double, _ cause: (any Error)? = nil) -> DrydockError {
    DrydockError(
      .inUse,
      "the database stayed locked for \(seconds) seconds; close the app that uses it, "
        + "or wait longer with --busy-timeout", path: full(main), cause: cause)
  }

  /// The log, opened; nil when there is none.
  func openLog(of unit: DatabaseUnit) throws -> LockedFile? {
    let log = unit.main.withSuffix("-wal")
    guard try status(log)?.type == .file else { return nil }
    return LockedFile(try open(log, .readOnly, options: [.nonBlocking]))
  }

  /// Whether a rollback journal is there that is not empty and not done with.
  func hasPendingJournal(_ unit: DatabaseUnit) throws -> Bool {
    let journal = unit.main.withSuffix("-journal")
    guard let status = try status(journal), status.type == .file, status.size > 0 else { return false }
    // A journal that is kept is done with when its first byte is zero.
    return try prefix(of: journal, 1) != [0]
  }
}

/// A database that nobody has open.
extension Directory {
  /// - Parameter keepsLock: the lock is the caller's and stays exclusive.
  /// - Returns: nil when somebody who asks no lock wrote into it.
  func captureIdle(
    _ unit: DatabaseUnit, _ lock: DatabaseLock, _ target: DatabaseCopy, keepsLock: Bool, certainly: Bool
  ) throws -> DatabaseImage? {
    let path = full(unit.main)
    // A log or journal may have come or gone until the lock was granted: what counts is there now.
    guard try !hasPendingJournal(unit),
      let pages = try DatabasePages(lock, log: openLog(of: unit), pin: nil, path: path)
    else {
      return try withExtendedLifetime(lock) { try target.recover(unit, lock, in: self) }
    }
    if keepsLock { return .inPlace(pages) }
    // With a log the lock, made a reader's, hinders nobody. Without one it keeps writers out, and is held only as long
    // as a copy takes.
    if pages.usesLog && !certainly {
      try lock.downgrade(path: path)
      return .inPlace(pages)
    }
    return try target.take(pages)
  }
}

/// A database that another process has open.
extension Directory {
  /// - Returns: nil when it cannot be had at this moment.
  func captureUsed(_ unit: DatabaseUnit, _ target: DatabaseCopy, certainly: Bool) throws -> DatabaseImage? {
    guard let lock = try DatabaseLock.share(unit.main, in: self) else { return nil }
    let path = full(unit.main)
    switch try LogPin.take(unit, in: self) {
    case .busy: return nil
    case .pinned(let pin):
      guard let pages = try DatabasePages(lock, log: openLog(of: unit), pin: pin, path: path) else {
        return try withExtendedLifetime(pin) { try target.recover(unit, lock, in: self) }
      }
      return .inPlace(pages)
    case .unused: return try captureUnpinned(unit, lock, target, certainly: certainly)
    }
  }

  /// In a rollback mode; or with a log that nobody uses yet, or another Drydock alone.
  private func captureUnpinned(
    _ unit: DatabaseUnit, _ lock: DatabaseLock, _ target: DatabaseCopy, certainly: Bool
  ) throws -> DatabaseImage? {
    let path = full(unit.main)
    // A journal belongs to a transaction that is being written, whose changes are in memory still, or to one that a
    // crash cut off: then there is no writer, and it is there still after one was looked for.
    if try hasPendingJournal(unit), try !lock.isReserved(path: path), try hasPendingJournal(unit) {
      return try withExtendedLifetime(lock) { try target.recover(unit, lock, in: self) }
    }
    guard let pages = try DatabasePages(lock, log: openLog(of: unit), pin: nil, path: path) else {
      return try withExtendedLifetime(lock) { try target.recover(unit, lock, in: self) }
    }
    return pages.usesLog && !certainly ? .inPlace(pages) : try target.take(pages)
  }
}

/// A database that this process has open: through SQLite alone.
extension Directory {
  func captureThroughSQLite(
    _ main: ContainerPath, _ target: DatabaseCopy, busyTimeout: Double
  ) throws -> DatabaseImage {
    do {
      let schemaVersion = try backUp(full(main), to: target.path, busyTimeout: busyTimeout)
      try target.setSchemaVersion(schemaVersion)
      return .copy(target.name)
    } catch let error as DatabaseError {
      try target.remove()
      if error.resultCode == .SQLITE_BUSY || error.resultCode == .SQLITE_LOCKED {
        throw stayedLocked(main, busyTimeout, error)
      }
      if error.meansUnreadable {
        throw DrydockError(
          .inUse,
          "this process has the database open, and SQLite cannot read it (\(error.plainMessage)); "
            + "close it before a snapshot", path: full(main), cause: error)
      }
      throw DrydockError.database("cannot copy the database", full(main), error)
    }
  }

  /// Copies what one read transaction sees; gives the source's schema cookie, which the backup API resets.
  private func backUp(_ source: String, to target: String, busyTimeout: Double) throws -> UInt32 {
    var reading = GRDB.Configuration()
    reading.readonly = true
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
}

/// Where a copy of a database goes.
struct DatabaseCopy {
  let directory: Directory
  let name: ContainerPath
  var path: String { directory.full(name) }

  /// Copies pages.
  ///
  /// - Returns: nil when they did not hold still.
  func take(_ pages: DatabasePages) throws -> DatabaseImage? {
    let file = try directory.createFile(name)
    defer { try? file.close() }
    if try pages.copy(to: file, path: path) { return .copy(name) }
    try directory.removeFile(name)
    return nil
  }

  /// Copies the main file with its log or journal, and lets SQLite put the copy in order.
  func recover(_ unit: DatabaseUnit, _ lock: DatabaseLock, in root: Directory) throws -> DatabaseImage {
    let main = try directory.createFile(name)
    defer { try? main.close() }
    try lock.file.copyContents(to: main, path: path)
    for suffix in ["-journal", "-wal"] {
      let sidecar = unit.main.withSuffix(suffix)
      guard try root.status(sidecar)?.type == .file else { continue }
      let source = LockedFile(try root.open(sidecar, .readOnly, options: [.nonBlocking]))
      let copy = try directory.createFile(name.withSuffix(suffix))
      defer { try? copy.close() }
      try source.descriptor.copyContents(to: copy, path: root.full(sidecar))
    }
    do {
      try recover()
      // A journal that the database keeps (journal mode PERSIST) stays beside it, without meaning.
      try directory.removeFile(name.withSuffix("-journal"), missingIsFine: true)
      _ = try DatabasePages(ofCopy: name, in: directory)
      return .copy(name)
    } catch let error as DrydockError where error.code == .malformed {
      try remove()
      throw UnreadableDatabase(reason: error.message)
    } catch let error as DatabaseError {
      try remove()
      if error.meansUnreadable { throw UnreadableDatabase(reason: error.plainMessage) }
      throw DrydockError.database("cannot recover a copy of the database", root.full(unit.main), error)
    }
  }

  /// Lets SQLite replay the log, or roll back the journal, of a private copy, leaving one file.
  private func recover() throws {
    let queue = try DatabaseQueue.alone(with: path) {
      $0.journalMode = .default
      $0.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous=OFF") }
    }
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN IMMEDIATE; ROLLBACK")
      _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }

  /// Writes the schema cookie (bytes 40..<44 of the header, big-endian) of a closed private copy.
  func setSchemaVersion(_ version: UInt32) throws {
    let file = try directory.open(name, .readWrite)
    defer { try? file.close() }
    do {
      _ = try withUnsafeBytes(of: version.bigEndian) { try file.writeAll(toAbsoluteOffset: 40, $0) }
    } catch let error as Errno {
      throw DrydockError.system("cannot write", path, error)
    }
  }

  func remove() throws { try directory.removeDatabase(name) }
}

extension Directory {
  /// Removes a database file and its sidecars, present or not.
  package func removeDatabase(_ main: ContainerPath) throws {
    for suffix in [""] + DatabaseFormat.sidecarSuffixes {
      try removeFile(main.withSuffix(suffix), missingIsFine: true)
    }
  }
}
