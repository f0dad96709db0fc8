import AppContainer
import ContainerTransaction
import GRDB

/// What kept migrations from being read, planned or run, and what to do about it.
public struct MigrationError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure; the command line maps each to an exit code.
  public enum Code: String, Sendable {
    /// The migration files are not in order: names, gaps, syntax, unknown words.
    case catalog
    /// Nothing says which version the container has.
    case unknownVersion
    /// A container without a history has a marker whose number would stand for migrations that nobody has released.
    case firstContact
    /// The container was migrated by a newer release of the app.
    case newer
    /// An applied migration's files have changed.
    case edited
    /// An applied migration's files are gone.
    case missing
    /// A migration was never applied, but a later one was.
    case outOfOrder
    /// What was released has been changed, removed, or something put before it.
    case released
    /// A marker says less than the history, or two markers differ.
    case contradiction
    /// The history file cannot be understood.
    case damagedHistory
    /// A migration cannot be taken back by steps.
    case noWayBack
    /// A step could not be done.
    case stepFailed
    /// What a migration expects of the container is not so.
    case checkFailed
    /// What a migration promises is not so after its steps.
    case verifyFailed
    /// A SQL statement failed, or is not allowed in a migration.
    case sql
    /// A step changes a schema that belongs to the app's own database library, which would refuse it then.
    case foreignSchema
    /// The command does not make sense for this container.
    case usage
  }

  /// The kind of failure.
  public var code: Code
  /// What failed, why, and what to do next; about a migration it starts with `file:line:column`.
  public var message: String
  /// The path in the container, or the file, that it is about.
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

  /// What kept a file of migrations from being read, as an error of the catalog.
  init(reading error: any Error) {
    switch error {
    case let error as MigrationError: self = error
    case let error as ContainerError: self.init(.catalog, error.message, path: error.path, cause: error)
    default: self.init(.catalog, String(describing: error), cause: error)
    }
  }

  /// The message; with the path before it, unless it starts with a place in a migration.
  public var description: String {
    switch code {
    case .noWayBack, .stepFailed, .checkFailed, .verifyFailed, .sql, .foreignSchema: message
    default: path.map { "\($0): \(message)" } ?? message
    }
  }

  /// The one line that a failure of any module says about itself; never a statement's arguments.
  static func text(of error: any Error) -> String {
    switch error {
    case let error as DatabaseError: error.plainMessage
    case let error as MigrationError: error.description
    case let error as ContainerError: error.description
    case let error as TransactionError: error.description
    default: String(describing: error)
    }
  }
}
