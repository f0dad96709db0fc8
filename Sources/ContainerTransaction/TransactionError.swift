import AppContainer

/// What kept a transaction from being done, and what to do about it.
public struct TransactionError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure; the command line maps each to an exit code.
  public enum Code: String, Sendable {
    /// Another Drydock command holds the container's lock.
    case locked
    /// A program has something of the container open.
    case inUse
    /// A program may have something of the container open without being seen, and that was to be refused.
    case notVisible
    /// The container changed while the transaction was prepared.
    case changedMeanwhile
    /// A commit was killed half way, or stopped and could not be taken back: `recover` ends it.
    case interrupted
    /// The container, or a part of it, cannot be changed by this user in this place.
    case notWritable
    /// Both the transaction and the app changed the same thing.
    case conflict
    /// A check of the staged result failed.
    case checkFailed
    /// There is nothing to undo, or it is no longer kept.
    case nothingToUndo
    /// The state directory holds what cannot be understood.
    case damagedState
    /// The state directory belongs to another user, or others can write in it: what it says does not count.
    case foreignState
    /// Not enough free space to stage.
    case noSpace
    /// A named thing is not in the container, or is there when it must not be.
    case missing, exists, ambiguous
  }

  /// The kind of failure.
  public var code: Code
  /// What failed, why, and what to do next: lower case, no secrets.
  public var message: String
  /// The path it is about, when there is one.
  public var path: String?
  /// The error underneath, when there is one.
  public var cause: (any Error)?

  /// An error with its parts.
  public init(_ code: Code, _ message: String, path: String? = nil, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.cause = cause
  }

  /// What an error says went wrong, without what to do next, which is about a change that was not made.
  static func reason(of error: any Error) -> String {
    switch error {
    case let error as ContainerError: error.reason
    case let error as Self: ContainerError(.io, error.message, path: error.path).reason
    default: String(describing: error)
    }
  }

  /// `path: message`.
  public var description: String { path.map { "\($0): \(message)" } ?? message }
}
