import FileSystem
import SystemPackage

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
