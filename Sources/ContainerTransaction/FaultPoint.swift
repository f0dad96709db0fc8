import AppContainer

/// The moments of a transaction at which tests interrupt it: one after every step that a crash could separate
/// from the next.
public enum FaultPoint: String, Sendable, CaseIterable {
  case staged, checked, treeBuilt = "tree-built", synced, rewalked, committed, exchanged, carried
  case undoKept = "undo-kept", oldRemoved = "old-removed", done
}

/// What happens at the fault points: nothing, outside of tests.
public struct FaultInjection: Sendable {
  let reach: @Sendable (FaultPoint) throws -> Void

  /// Nothing happens.
  public static let none = FaultInjection { _ in }

  /// The process dies at a point, as in a power cut.
  public static func kill(at point: FaultPoint) -> FaultInjection {
    FaultInjection { if $0 == point { killOwnProcess() } }
  }

  /// Runs a closure at every point.
  public init(_ reach: @escaping @Sendable (FaultPoint) throws -> Void) { self.reach = reach }
}
