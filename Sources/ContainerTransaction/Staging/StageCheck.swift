import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import GRDB
import Synchronization

/// Checks what is about to be committed: staged databases are whole, staged settings files parse, a staged vault opens.
struct StageCheck {
  let staged: StagedContainer

  init(_ staged: StagedContainer) { self.staged = staged }

  func run() throws {
    var databases: [StagedDatabase] = []
    for path in staged.stage.overlay.paths {
      guard case .inode(let inode) = staged.stage.overlay[path], inode.type == .file else { continue }
      if try staged.isDatabase(path) {
        databases.append(
          StagedDatabase(
            path: path, name: try whole(inode, path), stage: staged.stage.directory,
            hasDigest: inode.digest != nil))
      } else if staged.container.isSettings(path) {
        try checkSettings(path)
      } else if path == staged.container.vaultPath {
        try checkVault(path)
      }
    }
    try check(databases)
  }

  /// Both the check and the digest, which the undo needs, read all of a database: each has a core for itself.
  private func check(_ databases: [StagedDatabase]) throws {
    let digests = Mutex<[ContainerPath: SHA256.Digest]>([:])
    // A dry run keeps no undo.
    let unknown = staged.transaction.isEmpty ? [] : databases.filter { !$0.hasDigest }
    try onAllCores(unknown.map { ($0, false) } + databases.map { ($0, true) }) { database, isCheck in
      if isCheck { return try database.check() }
      let digest = try ContentDigest.of(database.name, in: database.stage, isDatabase: true)
      digests.withLock { $0[database.path] = digest }
    }
    for (path, digest) in digests.withLock({ $0 }) { staged.note(digest, of: path) }
  }

  private func whole(_ inode: StagedInode, _ path: ContainerPath) throws -> ContainerPath {
    if staged.databases.broken.contains(path) {
      throw DrydockError(
        .checkFailed, "a statement failed half way in the staged database; nothing was changed",
        path: path.description)
    }
    return try staged.mergedDatabase(inode, at: path)
  }

  /// Encrypted settings can be moved, but not read.
  private func checkSettings(_ path: ContainerPath) throws {
    do { _ = try staged.defaults(path) } catch let error as DrydockError where error.code == .unsupported {}
  }

  /// Without a key there is nothing to be seen; sealed to other keys it may be on purpose.
  private func checkVault(_ path: ContainerPath) throws {
    guard staged.deviceKeys != nil else { return }
    do {
      _ = try staged.vault()
    } catch let error as DrydockError where error.code == .badVault {
      throw DrydockError(
        .checkFailed, "the staged vault cannot be opened: \(error.message)", path: path.description,
        cause: error)
    } catch let error as DrydockError where error.code == .vaultLocked {}
  }
}

/// A database of the stage: the path that it is for, and a file with all that it holds.
private struct StagedDatabase: Sendable {
  let path: ContainerPath
  let name: ContainerPath
  let stage: Directory
  /// Whether its content's digest is known from where it came.
  let hasDigest: Bool

  func check() throws {
    do {
      let queue = try DatabaseQueue.alone(with: stage.full(name))
      defer { try? queue.close() }
      let result = try queue.read { try String.fetchOne($0, sql: "PRAGMA integrity_check(1)") }
      guard result == "ok" else {
        throw DrydockError(
          .checkFailed,
          "the staged database is corrupt (\(result ?? "no answer")); nothing was changed, check "
            + "the live one with `PRAGMA integrity_check`", path: path.description)
      }
    } catch let error as DatabaseError {
      throw DrydockError(
        .checkFailed, "the staged database cannot be checked: \(error.plainMessage)", path: path.description,
        cause: error)
    }
  }
}
