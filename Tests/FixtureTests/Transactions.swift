import AppContainer
import ContainerTransaction

extension Transaction {
  /// Reads a container on a stage that is discarded when this returns.
  static func inspect<Value>(
    _ container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> Value {
    try body(DiscardedStage(on: container, options: options))
  }
}
