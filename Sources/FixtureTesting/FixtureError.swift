/// What went wrong with a fixture itself; a container that is not as expected is no error but a finding.
public struct FixtureError: Error, CustomStringConvertible, Sendable {
  /// The kind of failure.
  public enum Code: String, Sendable {
    /// `fixture.yaml` or a file of the container cannot be understood.
    case malformed
    /// The container could not be made from its files.
    case notBuilt
    /// There is no fixture where one was looked for.
    case notFound
    /// A container cannot be captured without leaving something behind that must not stay, or not at all.
    case notCaptured
    /// A golden is of a released version, and may not change any more.
    case frozen
  }

  /// The kind of failure.
  public var code: Code
  /// What failed, why, and what to do next: lower case, no secrets.
  public var message: String
  /// The path it is about, when there is one.
  public var path: String?
  /// The line in that file, from 1, when it is known.
  public var line: Int?
  /// The error underneath, when there is one.
  public var cause: (any Error)?

  /// An error with its parts.
  public init(
    _ code: Code, _ message: String, path: String? = nil, line: Int? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.path = path
    self.line = line
    self.cause = cause
  }

  /// The path, or `path:line:1`, as editors understand it; nil when there is none.
  public var place: String? { path.map { path in line.map { "\(path):\($0):1" } ?? path } }

  /// `place: message`.
  public var description: String { place.map { "\($0): \(message)" } ?? message }
}
