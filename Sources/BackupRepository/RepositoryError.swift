/// What kept an archive or a repository from being written, read or restored, and what to do about it.
public struct RepositoryError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure; the command line maps each to an exit code.
  public enum Code: String, Sendable {
    /// No such archive, or a repository without the one that was asked for.
    case notFound
    /// A name that fits several archives or instances.
    case ambiguous
    /// An archive whose parts do not agree with each other or with their checksums.
    case damaged
    /// An archive of a format that this version does not know.
    case unsupported
    /// Data of another app, another instance or another schema version.
    case mismatch
    /// The repository and the container are in each other's way.
    case overlap
    /// A restore that would have to delete what it must spare.
    case conflict
    /// A path that the archive does not have.
    case missing
    /// Another process is at work on the repository.
    case locked
    /// The repository may not be read, or not be written.
    case permission
    /// Reading or writing failed.
    case io
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

  /// `path: message`.
  public var description: String { path.map { "\($0): \(message)" } ?? message }
}
