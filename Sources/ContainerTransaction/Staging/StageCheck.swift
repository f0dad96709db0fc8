import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import GRDB
import Synchronization

/// The check of what is about to be committed: staged databases are whole, or have only the faults that they had before,
/// staged settings files parse, a staged vault opens.
extension StagedContainer {
  /// - Returns: notes on what was wrong before.
  func checkStage() throws -> [String] {
    var databases: [(path: ContainerPath, name: ContainerPath, hasDigest: Bool)] = []
    for path in stage.overlay.paths {
      guard case .inode(let inode) = stage.overlay[path], inode.type == .file else { continue }
      if try isDatabase(path) {
        databases.append((path, try wholeDatabase(inode, path), inode.digest != nil))
      } else if container.isSettings(path) {
        try checkSettings(path)
      } else if path == container.vaultPath {
        try checkVault(path)
      }
    }
    // Both the check and the digest, which the undo needs, read all of a database: each has a core for itself.
    let (directory, configuration) = (stage.directory, container.configuration)
    let faulty = Mutex<[(ContainerPath, IntegrityFaults)]>([])
    let digests = Mutex<[ContainerPath: SHA256.Digest]>([:])
    // A dry run keeps no undo.
    let unknown = transaction.isEmpty ? [] : databases.filter { !$0.hasDigest }
    try onAllCores(unknown.map { ($0, false) } + databases.map { ($0, true) }) { database, isCheck in
      if isCheck {
        let faults = try IntegrityFaults(database.name, in: directory, configuration, of: database.path)
        return faults.isEmpty ? () : faulty.withLock { $0.append((database.path, faults)) }
      }
      let digest = try ContentHash.of(database.name, in: directory, isDatabase: true)
      digests.withLock { $0[database.path] = digest }
    }
    for (path, digest) in digests.withLock({ $0 }) { note(digest, of: path) }
    return try faulty.withLock { $0 }.sorted { $0.0 < $1.0 }.map { path, faults in
      try faults.note(since: faultsBefore(path), at: path)
    }
  }

  /// What was wrong with a database in the live container, in its place of then.
  private func faultsBefore(_ path: ContainerPath) throws -> IntegrityFaults? {
    let origin = stage.overlay.origins[path] ?? path
    guard try liveContainer.databaseUnit(origin) != nil else { return nil }
    defer { liveContainer.removeDatabaseFile(of: origin) }
    return try IntegrityFaults(
      liveContainer.databaseFile(of: origin), in: stage.directory, container.configuration, of: path)
  }

  private func wholeDatabase(_ inode: StagedInode, _ path: ContainerPath) throws -> ContainerPath {
    if brokenDatabases.contains(path) {
      throw DrydockError(
        .checkFailed, "a statement failed half way in the staged database; nothing was changed",
        path: path.description)
    }
    return try mergedDatabase(inode, at: path)
  }

  /// Encrypted settings can be moved, but not read; nor can those that were damaged before.
  private func checkSettings(_ path: ContainerPath) throws {
    do { _ = try defaults(path) } catch let error as DrydockError where error.code == .unsupported {
    } catch {
      let origin = stage.overlay.origins[path] ?? path
      guard let before = try? live.contents(origin), try before == read(path) else { throw error }
    }
  }

  /// Without a key there is nothing to be seen; sealed to other keys it may be on purpose.
  private func checkVault(_ path: ContainerPath) throws {
    guard deviceKeys != nil else { return }
    do {
      _ = try vault()
    } catch let error as DrydockError where error.code == .badVault {
      throw DrydockError(
        .checkFailed, "the staged vault cannot be opened: \(error.message)", path: path.description,
        cause: error)
    } catch let error as DrydockError where error.code == .vaultLocked {}
  }
}

/// What SQLite's integrity check finds in a database.
private struct IntegrityFaults {
  /// How often, by SQLite's words without numbers of rows and pages, which a change may renumber.
  private var counts: [String: Int] = [:]
  private var first: String?
  /// Why tables cannot be checked, by their names: only the app has a function, collation or module.
  private var unchecked: [String: String] = [:]
  private let declaresCollations: Bool

  var isEmpty: Bool { counts.isEmpty && unchecked.isEmpty }

  private static let limit = 1000

  /// - Throws: ``DrydockError`` `checkFailed` for a database that SQLite cannot read.
  init(
    _ name: ContainerPath, in directory: Directory, _ configuration: ContainerConfiguration,
    of path: ContainerPath
  ) throws {
    declaresCollations = !configuration.sql.collations.isEmpty
    do {
      let queue = try DatabaseQueue.alone(with: directory.full(name)) {
        $0.prepareDatabase { configuration.sql.define(in: $0) }
      }
      defer { try? queue.close() }
      try queue.read { db in
        do { try add("\(Self.limit)", db) } catch let error as DatabaseError
          where error.resultCode == .SQLITE_ERROR
        { try addTables(db) }
        // The check does not read them before SQLite 3.44.
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
        for table in try String.fetchAll(db, sql: names) {
          do {
            _ = try Row.fetchOne(db, sql: "SELECT * FROM \(quotedIdentifier(table)) LIMIT 1")
          } catch let error as DatabaseError where !error.isAboutTheDisk {
            note("virtual table \(table): \(error.plainMessage)")
          }
        }
      }
    } catch let error as DatabaseError {
      throw DrydockError(
        .checkFailed, "the staged database cannot be checked: \(error.plainMessage)", path: path.description,
        cause: error)
    }
  }

  /// Checks the tables one by one: something in the schema is unknown here.
  private mutating func addTables(_ db: Database) throws {
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    for table in try String.fetchAll(db, sql: tables) {
      do { try add(quotedIdentifier(table), db) } catch let error as DatabaseError
        where error.resultCode == .SQLITE_ERROR
      { unchecked[table] = error.plainMessage }
    }
  }

  private mutating func note(_ line: String) {
    first = first ?? line
    counts[line.replacing(#/[0-9]+/#, with: "#"), default: 0] += 1
  }

  /// - Parameter part: a table, or the number of findings to stop at.
  private mutating func add(_ part: String, _ db: Database) throws {
    let found = try String.fetchAll(db, sql: "PRAGMA integrity_check(\(part))")
    for line in found.flatMap({ $0.components(separatedBy: "\n") }) where line != "ok" { note(line) }
  }

  /// Compares with what was wrong before.
  ///
  /// - Returns: a note on it.
  /// - Throws: ``DrydockError`` `checkFailed` when there is more.
  func note(since before: IntegrityFaults?, at path: ContainerPath) throws -> String {
    let more = counts.filter { $0.value > before?.counts[$0.key] ?? 0 }
    guard more.isEmpty else {
      throw DrydockError(
        .checkFailed,
        "the staged database is corrupt (\(more.keys.min() ?? "")); nothing was changed, check "
          + "the live one with `PRAGMA integrity_check`"
          + (declaresCollations
            ? ", and whether `collations:` of drydock.yaml declares the app's order" : ""),
        path: path.description)
    }
    let tables = unchecked.sorted { $0.key < $1.key }.map {
      "the table `\($0.key)` cannot be checked: \($0.value)"
    }
    return "\(path): "
      + ((first.map { ["as before, SQLite finds: \($0)"] } ?? []) + tables).joined(separator: "; ")
  }
}
