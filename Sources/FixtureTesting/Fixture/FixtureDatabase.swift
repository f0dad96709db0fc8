import AppContainer
import Foundation
import GRDB

/// A database written down as SQL.
struct FixtureDatabase {
  let sql: String
  let file: String

  init(sql entry: WalkEntry, in source: Directory) throws {
    file = source.full(entry.path)
    guard let text = String(validating: try source.contents(entry.path), as: UTF8.self) else {
      throw FixtureError(.malformed, "the SQL is not UTF-8", path: file)
    }
    sql = text
  }

  /// Makes the database in a private directory and puts it in its place: in WAL mode, as apps have it, and closed;
  /// or with every row in the `-wal`, as an app leaves it that is killed.
  func build(_ path: ContainerPath, in target: Directory, onlyInWAL: Bool) throws {
    try Scratch.with { scratch in
      var configuration = GRDB.Configuration()
      configuration.journalMode = .wal
      let queue = try DatabaseQueue(path: scratch.path + "/database", configuration: configuration)
      do {
        try queue.writeWithoutTransaction { database in
          try database.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON")
          try database.inTransaction {
            try database.execute(sql: sql)
            return .commit
          }
        }
      } catch let error as DatabaseError {
        throw FixtureError(
          .malformed, "the SQL fails: \(error.message ?? error.description)", path: file, cause: error)
      }
      if onlyInWAL {
        // While it is open: closing would move the rows into the main file.
        try place("database", path, scratch, target)
        try place("database-wal", path.withSuffix("-wal"), scratch, target)
        try queue.close()
      } else {
        try queue.close()
        try place("database", path, scratch, target)
      }
    }
  }

  private func place(
    _ name: ContainerPath, _ path: ContainerPath, _ scratch: Directory, _ target: Directory
  ) throws {
    try target.create(path, scratch.contents(name, limit: 1 << 30), mode: 0o644)
  }
}

/// A private directory that is removed when its closure ends.
enum Scratch {
  static func with<T>(_ body: (Directory) throws -> T) throws -> T {
    let base = try Directory(FileManager.default.temporaryDirectory.path)
    let name = ContainerPath(name: Array("drydock-fixture-\(UUID().uuidString)".utf8))
    try base.createDirectory(name)
    defer { try? base.removeTree(name) }
    return try body(base.directory(name))
  }
}
