/// Reads a mapping with known keys: an unknown one is an error at once, naming the nearest known word, so that
/// a misspelt key is never reported as a missing one.
package struct YAMLReader: Sendable {
  /// Where the mapping starts.
  package let position: YAMLPosition
  /// What the mapping is, for messages: `defaults.rename`, `drydock.yaml`.
  package let what: String
  private let mapping: YAMLMapping

  /// Starts to read `node`, which must be a mapping whose keys are all in `keys`. A null node (nothing
  /// after the colon) counts as an empty mapping.
  ///
  /// - Throws: `DrydockError` with `file:line:column` in its message.
  package init(_ node: YAMLNode, what: String, keys: [String]) throws {
    position = node.position
    self.what = what
    mapping = node.isNull ? YAMLMapping(pairs: []) : try node.pairs(what)
    for pair in mapping.pairs {
      guard case .text(let key) = pair.key.value, keys.contains(key) else {
        throw pair.keyPosition.error(
          "unknown key `\(pair.key.source)` in \(what); "
            + NearestWord.hint(for: pair.key.source, among: keys))
      }
    }
  }

  /// The value of a key, when it is there.
  package subscript(_ key: String) -> YAMLNode? { mapping[key] }

  /// The value of a key that must be there.
  package func required(_ key: String) throws -> YAMLNode {
    guard let node = mapping[key] else { throw position.error("\(what) needs the key `\(key)`") }
    return node
  }

  /// The text of a key, when it is there.
  package func text(_ key: String) throws -> String? { try mapping[key]?.text("`\(key)`") }

  /// The Bool of a key, when it is there.
  package func boolean(_ key: String) throws -> Bool? { try mapping[key]?.boolean("`\(key)`") }

  /// The integer of a key, when it is there.
  package func integer(_ key: String) throws -> Int64? { try mapping[key]?.integer("`\(key)`") }

  /// A list of texts, when it is there; a single text counts as a list of one.
  package func texts(_ key: String) throws -> [String]? { try mapping[key]?.texts("`\(key)`") }

  /// One of the words of an enumeration, when the key is there.
  package func choice<Choice: RawRepresentable & CaseIterable>(
    _ key: String, of type: Choice.Type = Choice.self
  ) throws -> Choice? where Choice.RawValue == String {
    guard let node = mapping[key] else { return nil }
    let words = Choice.allCases.map(\.rawValue)
    guard case .text(let word) = node.scalar?.value, let choice = Choice(rawValue: word) else {
      let written = node.scalar?.source ?? ""
      throw node.position.error(
        "`\(key)` of \(what) is one of \(words.joined(separator: ", ")), not \(node.summary)"
          + (NearestWord.to(written, among: words).map { "; did you mean `\($0)`?" } ?? ""))
    }
    return choice
  }
}

extension YAMLNode {
  /// The text of this scalar; `what` names it in the error.
  package func text(_ what: String) throws -> String {
    if case .text(let text) = scalar?.value { return text }
    let advice = scalar.map { $0.value == .null ? "" : ": quote it" } ?? ""
    throw position.error("\(what) is a text, not \(summary)\(advice)")
  }

  /// The Bool of this scalar; `what` names it in the error.
  package func boolean(_ what: String) throws -> Bool {
    if case .boolean(let value) = scalar?.value { return value }
    let advice = scalar?.legacyReading.map { $0.hasPrefix("the Bool ") ? ": write \($0.dropFirst(9))" : "" }
    throw position.error("\(what) is true or false, not \(summary)\(advice ?? "")")
  }

  /// The integer of this scalar; `what` names it in the error.
  package func integer(_ what: String) throws -> Int64 {
    if case .integer(let value) = scalar?.value { return value }
    throw position.error("\(what) is an integer, not \(summary)")
  }

  /// A list of texts, or one text alone.
  package func texts(_ what: String) throws -> [String] {
    if let nodes = sequence { return try nodes.map { try $0.text("an element of \(what)") } }
    guard case .text(let text) = scalar?.value else {
      throw position.error("\(what) is a text or a list of texts, not \(summary)")
    }
    return [text]
  }

  /// The elements of a list; `what` names it in the error.
  package func elements(_ what: String) throws -> [YAMLNode] {
    if let nodes = sequence { return nodes }
    throw position.error("\(what) is a list (lines that start with `- `), not \(summary)")
  }

  /// The keys and values of a mapping; `what` names it in the error.
  package func pairs(_ what: String) throws -> YAMLMapping {
    if let mapping { return mapping }
    throw position.error("\(what) is a mapping (`key: value`), not \(summary)")
  }
}
