import DrydockErrors

/// Where something stands in a text file; lines and columns count from 1, columns in Unicode scalars.
package struct YAMLPosition: Hashable, Sendable, CustomStringConvertible {
  /// The file as it was named to the parser.
  package var file: String
  /// The line, from 1.
  package var line: Int
  /// The column, from 1.
  package var column: Int

  /// A position from its parts.
  package init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  /// `file:line:column`, as editors understand it.
  package var description: String { "\(file):\(line):\(column)" }

  /// An error about this place, with `file:line:column` before its message.
  package func error(
    _ message: String, code: DrydockError.Code = .malformed, cause: (any Error)? = nil
  ) -> DrydockError {
    DrydockError(code, "\(self): \(message)", cause: cause)
  }
}
