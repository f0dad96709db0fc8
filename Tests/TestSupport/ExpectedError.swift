import DrydockErrors
import Testing

/// Expects one of Drydock's errors, by its code unless that is nil, and by parts of its text; gives the error.
///
/// A function, since closures that do something are not written inside `#expect`: the compiler (6.3) may take one that a macro
/// copied for another one of the same function.
@discardableResult
public func expectError<Value>(
  _ code: DrydockError.Code? = nil, _ words: String..., fileID: String = #fileID, path: String = #filePath,
  line: Int = #line, column: Int = #column, _ body: () throws -> Value
) -> DrydockError? {
  let found: String
  var error: DrydockError?
  do {
    found = "nothing was thrown: \(try body())"
  } catch let thrown as DrydockError {
    error = thrown
    found = "\(thrown.code): \(thrown)"
    let isExpected = code == nil || thrown.code == code
    if isExpected && words.allSatisfy(thrown.description.contains) { return thrown }
  } catch {
    found = "another error: \(error)"
  }
  let location = SourceLocation(fileID: fileID, filePath: path, line: line, column: column)
  Issue.record("\(found), not \(code?.rawValue ?? "any code") \(words)", sourceLocation: location)
  return error
}
