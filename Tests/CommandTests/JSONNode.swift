import Foundation
import TestSupport
import Testing

/// A value in a JSON document. What is not there, however deep, has no text, number, flag or list.
struct JSONNode: CustomStringConvertible {
  private let value: Any?

  /// - Parameter text: the one object that a command prints.
  init(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let value = try? JSONSerialization.jsonObject(with: Data(text.utf8))
    self.value = try #require(
      value as? [String: Any], "standard output is not one JSON object: \(text)",
      sourceLocation: sourceLocation)
  }

  private init(value: Any?) { self.value = value }

  static func lines(_ text: String) throws -> [JSONNode] {
    try text.split(separator: "\n").map { try JSONNode(String($0)) }
  }

  subscript(key: String) -> JSONNode { JSONNode(value: (value as? [String: Any])?[key]) }

  subscript(index: Int) -> JSONNode { list.indices.contains(index) ? list[index] : JSONNode(value: nil) }

  var exists: Bool { value != nil }
  var text: String? { value as? String }
  var number: Int? { value as? Int }
  var flag: Bool? { value as? Bool }
  var list: [JSONNode] { (value as? [Any] ?? []).map { JSONNode(value: $0) } }
  var texts: [String] { list.compactMap(\.text) }
  var keys: [String] { (value as? [String: Any] ?? [:]).keys.sorted() }
  var description: String { value.map { "\($0)" } ?? "nothing" }

  /// The same text for equal values.
  var canonical: String {
    let data = try? JSONSerialization.data(withJSONObject: [value ?? NSNull()], options: .sortedKeys)
    return data.map { String(decoding: $0, as: UTF8.self) } ?? "not JSON"
  }

  /// Keys that are not snake case, at any depth.
  var oddKeys: [String] {
    list.flatMap(\.oddKeys)
      + keys.flatMap { key in
        (key.wholeMatch(of: /[a-z][a-z0-9]*(_[a-z0-9]+)*/) == nil ? [key] : []) + self[key].oddKeys
      }
  }
}

extension CommandResult {
  func json(sourceLocation: SourceLocation = #_sourceLocation) throws -> JSONNode {
    try JSONNode(output, sourceLocation: sourceLocation)
  }

  /// Expects an exit code, and words on standard output and standard error.
  @discardableResult
  func expect(
    exit: Int32 = 0, output: String..., errors: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) -> CommandResult {
    let missing = output.filter { !self.output.contains($0) } + errors.filter { !self.errors.contains($0) }
    #expect(
      exitCode == exit && missing.isEmpty, "exit \(exit) expected, and \(missing)\n\(self)",
      sourceLocation: sourceLocation)
    return self
  }
}
