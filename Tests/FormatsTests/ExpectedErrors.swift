import DrydockErrors
import Testing

/// Expects an error by its code, or any error, and by a part of its words.
func expectError(
  _ code: DrydockError.Code?, _ words: String = "", sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> Any
) {
  do {
    _ = try body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
  } catch {
    let isExpected = code == nil || (error as? DrydockError)?.code == code
    let hasWords = words.isEmpty || "\(error)".contains(words)
    #expect(isExpected && hasWords, "\(error)", sourceLocation: sourceLocation)
  }
}
