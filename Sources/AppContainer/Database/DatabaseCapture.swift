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
