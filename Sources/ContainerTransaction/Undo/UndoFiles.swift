import AgeEncryption
import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// The files that an undo keeps: as they were, or sealed.
struct UndoFiles {
  let directory: Directory
  /// What opens those that are sealed.
  let keys: AgeKeys
  /// Whether a file that was written to since it was replaced comes back as it is.
  var takesChanged = false

  /// The name of a kept file once it is sealed.
  static func sealed(_ name: ContainerPath) -> ContainerPath { name.withSuffix(".age") }

  /// Whether a file is kept sealed.
  func isSealed(_ name: ContainerPath) throws -> Bool {
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

  /// Opens a file that is kept sealed.
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

  /// Stages what was at a path before.
  ///
  /// - Throws: ``DrydockError``: `conflict` when what is kept was written to since, unless that is taken as it is;
  ///   `nothingToUndo` when it is gone.
  func putBack(_ change: ChangeRecord, on staged: StagedContainer) throws {
    guard let name = change.kept, let before = change.before else { return }
    try requireUnchanged(change, on: staged)
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
    guard !takesChanged, let name = change.kept, let before = change.before, let status = try status(name),
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

  /// Opens all that is sealed, before anything is staged.
  func check(_ record: UndoRecord) throws {
    for name in record.changes.flatMap({ [$0.kept, $0.settingsAfter].compactMap { $0 } })
    where try isSealed(name) { try opening(name) { _ in } }
  }
}

/// What an undo entry still holds, for steps that are reverted by down steps: what the transaction replaced, as it
/// was before it.
package struct RevertSource {
  /// The transaction whose steps are reverted.
  let origin: String
  unowned let staged: StagedContainer
  let record: UndoRecord
  let files: UndoFiles

  /// Whether the undo is that transaction's own alone. That of a redo of several holds what was before all of them.
  private var isExact: Bool { record.steps.count < 2 }

  /// Whether ``putBack(_:)`` can restore a path: not one that the transaction left unchanged.
  package func hasCopy(of path: ContainerPath) -> Bool {
    isExact && record.changes[path]?.before != nil
  }

  /// Stages what was at a path before the transaction, with all below it; a database with what belonged to it.
  ///
  /// - Returns: false when something is there now, or when the undo has nothing of that path.
  /// - Throws: ``DrydockError`` with code `conflict` when what is kept was written to since.
  package func putBack(_ path: ContainerPath) throws -> Bool {
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
        try files.putBack(change, on: staged)
      }
    }
    return true
  }

  /// What the transaction's steps wrote down (``StagedContainer/attach(steps:)``); nil when they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no given key opens it.
  package func steps() throws -> [UInt8]? {
    let name = StepFile.name(origin)
    return record.steps.contains(name) ? try files.contents(name) : nil
  }
}

/// A file of an undo with what the steps of one transaction wrote down for their down steps: `steps-<transaction>`. A rollback
/// hands on those of the transactions that it undoes, so that they are there again after a redo.
enum StepFile {
  private static let prefix = Array("steps-".utf8)

  static func name(_ transaction: String) -> ContainerPath {
    ContainerPath(name: prefix + Array(transaction.utf8))
  }

  static func transaction(_ name: ContainerPath) -> String {
    String(decoding: name.bytes.dropFirst(prefix.count), as: UTF8.self)
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

extension Transaction {
  /// What the steps of a transaction wrote down; nil when it is kept no more, or they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no given key opens it.
  package static func steps(
    of transaction: TransactionID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [UInt8]? {
    let name = StepFile.name(transaction.description)
    guard let undo = try UndoLog(container, options.deviceKeys).entry(transaction),
      undo.record.steps.contains(name)
    else { return nil }
    return try undo.kept.contents(name)
  }
}

extension StagedContainer {
  /// Keeps what the steps of this transaction wrote down with its undo: sealed when the undo is, and gone when it goes.
  ///
  /// - Parameter steps: bytes that ``RevertSource/steps`` gives back.
  package func attach(steps bytes: [UInt8]) throws {
    guard !transaction.isEmpty else { return }
    let name = StepFile.name(transaction)
    try stage.directory.removeFile(name, missingIsFine: true)
    try stage.directory.create(name, bytes)
    if !undoNotes.steps.contains(name) { undoNotes.steps.append(name) }
  }

  /// Takes over what an undo that goes has of this kind, sealed or not.
  func handOn(_ record: UndoRecord, in folder: Directory) throws {
    for name in record.steps {
      for file in [name, UndoFiles.sealed(name)] where try folder.status(file) != nil {
        try folder.copyContents(of: file, to: file, in: stage.directory)
      }
      if !undoNotes.steps.contains(name) { undoNotes.steps.append(name) }
    }
  }
}
