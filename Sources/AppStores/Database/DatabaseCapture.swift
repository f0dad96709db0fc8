import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

package enum DatabaseImage {
  /// The pages in the original files. After the last read, ``DatabasePages/isUnchanged()`` is whether they were consistent.
  case inPlace(DatabasePages)
  /// A file in the scratch directory, to be removed by the caller; what ``DatabasePages/bytesBehind()`` was for the original.
  case copy(ContainerPath, behind: UInt64)
  /// SQLite cannot open the database (encrypted or corrupt): only the raw files can be stored.
  case raw(reason: String)
}

extension Directory {
  /// Captures a database under SQLite's locks without changing its files: SQLite does not open it, since even a read-only
  /// open would rewrite its `-shm`.
  ///
  /// With a log, the image is read in place. In a rollback mode the lock blocks writers, and is held only as long as a copy
  /// takes. Where a journal has to be rolled back, SQLite recovers a copy.
  ///
  /// A database that this process has open itself is copied through SQLite, whose locks are shared by all connections of a
  /// process.
  ///
  /// - Parameters:
  ///   - scratch: a private directory for a copy.
  ///   - name: the copy's name in it, with sidecars temporarily.
  ///   - busyTimeout: seconds to wait for a database that is locked.
  ///   - held: an exclusive lock that the caller has and keeps.
  ///   - requiresStable: makes an image that no writer can invalidate, if need be a copy: for a retry.
  /// - Throws: ``DrydockError``: `inUse` when it stays locked, `io`, `noSpace`.
  package func capture(
    _ unit: DatabaseUnit, into scratch: Directory, as name: ContainerPath, busyTimeout: Double = 5,
    held: DatabaseLock? = nil, requiresStable: Bool = false
  ) throws -> DatabaseImage {
    let target = DatabaseCopy(directory: scratch, name: name)
    do {
      if held == nil, let status = try status(unit.main),
        try LockedFile.foreignDescriptor(of: status.identity) != nil
      {
        return try captureThroughSQLite(unit.main, target, busyTimeout: busyTimeout)
      }
      return try wait(for: unit.main, busyTimeout) {
        do {
          let idle = try held ?? DatabaseLock.acquire(unit.main, in: self)
          guard let lock = try idle ?? DatabaseLock.share(unit.main, in: self) else { return nil }
          return try image(
            of: unit, lock, target, keepsLock: held != nil, requiresStable: requiresStable)
        } catch let error as DrydockError where error.code == .notFound {
          // An app that closes the database may remove its log and shared memory at any moment.
          guard try status(unit.main) != nil else { throw error }
          try target.remove()
          return nil
        }
      }
    } catch let error as DrydockError where error.code == .malformed {
      return .raw(reason: error.message)
    }
  }

  /// Holds a database as it is, whatever is in its files.
  ///
  /// - Throws: ``DrydockError``: `inUse` when other processes keep it locked.
  package func hold(_ unit: DatabaseUnit, busyTimeout: Double) throws -> DatabaseLock {
    try wait(for: unit.main, busyTimeout) { try DatabaseLock.share(unit.main, in: self) }
  }

  /// Tries until a body gives something, for as many seconds.
  private func wait<T>(for main: ContainerPath, _ seconds: Double, _ body: () throws -> T?) throws -> T {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      if let result = try body() { return result }
      guard ContinuousClock.now < deadline else { throw stayedLocked(main, seconds) }
      // SQLite's busy handler waits up to 100 ms, and an app that writes constantly leaves shorter gaps.
      usleep(500 + UInt32.random(in: 0..<1000))
    }
  }

  func stayedLocked(_ main: ContainerPath, _ seconds: Double, _ cause: (any Error)? = nil) -> DrydockError {
    DrydockError(
      .inUse,
      "the database was locked for \(seconds) seconds; close the app that uses it, or use a longer busy timeout",
      path: full(main), cause: cause)
  }

  /// Opens the log; nil when there is none.
  func openLog(of unit: DatabaseUnit) throws -> LockedFile? {
    let log = unit.main.withSuffix("-wal")
    guard try status(log)?.type == .file else { return nil }
    return LockedFile(try openFile(log))
  }
}

// MARK: A database that this process does not have open

extension Directory {
  /// - Parameter keepsLock: whether the lock is the caller's and remains exclusive.
  /// - Returns: nil when it cannot be captured at this moment.
  private func image(
    of unit: DatabaseUnit, _ lock: DatabaseLock, _ target: DatabaseCopy, keepsLock: Bool,
    requiresStable: Bool
  ) throws -> DatabaseImage? {
    let path = full(unit.main)
    // A journal belongs to a transaction in progress, whose changes are still in memory, or to one that crashed: then
    // there is no writer, and the journal still exists after the search for one. Both it and a log may have come or
    // gone before the lock was granted.
    let isInterrupted =
      try lock.pin == nil && hasPendingJournal(unit) && !lock.isReserved(path: path)
      && hasPendingJournal(unit)
    guard !isInterrupted, let pages = try DatabasePages(lock, log: openLog(of: unit), path: path) else {
      return try target.recover(unit, lock, in: self)
    }
    if keepsLock || lock.pin != nil { return .inPlace(pages) }
    // With a log, a reader's lock blocks no process. Without one it blocks writers, and is held only as long as a copy
    // takes.
    guard pages.usesLog && !requiresStable else { return try target.take(pages) }
    try lock.downgrade(path: path)
    return .inPlace(pages)
  }
}

