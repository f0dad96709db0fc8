import AppContainer
import DrydockErrors
import Formats

/// A list of changes in the words of JSON Patch (RFC 6902): add, remove, replace, move, copy, test.
struct DocumentPatch: DocumentRule {
  /// The words of a patch.
  enum Verb: String, CaseIterable, Sendable { case add, remove, replace, move, copy, test }

  private struct Step: Sendable {
    let verb: Verb
    let path: JSONPointer
    let from: JSONPointer?
    let value: YAMLNode?
    let ifMissing: IfMissing
    let ifExists: IfExists
    let position: YAMLPosition
  }

  private let steps: [Step]
  /// What the pointers of the steps start from.
  var base = JSONPointer(tokens: [])

  init(_ node: YAMLNode, _ what: String) throws {
    steps = try node.elements(what).map { try Self.step($0, of: what) }
  }

  private static func step(_ node: YAMLNode, of what: String) throws -> Step {
    let reader = try YAMLReader(
      node, what: "a step of \(what)", keys: ["op", "path", "from", "value", "if-missing", "if-exists"])
    guard let verb: Verb = try reader.choice("op") else {
      throw reader.position.error("a step of \(what) needs `op`, one of \(words)")
    }
    let path = try pointer(reader.required("path"), "`path`")
    let needs = (value: [.add, .replace, .test].contains(verb), from: [.move, .copy].contains(verb))
    for (key, isNeeded) in [("value", needs.value), ("from", needs.from)] {
      if let node = reader[key], !isNeeded {
        throw node.position.error("`\(verb.rawValue)` takes no `\(key)`")
      }
      if isNeeded { _ = try reader.required(key) }
    }
    let from = try reader["from"].map { try pointer($0, "`from`") }
    if let from, path.tokens.count > from.tokens.count,
      path.tokens.starts(with: from.tokens, by: { $0.isExactly($1) }),
      verb == .move
    {
      throw node.position.error("`\(from)` cannot be moved into itself, to `\(path)`")
    }
    if let node = reader["if-missing"], verb == .add || verb == .test {
      throw node.position.error("`\(verb.rawValue)` takes no `if-missing`")
    }
    if let node = reader["if-exists"], ![.add, .move, .copy].contains(verb) {
      throw node.position.error("`\(verb.rawValue)` takes no `if-exists`")
    }
    return Step(
      verb: verb, path: path, from: from, value: reader["value"],
      ifMissing: try reader.choice("if-missing") ?? .fail,
      ifExists: try reader.choice("if-exists") ?? .replace, position: node.position)
  }

  private static var words: String { Verb.allCases.map(\.rawValue).joined(separator: ", ") }

  private static func pointer(_ node: YAMLNode, _ what: String) throws -> JSONPointer {
    let text = try node.text(what)
    do {
      return try JSONPointer(text)
    } catch let error as DrydockError {
      throw node.position.error("\(what): \(error.message)")
    }
  }

  // MARK: Applying

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    try steps.compactMap { step in
      do {
        return try apply(step, to: &edit).map { "\(step.verb.rawValue) in \(what): \($0)" }
      } catch let failure as EditFailure {
        throw step.position.error("\(step.verb.rawValue) in \(what): \(failure.message)")
      }
    }
  }

  /// - Returns: a remark when nothing was done.
  private func apply<Value>(_ step: Step, to edit: inout DocumentEdit<Value>) throws -> String? {
    let path = absolute(step.path)
    let from = step.from.map(absolute)
    let value = try step.value.map { try Value($0) }
    if step.ifMissing == .skip, step.verb != .add, edit.value[from ?? path] == nil {
      return "`\(step.from ?? step.path)` is not there: skipped"
    }
    if step.ifExists != .replace, edit.value[path] != nil, edit.isMember(path), from != path {
      guard step.ifExists == .keep else {
        throw EditFailure("`\(step.path)` is there already: say `if-exists: keep` or `if-exists: replace`")
      }
      return "`\(step.path)` is there already: kept"
    }
    switch (step.verb, value, from) {
    case (.add, let value?, _): try edit.add(value, at: path)
    case (.replace, let value?, _): try edit.replace(path, with: value)
    case (.remove, _, _): try edit.remove(path)
    case (.move, _, let from?): try edit.move(from, to: path)
    case (.copy, _, let from?):
      guard let value = edit.value[from] else { throw EditFailure("`\(step.from ?? from)` is not there") }
      try edit.add(value, at: path)
    case (.test, let value?, _): try test(step, value, edit)
    default: break
    }
    return nil
  }

  private func test<Value: StructuredValue>(_ step: Step, _ wanted: Value, _ edit: DocumentEdit<Value>) throws
  {
    let path = absolute(step.path)
    let now = edit.value[path]
    if let now, now.matches(wanted) { return }
    throw EditFailure(
      "`\(step.path)` is \(now.map { edit.shown($0, at: path) } ?? "not there"), not \(edit.shown(wanted, at: path))"
    )
  }

  private func absolute(_ pointer: JSONPointer) -> JSONPointer {
    JSONPointer(tokens: base.tokens + pointer.tokens)
  }
}

extension DocumentEdit {
  /// Whether a pointer leads to a member of a dictionary, which an addition would replace.
  fileprivate func isMember(_ pointer: JSONPointer) -> Bool {
    value[JSONPointer(tokens: pointer.tokens.dropLast())]?.shape == .dictionary || pointer.tokens.isEmpty
  }
}
