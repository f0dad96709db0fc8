import AgeEncryption
import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// What a transaction replaced: `undo/<transaction>/`, with its record beside the kept files, which are as they were, or sealed.
package struct UndoEntry {
  let record: UndoRecord
  let directory: Directory
  /// What opens files that are sealed.
  let keys: AgeKeys

  package var transaction: TransactionID { record.transaction }
  package var kind: TransactionLogEntry.Kind { record.kind }

  /// The transactions whose steps it contains: its own, or those that it has redone.
  package var origins: [String] {
    let (own, recorded) = (transaction.description, record.steps.map(UndoRecord.transaction(ofSteps:)))
    return recorded.contains(own) ? recorded : recorded + [own]
  }

  /// What was at a path before the transaction; nil when nothing was, or the path was not changed.
  package func before(_ path: ContainerPath) throws -> (isChanged: Bool, bytes: [UInt8]?) {
    guard let change = record.changes[path] else { return (false, nil) }
    return (true, try change.kept.map(contents))
  }
}

/// The kept files.
extension UndoEntry {
  /// The name of a kept file once it is sealed.
  static func sealed(_ name: ContainerPath) -> ContainerPath { name.withSuffix(".age") }

  private func isSealed(_ name: ContainerPath) throws -> Bool {
    try directory.status(name) == nil && directory.status(Self.sealed(name)) != nil
  }

  func status(_ name: ContainerPath) throws -> FileStatus? {
    try directory.status(name) ?? directory.status(Self.sealed(name))
  }

  func contents(_ name: ContainerPath) throws -> [UInt8] {
    guard try isSealed(name) else {
      var bytes = try directory.contents(name)
      ReplacedMark.remove(from: &bytes)
      return bytes
    }
    var bytes: [UInt8] = []
    try opening(name) { reader in try reader.read { bytes += $0 } }
    return bytes
  }

  /// Opens a file that is sealed.
  ///
  /// - Throws: ``DrydockError``: `vaultLocked` when no key opens it, `nothingToUndo` when it is damaged.
  private func opening<Value>(_ name: ContainerPath, _ body: (AgeReader) throws -> Value) throws -> Value {
    let path = directory.full(Self.sealed(name))
    do {
      guard !keys.isEmpty else {
        throw DrydockError(
          .vaultLocked,
          "a rollback needs the device key: the undo log holds a secret, encrypted",
          path: path)
      }
      let file = try directory.openFile(Self.sealed(name))
      defer { try? file.close() }
      let reader = try AgeReader(size: FileStatus(of: file, path: path).size, keys: keys) { target, offset in
        try DrydockError.translating("cannot read", path) {
          guard try file.fill(target, at: offset) == target.count else { throw Errno.ioError }
        }
      }
      return try body(reader)
    } catch let error as DrydockError where error.code == .noIdentity {
      throw DrydockError(
        .vaultLocked,
        "a rollback needs the device key that the vault had then: the undo log holds a secret, encrypted, which the "
          + "given key does not open", path: path, cause: error)
    } catch let error as DrydockError
      where [.badKey, .header, .mac, .payload, .armor, .cryptography].contains(error.code)
    {
      throw DrydockError(
        .nothingToUndo,
        "the encrypted undo log is corrupt (\(error.message)); restore from a backup",
        path: path, cause: error)
    }
  }

  /// Opens all that is sealed, before anything is staged.
  func check() throws {
    for name in record.changes.flatMap(\.files) where try isSealed(name) { try opening(name) { _ in } }
  }

  /// Stages what was at a path before.
  ///
  /// - Parameter takesChanged: whether a file that was written to since it was replaced comes back as it is.
  /// - Throws: ``DrydockError``: `conflict` when what is kept was written to since; `nothingToUndo` when it is gone.
  func putBack(_ change: ChangeRecord, on staged: StagedContainer, takesChanged: Bool = false) throws {
    guard let name = change.kept, let before = change.before else { return }
    if !takesChanged { try requireUnchanged(change, on: staged) }
    guard let status = try status(name) else {
      throw DrydockError(
        .nothingToUndo, "the version that was kept is gone; restore it from a backup",
        path: change.path.description)
    }
    if try isSealed(name) {
      try staged.putFile(at: change.path, metadata: before.metadata, size: before.size) {
        let file = $0
        try opening(name) { try $0.read(by: file.write) }
      }
    } else {
      try staged.adopt(name, in: directory, type: status.type, at: change.path)
    }
  }

