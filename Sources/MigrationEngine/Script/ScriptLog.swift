import AppContainer
import ContainerTransaction

/// What the scripts of migrations wrote, as it is kept with a transaction's undo.
package enum ScriptLog {
  /// A text for each stream of each script of a transaction, in the order in which they ran; none when nothing is kept.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no key at hand opens it;
  ///   ``DrydockError`` with code `damagedHistory`.
  package static func output(
    of transaction: TransactionID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [String] {
    guard let bytes = try Transaction.steps(of: transaction, in: container, options: options) else {
      return []
    }
    return try StepMemories(decoding: bytes).output
  }
}
