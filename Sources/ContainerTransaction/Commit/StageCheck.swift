import AppContainer
import GRDB

/// Checks what is about to be committed: staged databases are whole, staged property lists parse, a staged vault opens.
struct StageCheck {
  let staged: StagedContainer

  init(_ staged: StagedContainer) { self.staged = staged }

  /// - Throws: ``TransactionError`` with code `checkFailed`.
  func run() throws {
    for path in staged.overlay.nodes.keys.sorted() {
      guard case .inode(let inode) = staged.overlay[path], inode.type == .file else { continue }
      if try staged.isDatabase(path) {
        try checkDatabase(path)
      } else if path.nameString.hasSuffix(".plist"), staged.container.isSettings(path) {
        _ = try staged.defaults(path)
      } else if path == staged.container.vaultPath {
        try checkVault(path)
      }
    }
  }

  /// Without a key there is nothing to be seen; sealed to other keys it may be on purpose.
  private func checkVault(_ path: ContainerPath) throws {
    guard staged.deviceKeys != nil else { return }
    do {
      _ = try staged.vault()
    } catch let error as ContainerError where error.code == .badVault {
      throw TransactionError(
        .checkFailed, "the staged vault cannot be opened: \(error.message)", path: path.description,
        cause: error)
    } catch let error as ContainerError where error.code == .vaultLocked {}
  }

  private func checkDatabase(_ path: ContainerPath) throws {
    do {
      let result = try staged.readDatabase(at: path) {
        try String.fetchOne($0, sql: "PRAGMA integrity_check(1)")
      }
      guard result == "ok" else {
        throw TransactionError(
          .checkFailed,
          "the staged database is damaged (\(result ?? "no answer")); nothing was changed, look at "
            + "the live one with `PRAGMA integrity_check`", path: path.description)
      }
    } catch let error as DatabaseError {
      throw TransactionError(
        .checkFailed, "the staged database cannot be checked: \(error.plainMessage)", path: path.description,
        cause: error)
    }
  }
}
