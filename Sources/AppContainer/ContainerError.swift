/// What went wrong with a container, its configuration or a file in it, and what to do about it.
public struct ContainerError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure; the command line maps each to an exit code.
  public enum Code: String, Sendable {
    case notFound, notAContainer, badPath, badConfiguration, malformed, unreadable, inUse, io, unsupported
    case permission, noSpace
    /// The vault is sealed, and no device key is at hand that opens it.
    case vaultLocked
    /// The vault's file is damaged, no vault, or of a newer format.
    case badVault
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

  /// What failed, where and why, without what to do next: for a message about something that happened after a change was
  /// made, where "run it again" would be wrong.
  package var reason: String {
    let what = message.prefix(upTo: message.firstRange(of: "; ")?.lowerBound ?? message.endIndex)
    return path.map { "\($0): \(what)" } ?? String(what)
  }

  /// `path: message`.
  public var description: String { path.map { "\($0): \(message)" } ?? message }
}
