import FileSystem
import SystemPackage

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
