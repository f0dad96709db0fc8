import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem

/// The outcome of a dry run; it has the members of its value, too.
@dynamicMemberLookup
public struct DryRunOutcome<Value> {
  /// What the real run would return.
  public var value: Value
  /// What the real run would change.
  public var difference: ContainerDifference

  /// A member of the value.
  public subscript<Member>(dynamicMember member: KeyPath<Value, Member>) -> Member { value[keyPath: member] }

  package func map<Other>(_ body: (Value) throws -> Other) rethrows -> DryRunOutcome<Other> {
    DryRunOutcome<Other>(value: try body(value), difference: difference)
  }
}

/// A stage that is never committed: for a dry run, and to read a container.
///
/// The live container is not modified, not even its change times, and may be in use; databases are captured as a
/// snapshot captures them. Until the stage is released, it holds the container's shared lock; then it removes its private
/// directory.
package final class DiscardedStage: StagedContainer {
  private let work: ScratchDirectory

  /// - Parameter held: the lock, where the caller holds it; then databases are not kept for a difference.
  package convenience init(
    on container: Container, under held: ContainerLock? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws {
    let lock = try held ?? ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    try self.init(container, options, keepsBefore: held == nil) { _ in lock.root }
  }

  /// A stage for a container that does not exist yet.
  package convenience init(
    creating container: Container, options: TransactionOptions = TransactionOptions()
  ) throws {
    try self.init(container, options, keepsBefore: true) {
      try Transaction.emptyRoot(of: container, in: $0, exclusive: false, options)
    }
  }

  private init(
    _ container: Container, _ options: TransactionOptions, keepsBefore: Bool,
    root: (Directory) throws -> Directory
  ) throws {
    work = try Transaction.workDirectory(for: container)
    super.init(
      container, live: try root(work.directory), stage: work.directory, keepsBefore: keepsBefore,
      options: options)
  }

  /// The outcome of a dry run: a value, and what the stage changes.
  ///
  /// - Parameter rowLimit: how many rows of a table are listed, of each kind.
  /// - Throws: what the checks before a commit throw. What only a commit detects is not found.
  package func outcome<Value>(_ value: Value, rowLimit: Int = 0) throws -> DryRunOutcome<Value> {
    _ = try check()
    return DryRunOutcome(
      value: value, difference: try difference(rowLimit: rowLimit).marking(triggered))
  }
}

extension Transaction {
  /// An empty directory in the place of a container that does not exist yet, with the container's groups, locked.
  static func emptyRoot(
    of container: Container, in folder: Directory, exclusive: Bool, _ options: TransactionOptions
  ) throws -> Directory {
    let groups = try ContainerLock.groups(of: container, exclusive: exclusive, timeout: options.lockTimeout)
    let name: ContainerPath = "nothing"
    try folder.createDirectory(name)
    return try folder.directory(name).showing(groups: groups)
  }

  /// A private directory for the stage; after a kill, the next command removes it.
  ///
  /// It is beside the container's state when there is one; otherwise, or where nothing can be made in that, in the
  /// directory for temporary files.
  package static func workDirectory(for container: Container) throws -> ScratchDirectory {
    let name = try ContainerPath("look-\(TransactionID.new())")
    guard let state = try? StateDirectory.existing(for: container),
      let stages = try? state.directory.directory(StateDirectory.stage),
      let work = try? ScratchDirectory(named: name, in: stages)
    else { return try ScratchDirectory.temporary() }
    return work
  }
}
