import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

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
