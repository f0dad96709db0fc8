/// What went wrong with an archive file, and what to do about it.
public struct ArchiveError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure that callers tell apart.
  public enum Code: String, Sendable {
    /// The file is something else.
    case notAnArchive
    /// The file ends too early.
    case truncated
    /// The file contradicts itself or its checksums.
    case damaged
    /// The file is encrypted, and no key at hand opens it.
    case noIdentity
    /// The file is encrypted in a way that is not read.
    case encrypted
    /// The archive was written by a newer version.
    case unsupported
    /// A member's name or link could lead out of the directory that it is unpacked in, or comes twice.
    case unsafeName
    /// Larger than this format allows.
    case limit
    /// The operating system refused; `cause` says how.
    case io
    /// The caller broke the rules of an interface.
    case invalidUse
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, why, and what to do.
  public let message: String
  /// The archive's path, where it is known.
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

  /// The same error, saying which archive it is about.
  public func at(_ path: String?) -> ArchiveError {
    guard let path, self.path == nil else { return self }
    return ArchiveError(code, message, path: path, cause: cause)
  }

  static func damaged(_ what: String) -> ArchiveError {
    ArchiveError(.damaged, "\(what); the archive is damaged: use another one or fetch this one again")
  }

  static func truncated(_ what: String) -> ArchiveError {
    ArchiveError(.truncated, "\(what); the archive was cut short: use another one or fetch this one again")
  }

  static func io(_ doing: String, _ cause: any Error) -> ArchiveError {
    ArchiveError(.io, "\(doing) failed: \(cause); fix that and try again", cause: cause)
  }
}
