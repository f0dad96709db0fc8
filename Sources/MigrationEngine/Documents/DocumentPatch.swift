import DrydockErrors
import Formats

/// A list of changes with the operations of JSON Patch (RFC 6902): add, remove, replace, move, copy, test.
struct DocumentPatch: DocumentRule, ArgumentValue {
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
  /// The prefix of all pointers.
  var base = JSONPointer(tokens: [])

  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws { try self.init(node, "`\(name)`") }

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

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    try steps.compactMap { step in
      do {
        return try apply(step, to: &edit).map { "\(step.verb.rawValue) in \(what): \($0)" }
      } catch let failure as StepFailure {
        throw step.position.error("\(step.verb.rawValue) in \(what): \(failure.message)")
      }
    }
  }

  /// - Returns: a note when nothing was done.
  private func apply<Value>(_ step: Step, to edit: inout DocumentEdit<Value>) throws -> String? {
    let path = absolute(step.path)
    let from = step.from.map(absolute)
    let value = try step.value.map { try Value($0) }
    if step.ifMissing == .skip, step.verb != .add, edit.value[from ?? path] == nil {
      return "`\(step.from ?? step.path)` does not exist: skipped"
    }
    if step.ifExists != .replace, edit.value[path] != nil, edit.isMember(path), from != path {
      guard step.ifExists == .keep else {
        throw StepFailure("`\(step.path)` exists already: say `if-exists: keep` or `if-exists: replace`")
      }
      return "`\(step.path)` exists already: kept"
    }
    switch (step.verb, value, from) {
    case (.add, let value?, _): try edit.add(value, at: path)
    case (.replace, let value?, _): try edit.replace(path, with: value)
    case (.remove, _, _): try edit.remove(path)
    case (.move, _, let from?): try edit.move(from, to: path)
    case (.copy, _, let from?):
      guard let value = edit.value[from] else { throw StepFailure("`\(step.from ?? from)` does not exist") }
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
    throw StepFailure(
      "`\(step.path)` is \(now.map { edit.shown($0, at: path) } ?? "absent"), not \(edit.shown(wanted, at: path))"
    )
  }

  private func absolute(_ pointer: JSONPointer) -> JSONPointer {
    JSONPointer(tokens: base.tokens + pointer.tokens)
  }
}

extension DocumentEdit {
  /// Whether a pointer names a member of a dictionary, which an addition would replace.
  fileprivate func isMember(_ pointer: JSONPointer) -> Bool {
    value[JSONPointer(tokens: pointer.tokens.dropLast())]?.shape == .dictionary || pointer.tokens.isEmpty
  }
}

/// The versions of a document `{version, data}`, with the changes from each to the next.
struct DocumentVersions: DocumentRule {
  private struct Version: Sendable {
    let number: Int64
    /// Fields that a document of an older version may lack.
    let defaults: YAMLMapping?
    let steps: DocumentPatch?
  }

  private let versionKey: String
  /// Empty when the fields are beside the version.
  private let dataKey: String
  private let versions: [Version]
  private let oldest: Int64
  /// The version of a document without one.
  private let unversioned: Int64?
  private let position: YAMLPosition

  init(reading reader: YAMLReader) throws {
    position = reader.position
    versionKey = try reader.text("version-key") ?? "version"
    dataKey = try reader.text("data-key") ?? "data"
    if let node = reader["data-key"], dataKey == versionKey {
      throw node.position.error("`version-key` and `data-key` are the same")
    }
    var base = JSONPointer(tokens: [])
    if !dataKey.isEmpty { base.tokens.append(dataKey) }
    let node = try reader.required("versions")
    versions = try node.pairs("`versions`").pairs.map { try Self.version($0, base) }
      .sorted { $0.number < $1.number }
    guard let first = versions.first else { throw node.position.error("`versions` is empty") }
    oldest = try reader.integer("oldest") ?? first.number - 1
    unversioned = try reader.integer("unversioned")
    if let node = reader["oldest"], oldest >= first.number {
      throw node.position.error("`oldest` is not before the first of `versions`, \(first.number)")
    }
    if let node = reader["unversioned"], let unversioned, !isKnown(unversioned) {
      throw node.position.error("`unversioned` is none of the versions: \(words)")
    }
  }

