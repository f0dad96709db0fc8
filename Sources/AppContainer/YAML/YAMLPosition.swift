/// Where something stands in a text file; lines and columns count from 1, columns in Unicode scalars.
public struct YAMLPosition: Hashable, Sendable, CustomStringConvertible {
  /// The file as it was named to the parser.
  public var file: String
  /// The line, from 1.
  public var line: Int
  /// The column, from 1.
  public var column: Int

  /// A position from its parts.
  public init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  /// `file:line:column`, as editors understand it.
  public var description: String { "\(file):\(line):\(column)" }

  /// An error about this place, with `file:line:column` before its message.
  public func error(
    _ message: String, code: ContainerError.Code = .malformed, cause: (any Error)? = nil
  ) -> ContainerError {
    ContainerError(code, "\(self): \(message)", cause: cause)
  }
}