  /// What is kept must be what was replaced: a program may still have had it open. What was written through another hard link is
  /// the content of both names again.
  func requireUnchanged(_ change: ChangeRecord, on staged: StagedContainer) throws {
    guard let name = change.kept, let before = change.before, let status = try status(name),
      status.links == 1
    else { return }
    let size = try isSealed(name) ? opening(name, \.plainSize) : status.size
    guard status.modified != before.metadata.modified || size != before.size else { return }
    throw DrydockError(
      .conflict,
      "the version that was kept was written to after it was replaced, by a program that had it open; nothing was "
        + "changed. It is \(directory.full(name)), the newer one is "
        + "\(staged.live.full(change.path))",
      path: change.path.description)
  }
}

/// What the entry still holds for steps that are reverted by down steps.
extension UndoEntry {
  /// Whether ``putBack(_:on:)`` can restore a path: not one that the transaction left unchanged. The entry of a redo of several
  /// transactions holds what was before all of them.
  package func hasCopy(of path: ContainerPath) -> Bool {
    record.steps.count < 2 && record.changes[path]?.before != nil
  }

  /// Stages what was at a path before the transaction, with all below it; a database with what belonged to it.
  ///
  /// - Returns: false when something is there now, or when the entry has nothing of that path.
  /// - Throws: ``DrydockError`` with code `conflict` when what is kept was written to since.
  package func putBack(_ path: ContainerPath, on staged: StagedContainer) throws -> Bool {
    guard hasCopy(of: path), try staged.status(of: path) == nil else { return false }
    let belonging =
      DatabaseFormat.sidecarSuffixes.map(path.withSuffix) + [DatabaseUnit.externalDataPath(of: path)]
    let changes = record.changes.filter { change in
      change.before != nil && ([path] + belonging).contains { $0 == change.path || change.path.isInside($0) }
    }
    for change in changes where try staged.status(of: change.path) == nil {
      if let before = change.before, before.type == .directory {
        try staged.putDirectory(at: change.path, metadata: before.metadata, flags: before.flags)
      } else {
        try putBack(change, on: staged)
      }
    }
    return true
  }

  /// What the steps of a transaction wrote down (``StagedContainer/attach(steps:)``); nil when they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is sealed and no given key opens it.
  package func steps(of transaction: String) throws -> [UInt8]? {
    let name = UndoRecord.stepsFile(of: transaction)
    return record.steps.contains(name) ? try contents(name) : nil
  }
}

extension StagedContainer {
  /// Keeps what the steps of this transaction wrote down in its undo entry: sealed when that is, and gone when it goes.
  ///
  /// - Parameter steps: bytes that ``UndoEntry/steps(of:)`` gives back.
  package func attach(steps bytes: [UInt8]) throws {
    guard !transaction.isEmpty else { return }
    let name = UndoRecord.stepsFile(of: transaction)
    try stage.directory.removeFile(name, missingIsFine: true)
    try stage.directory.create(name, bytes)
    if !undoSteps.contains(name) { undoSteps.append(name) }
  }

  /// Takes over what an undo entry that goes has of this kind, sealed or not.
  func handOn(_ entry: UndoEntry) throws {
    for name in entry.record.steps {
      for file in [name, UndoEntry.sealed(name)] where try entry.directory.status(file) != nil {
        try entry.directory.copyContents(of: file, to: file, in: stage.directory)
      }
      if !undoSteps.contains(name) { undoSteps.append(name) }
    }
  }
}

extension AgeReader {
  /// Reads all of the content in pieces.
  fileprivate func read(by body: (UnsafeRawBufferPointer) throws -> Void) throws {
    for offset in stride(from: 0, to: plainSize, by: 1 << 20) {
      let piece = try SecretBytes(count: Int(min(1 << 20, plainSize - offset))) {
        try read(into: $0, at: offset)
      }
      try piece.withBytes(body)
    }
  }
}
