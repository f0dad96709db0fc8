import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem

/// The outcome of a dry run.
public struct DryRunOutcome<Value> {
  /// What the body returned.
  public var value: Value
  /// What the real run would change.
  public var difference: ContainerDifference

  /// The outcome with another value.
  package func map<Other>(_ body: (Value) throws -> Other) rethrows -> DryRunOutcome<Other> {
    DryRunOutcome<Other>(value: try body(value), difference: difference)
  }
}

/// Work on a stage that is discarded.
extension Transaction {
  /// Runs the body on a stage and discards the stage. Nothing of the live container is touched, not even a
  /// change time, and it may be in use; databases are captured as a snapshot captures them.
  ///
  /// - Throws: what the real run would throw, except for what only a commit detects.
  package static func dryRun<Value>(
    on container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    let lock = try ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    return try dryRun(on: container, options, body) { _ in lock.root }
  }

  /// As ``dryRun(on:options:body:)``, for a container that does not exist yet.
  package static func dryCreate<Value>(
    _ container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    try dryRun(on: container, options, body) {
      try emptyRoot(of: container, in: $0, exclusive: false, options)
    }
  }

  private static func dryRun<Value>(
    on container: Container, _ options: TransactionOptions, _ body: (StagedContainer) throws -> Value,
    root: (Directory) throws -> Directory
  ) throws -> DryRunOutcome<Value> {
    let work = try workDirectory(for: container)
    defer { work.remove() }
    let staged = StagedContainer(
      container, live: try root(work.directory), stage: work.directory, keepsBefore: true, options: options)
    let value = try body(staged)
    if options.checksResult || staged.undoNotes.requiresCheck { try StageCheck(staged).run() }
    return DryRunOutcome(value: value, difference: try staged.difference())
  }

  /// An empty directory in the place of a container that does not exist yet, with the container's groups, locked.
  static func emptyRoot(
    of container: Container, in folder: Directory, exclusive: Bool, _ options: TransactionOptions
  ) throws -> Directory {
    let groups = try ContainerLock.groups(of: container, exclusive: exclusive, timeout: options.lockTimeout)
    let name: ContainerPath = "nothing"
    try folder.createDirectory(name)
    return try folder.directory(name).showing(groups: groups)
  }

  /// Reads a container through a stage that is discarded: databases are captured when they are read.
  package static func inspect<Value>(
    _ container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> Value {
    let lock = try ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    return try inspect(container, under: lock, options: options, body: body)
  }

  /// As ``inspect(_:options:body:)``, with the lock held.
  package static func inspect<Value>(
    _ container: Container, under lock: ContainerLock, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> Value {
    let work = try workDirectory(for: container)
    defer { work.remove() }
    return try body(
      StagedContainer(container, live: lock.root, stage: work.directory, options: options))
  }

  /// A private directory for the stage. The caller removes it; after a kill, the next command does.
  ///
  /// It is beside the container's state when there is one; otherwise, or where nothing can be made in that, in the
  /// directory for temporary files.
  package static func workDirectory(for container: Container) throws -> ScratchDirectory {
    let name = try ContainerPath("look-\(TransactionID.new())")
    guard let state = try? StateDirectory.existing(for: container, .beside),
      let stages = try? state.directory.directory(StateDirectory.stage),
      let work = try? ScratchDirectory(named: name, in: stages)
    else { return try ScratchDirectory.temporary() }
    return work
  }
}
