import AppContainer
import ContainerDiff
import ContainerTransaction

/// What can be done to a container in one transaction, such as `.migrate(catalog)` or `.restore(archive)`.
///
/// ``Container/plan(_:)`` says what it would change, ``Container/apply(_:)`` makes it.
public struct ContainerChange<Value> {
  /// Makes the change.
  let run: (Container) throws -> TransactionOutcome<Value>
  /// Makes it on a stage that is discarded.
  let dryRun: (Container) throws -> DryRunOutcome<Value>
}

/// A change that is not made yet.
///
/// Nothing has been read so far. Whatever the container holds when ``apply()`` locks it is changed, also what the app has
/// written since the difference was computed.
public struct ChangePlan<Value> {
  package let container: Container
  let change: ContainerChange<Value>

  /// Makes the change on a stage, discards it, and returns what the change would return and its difference. The container
  /// may be in use.
  ///
  /// - Throws: as ``apply()``, but for what only a commit detects.
  public func dryRun() throws -> DryRunOutcome<Value> { try change.dryRun(container) }

  /// What the change would change, from a dry run; it prints as the commands print it.
  public var difference: ContainerDifference { get throws { try dryRun().difference } }

  /// Makes the change in one transaction.
  ///
  /// - Throws: ``DrydockError``; nothing has changed then.
  @discardableResult
  public func apply() throws -> TransactionOutcome<Value> { try change.run(container) }
}

extension Container {
  /// A plan for a change, which shows its difference before it is applied.
  public func plan<Value>(_ change: ContainerChange<Value>) -> ChangePlan<Value> {
    ChangePlan(container: self, change: change)
  }

  /// Makes a change in one transaction.
  ///
  /// - Throws: ``DrydockError``; nothing has changed then.
  @discardableResult
  public func apply<Value>(_ change: ContainerChange<Value>) throws -> TransactionOutcome<Value> {
    try change.run(self)
  }
}
