import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

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
