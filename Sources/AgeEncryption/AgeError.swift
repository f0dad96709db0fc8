/// What went wrong in this module, and what to do about it. No error holds a secret.
public struct AgeError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure that callers tell apart.
  public enum Code: String, Sendable {
    /// The cryptographic library refused to work.
    case cryptography
    /// Bytes or text that are not what they should be, such as the text of a key.
    case malformed
    /// The header of an age file breaks the rules of the format.
    case header
    /// A key fits, but the header is not the one that was written: its authentication code is wrong.
    case mac
    /// None of the identities and passphrases given opens the file.
    case noIdentity
    /// The encrypted content is damaged, cut short or followed by something else.
    case payload
    /// The ASCII armor around the file breaks the rules of the format.
    case armor
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, why, and what to do; never a secret.
  public let message: String
  /// The file's path, where it is known.
  public let path: String?
  /// The error below this one, when there is one.
  public let cause: (any Error)?

  /// Makes an error.
  public init(_ code: Code, _ message: String, path: String? = nil, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.cause = cause
  }

  /// The message, after the path where there is one.
  public var description: String { path.map { "\($0): \(message)" } ?? message }

  /// The same error, saying which file it is about.
  public func at(_ path: String?) -> AgeError {
    guard let path, self.path == nil else { return self }
    return AgeError(code, message, path: path, cause: cause)
  }

  static func header(_ what: String) -> AgeError {
    AgeError(
      .header, "the age header is malformed: \(what); the file is damaged or was made by a broken program")
  }

  static func payload(_ what: String) -> AgeError {
    AgeError(
      .payload, "the encrypted content is damaged: \(what); use another copy or fetch this one again")
  }

  static func armor(_ what: String) -> AgeError {
    AgeError(.armor, "the ASCII armor is malformed: \(what); use another copy or fetch this one again")
  }
}