  private static func version(_ pair: YAMLMapping.Pair, _ base: JSONPointer) throws -> Version {
    guard case .integer(let number) = pair.key.value, number > Int64.min else {
      throw pair.keyPosition.error("a version is an integer, not \(pair.key.value.summary)")
    }
    let reader = try YAMLReader(pair.value, what: "version \(number)", keys: ["defaults", "steps"])
    var steps = try reader["steps"].map { try DocumentPatch($0, "`steps`") }
    steps?.base = base
    return Version(
      number: number, defaults: try reader["defaults"]?.pairs("`defaults`"), steps: steps)
  }

  private func isKnown(_ version: Int64) -> Bool {
    version == oldest || versions.contains { $0.number == version }
  }

  private var words: String { ([oldest] + versions.map(\.number)).map(String.init).joined(separator: ", ") }

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    do {
      let version = try prepare(&edit)
      var notes: [String] = []
      let later = versions.filter { $0.number > version }
      for next in later {
        let data = JSONPointer(tokens: dataKey.isEmpty ? [] : [dataKey])
        if let defaults = next.defaults { try fill(defaults, at: data, &edit) }
        notes += try next.steps?.apply(to: &edit, of: "\(what), to version \(next.number)") ?? []
      }
      // Last, so that the document has that version.
      if let newest = later.last {
        try edit.add(Value(integer: newest.number), at: JSONPointer(tokens: [versionKey]))
      }
      return notes
    } catch let failure as StepFailure {
      throw position.error("defaults.document-migrate: \(what): \(failure.message)")
    }
  }

  /// The document's version; one without gets its wrapper.
  private func prepare<Value: StructuredValue>(_ edit: inout DocumentEdit<Value>) throws -> Int64 {
    let pointer = JSONPointer(tokens: [versionKey])
    let isWrapper = edit.value.shape == .dictionary && (dataKey.isEmpty || edit.value[data] != nil)
    guard edit.value.shape == .dictionary, let written = edit.value[pointer] else {
      guard let unversioned else {
        throw StepFailure(
          "it has no `\(versionKey)`: name it with `version-key`, or say with `unversioned` which version that is"
        )
      }
      if !isWrapper {
        guard !dataKey.isEmpty else {
          throw StepFailure("it is \(edit.value.shape.nounPhrase), not a dictionary")
        }
        edit.wrap(as: dataKey)
      }
      return unversioned
    }
    guard let version = written.integer else {
      throw StepFailure("its version, `\(pointer)`, is \(written.shape.nounPhrase), not an integer")
    }
    guard isKnown(version) else {
      let newest = versions.last?.number ?? oldest
      throw StepFailure(
        version > newest
          ? "it has version \(version), and the newest one known here is \(newest): a newer app wrote it"
          : "it has version \(version), and known here are \(words)")
    }
    if !isWrapper { throw StepFailure("it has no `\(dataKey)`: name it with `data-key`") }
    return version
  }

  private var data: JSONPointer { JSONPointer(tokens: [dataKey]) }

  /// Adds missing fields, in nested dictionaries, too.
  private func fill<Value: StructuredValue>(
    _ fields: YAMLMapping, at pointer: JSONPointer, _ edit: inout DocumentEdit<Value>
  ) throws {
    for pair in fields.pairs {
      guard case .string(let key) = pair.key.value else {
        throw pair.keyPosition.error("a field's name is text, not \(pair.key.value.summary): quote it")
      }
      let place = JSONPointer(tokens: pointer.tokens + [key])
      guard let present = edit.value[place] else {
        try edit.add(Value(pair.value), at: place)
        continue
      }
      if let inner = pair.value.mapping, present.shape == .dictionary { try fill(inner, at: place, &edit) }
    }
  }
}
