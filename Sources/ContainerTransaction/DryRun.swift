import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Foundation

/// What a dry run found.
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

extension Transaction {
  /// Runs the body on a stage and throws the stage away. Nothing of the live container is touched, not even a
  /// change time, and it may be in use; databases are captured as a snapshot captures them.
  ///
  /// - Throws: what the real run would throw, but for what only a commit finds out.
  package static func dryRun<Value>(
    on container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    let lock = try ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    return try TemporaryStage.with(for: container) { folder in
      let staged = StagedContainer(
        container, live: lock.root, stage: folder, locks: [:], keepsBefore: true,
        options: options)
      let value = try body(staged)
      if options.checksResult || staged.requiresCheck { try StageCheck(staged).run() }
      return DryRunOutcome(value: value, difference: try staged.difference())
    }
  }

  /// Looks at a container through a stage that is discarded: databases are captured when they are read.
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
    try TemporaryStage.with(for: container) { folder in
      try body(
        StagedContainer(
          container, live: lock.root, stage: folder, locks: [:], keepsBefore: false,
          options: options))
    }
  }
}

/// What a planning phase has read of the live container: each path as it was when it was first looked at.
struct LiveReads {
  private var statuses: [ContainerPath: IndexedStatus?] = [:]

  mutating func note(_ status: FileStatus?, of path: ContainerPath) {
    // The state directory may come into the root, and moves its time.
    if path.isRoot || statuses[path] != nil { return }
    statuses[path] = .some(status.map(IndexedStatus.init))
  }

  /// - Throws: ``DrydockError`` with code `changedMeanwhile` when one of the paths has changed.
  func requireCurrent(in live: Directory) throws {
    // On an overlay a file that is opened to be locked gets another inode.
    let isOverlay = live.isOverlay()
    for (path, seen) in statuses {
      let now = try live.status(path).map(IndexedStatus.init)
      if isOverlay, now?.type == seen?.type, now?.size == seen?.size, now?.modified == seen?.modified {
        continue
      }
      if !isOverlay, now == seen { continue }
      throw DrydockError(
        .changedMeanwhile,
        "\(path) changed while the transaction was prepared; nothing was changed, run it again",
        path: live.path)
    }
  }
}

extension Transaction {
  /// Runs a body with a private directory for work beside a transaction, which is removed afterwards, or by the next
  /// command when this one is killed.
  package static func withWorkDirectory<Value>(
    for container: Container, _ body: (Directory) throws -> Value
  ) throws -> Value {
    try TemporaryStage.with(for: container, body)
  }
}

/// A stage for reading only: beside the container's state when there is one (the next transaction removes
/// what a kill leaves there); when that is not there, or nothing can be made in it, in the directory for temporary files.
enum TemporaryStage {
  static func with<Value>(for container: Container, _ body: (Directory) throws -> Value) throws -> Value {
    let name = try ContainerPath("look-\(TransactionID.new())")
    guard let state = try? StateDirectory.existing(for: container, .beside),
      let stages = try? state.directory.directory(StateDirectory.stage),
      (try? stages.createDirectory(name)) != nil
    else { return try ScratchDirectory.withTemporary(body) }
    defer { try? stages.removeTree(name) }
    return try body(stages.directory(name))
  }
}

extension Transaction {
  /// As ``dryRun(on:options:body:)``, for a container that does not exist yet.
  package static func dryCreate<Value>(
    _ container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    let groups = try ContainerLock.groups(of: container, exclusive: false, timeout: options.lockTimeout)
    return try TemporaryStage.with(for: container) { folder in
      let nothing: ContainerPath = "nothing"
      try folder.createDirectory(nothing)
      let staged = StagedContainer(
        container, live: try folder.directory(nothing).showing(groups: groups), stage: folder, locks: [:],
        keepsBefore: true, options: options)
      let value = try body(staged)
      return DryRunOutcome(value: value, difference: try staged.difference())
    }
  }
}
