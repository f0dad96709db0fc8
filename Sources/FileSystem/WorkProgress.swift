import Synchronization

/// How far a long operation has come.
///
/// The operation counts, on any of its threads; whoever shows the progress reads ``state`` as often as needed. File names are
/// not part of it: they may be secret.
public final class WorkProgress: Sendable {
  /// What an operation is doing.
  public enum Phase: String, Sendable, CaseIterable {
    case list, inspect, compare, snapshot, restore, migrate, rollback, check, commit, verify, export, rekey,
      remove,
      test
  }

  /// What is done so far.
  public struct State: Sendable, Equatable {
    /// What the operation is doing; nil before it begins.
    public internal(set) var phase: Phase?
    /// Bytes of this phase that are done, and of how many; nil if that is not known.
    public internal(set) var bytes: UInt64 = 0, totalBytes: UInt64?
    /// The same for paths, or for what a phase works on: archives of a repository.
    public internal(set) var files = 0, totalFiles: Int?
    /// Of a command that does the same several times, for archives, migrations, fixtures or containers: the number of the
    /// one in work, from 1 on, and of all.
    public internal(set) var item: Int?, items: Int?

    package init() {}
  }

  private let contents = Mutex<(state: State, measure: (@Sendable () -> UInt64)?)>((State(), nil))

  /// Nothing is done yet.
  public init() {}

  /// What is done so far, to be read from any thread.
  public var state: State {
    let (state, measure) = contents.withLock { ($0.state, $0.measure) }
    guard let measure else { return state }
    var measured = state
    measured.bytes = measure()
    return measured
  }

  /// Begins a phase at 0.
  ///
  /// - Parameter measure: gives the bytes that are done, called on the thread that reads ``state``; nil where
  ///   ``add(bytes:files:)`` counts them.
  package func begin(
    _ phase: Phase, totalBytes: UInt64? = nil, totalFiles: Int? = nil,
    measuring measure: (@Sendable () -> UInt64)? = nil
  ) {
    contents.withLock {
      var state = State()
      (state.phase, state.totalBytes, state.totalFiles) = (phase, totalBytes, totalFiles)
      (state.item, state.items) = ($0.state.item, $0.state.items)
      ($0.state, $0.measure) = (state, measure)
    }
  }

  package func add(bytes: UInt64 = 0, files: Int = 0) {
    contents.withLock {
      $0.state.bytes &+= bytes
      $0.state.files += files
    }
  }

  /// Sets what is done of the phase, where the operation itself has the sums.
  package func set(bytes: UInt64, files: Int = 0) {
    contents.withLock { ($0.state.bytes, $0.state.files) = (bytes, files) }
  }

  /// Begins one of several equal pieces of work; nil after the last.
  package func begin(item: Int?, of items: Int) {
    contents.withLock { ($0.state.item, $0.state.items) = (item, item == nil ? nil : items) }
  }
}
