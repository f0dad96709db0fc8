import AppContainer
import FileSystem

/// A file of an undo with what the steps of one transaction wrote down for their way back: `steps-<transaction>`. A rollback
/// hands on those of the transactions that it undoes, so that they are there again after a redo.
enum StepFile {
  private static let prefix = Array("steps-".utf8)

  static func name(_ transaction: String) -> ContainerPath {
    ContainerPath(name: prefix + Array(transaction.utf8))
  }

  /// The transaction of such a file.
  static func transaction(_ name: ContainerPath) -> String {
    String(decoding: name.bytes.dropFirst(prefix.count), as: UTF8.self)
  }

  /// Whether a name is that of one that is not sealed.
  static func isOne(_ name: [UInt8]) -> Bool {
    name.starts(with: prefix) && !name.ends(with: Array(".age".utf8)) && !name.ends(with: Array(".new".utf8))
  }
}

extension Array where Element == UInt8 {
  fileprivate func ends(with suffix: [UInt8]) -> Bool { self.suffix(suffix.count) == suffix[...] }
}

extension Transaction {
  /// What the steps of a transaction wrote down; nil when it is kept no more, or they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no key at hand opens it.
  package static func steps(
    of transaction: TransactionID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [UInt8]? {
    let name = StepFile.name(transaction.description)
    guard let undo = try UndoReader(container, options).undo(of: transaction),
      undo.record.steps.contains(name)
    else { return nil }
    return try undo.kept.contents(name)
  }
}

extension StagedContainer {
  /// Keeps what the steps of this transaction wrote down with its undo: sealed when the undo is, and gone when it goes.
  ///
  /// - Parameter steps: bytes that ``KeptState/steps`` gives back.
  package func attach(steps bytes: [UInt8]) throws {
    guard !transaction.isEmpty else { return }
    let name = StepFile.name(transaction)
    try stage.removeFile(name, missingIsFine: true)
    try stage.create(name, bytes)
    if !steps.contains(name) { steps.append(name) }
  }

  /// Takes over what an undo that goes has of this kind, sealed or not.
  func handOn(_ record: UndoRecord, in folder: Directory) throws {
    for name in record.steps {
      for file in [name, KeptFiles.sealed(name)] where try folder.status(file) != nil {
        try folder.copyContents(of: file, to: file, in: stage)
      }
      if !steps.contains(name) { steps.append(name) }
    }
  }
}