// MARK: A database that this process has open

extension Directory {
  private func captureThroughSQLite(
    _ main: ContainerPath, _ target: DatabaseCopy, busyTimeout: Double
  ) throws -> DatabaseImage {
    do {
      let schemaVersion = try backUp(full(main), to: target.path, busyTimeout: busyTimeout)
      // The schema cookie.
      try target.directory.write(
        withUnsafeBytes(of: schemaVersion.bigEndian, Array.init), at: 40, inHeaderOf: target.name)
      return .copy(target.name, behind: 0)
    } catch let error as DatabaseError {
      try target.remove()
      if error.resultCode == .SQLITE_BUSY || error.resultCode == .SQLITE_LOCKED {
        throw stayedLocked(main, busyTimeout, error)
      }
      if error.meansUnreadable {
        throw DrydockError(
          .inUse,
          "this process has the database open, and SQLite cannot read it (\(error.plainMessage)); close it first",
          path: full(main), cause: error)
      }
      throw DrydockError.database("cannot copy the database", full(main), error)
    }
  }

  /// Copies the state of one read transaction; returns the source's schema cookie, which the backup API resets.
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
      // The first read starts the transaction of the whole copy.
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

struct DatabaseCopy {
  let directory: Directory
  let name: ContainerPath
  var path: String { directory.full(name) }

  /// Copies pages.
  ///
  /// - Returns: nil when they changed meanwhile.
  func take(_ pages: DatabasePages) throws -> DatabaseImage? {
    let file = try directory.createFile(name)
    defer { try? file.close() }
    if try pages.copy(to: file, path: path) { return .copy(name, behind: try pages.bytesBehind()) }
    try directory.removeFile(name)
    return nil
  }

  /// Copies the main file with its log or journal, and lets SQLite recover the copy.
  ///
  /// - Parameter lock: held until then.
  func recover(_ unit: DatabaseUnit, _ lock: DatabaseLock, in root: Directory) throws -> DatabaseImage {
    defer { withExtendedLifetime(lock) {} }
    do {
      try copy(unit, lock, in: root)
      try recover()
      // A journal remains in the mode PERSIST, without meaning.
      try directory.removeFile(name.withSuffix("-journal"), missingIsFine: true)
      let file = try directory.open(name, .readWrite)
      defer { try? file.close() }
      // What an interrupted transaction has added is not part of it.
      try file.resize(to: Int64(DatabasePages(ofCopy: name, in: directory).size))
      return .copy(name, behind: 0)
    } catch let error as DrydockError where error.code == .malformed {
      try remove()
      throw error
    } catch let error as Errno {
      try remove()
      throw DrydockError.system("cannot write", path, error)
    } catch let error as DatabaseError {
      try remove()
      if error.meansUnreadable { throw DrydockError.unreadable(error.plainMessage) }
      throw DrydockError.database("cannot recover a copy of the database", root.full(unit.main), error)
    }
  }

  /// Copies the files of a database, and takes from the copies what would make SQLite touch other files, or fill the disk.
  private func copy(_ unit: DatabaseUnit, _ lock: DatabaseLock, in root: Directory) throws {
    let main = try directory.createFile(name)
    defer { try? main.close() }
    try lock.file.copyContents(to: main, path: path)
    let mainSize = try FileStatus(of: main, path: path).size
    for suffix in ["-journal", "-wal"] {
      let sidecar = unit.main.withSuffix(suffix)
      guard try root.status(sidecar)?.type == .file else { continue }
      let source = LockedFile(try root.openFile(sidecar))
      let copy = try directory.createFile(name.withSuffix(suffix))
      defer { try? copy.close() }
      try source.descriptor.copyContents(to: copy, path: root.full(sidecar))
      if suffix == "-wal" {
        _ = try WriteAheadLog(copy, mainSize: mainSize, path: root.full(sidecar))
      } else if let superJournal = try copy.takeSuperJournal(
        mainSize: mainSize, path: root.full(sidecar)),
        try !root.hasSuperJournal(superJournal, of: unit.main)
      {
        try directory.removeFile(name.withSuffix(suffix))
      }
    }
  }

  /// Lets SQLite replay the log or roll back the journal of the copy, leaving one file.
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

  func remove() throws { try directory.removeDatabase(name) }
}

extension Directory {
  /// Removes a database file and its sidecars, if they exist.
  package func removeDatabase(_ main: ContainerPath) throws {
    for suffix in [""] + DatabaseFormat.sidecarSuffixes {
      try removeFile(main.withSuffix(suffix), missingIsFine: true)
    }
  }
}
