/// What went wrong in this module, and what to do about it.
public struct AgeError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure that callers tell apart.
  public enum Code: String, Sendable {
    /// The cryptographic library refused to work.
    case cryptography
    /// Bytes or text that are not what they should be.
    case malformed
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, why, and what to do; never a secret.
  public let message: String
  /// The error below this one, when there is one.
  public let cause: (any Error)?

  /// Makes an error.
  public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  /// The message.
  public var description: String { message }
}
