import DrydockErrors

/// Reads a mapping with known keys. An unknown key is an error that suggests the nearest known one, so that a misspelt key
/// is never reported as missing.
package struct YAMLReader: Sendable {
  package let position: YAMLPosition
  /// The mapping's name for messages: `defaults.rename`, `drydock.yaml`.
  package let what: String
  private let mapping: YAMLMapping

  /// Reads a mapping whose keys are all in `keys`. Null (nothing after the colon) counts as an empty mapping.
  package init(_ node: YAMLNode, what: String, keys: [String]) throws {
    try self.init(node, what: what)
    if let error = unknownKeys(besides: keys).first { throw error }
  }

  /// Reads a mapping, with an error for each key that is not in `keys`.
  package static func tolerant(
    _ node: YAMLNode, what: String, keys: [String]
  ) throws -> (reader: YAMLReader, unknown: [DrydockError]) {
    let reader = try YAMLReader(node, what: what)
    return (reader, reader.unknownKeys(besides: keys))
  }

  private init(_ node: YAMLNode, what: String) throws {
    position = node.position
    self.what = what
    mapping = node.isNull ? YAMLMapping(pairs: []) : try node.pairs(what)
  }

  private func unknownKeys(besides keys: [String]) -> [DrydockError] {
    mapping.pairs.compactMap { pair in
      if case .string(let key) = pair.key.value, keys.contains(key) { return nil }
      return pair.keyPosition.error(
        "unknown key `\(pair.key.source)` in \(what); "
          + NearestWord.hint(for: pair.key.source, among: keys))
    }
  }

  /// The value of a key, if present.
  package subscript(_ key: String) -> YAMLNode? { mapping[key] }

  /// The value of a required key.
  package func required(_ key: String) throws -> YAMLNode {
    guard let node = mapping[key] else { throw position.error("\(what) needs the key `\(key)`") }
    return node
  }

  package func text(_ key: String) throws -> String? { try mapping[key]?.text("`\(key)`") }

  package func boolean(_ key: String) throws -> Bool? { try mapping[key]?.boolean("`\(key)`") }

  package func integer(_ key: String) throws -> Int64? { try mapping[key]?.integer("`\(key)`") }

  /// A list of texts; a single text counts as a list of one.
  package func texts(_ key: String) throws -> [String]? { try mapping[key]?.texts("`\(key)`") }

  /// The pairs of a mapping; none when the key is absent, or nothing is after it.
  package func pairs(_ key: String) throws -> [YAMLMapping.Pair] {
    guard let node = mapping[key], !node.isNull else { return [] }
    return try node.pairs("`\(key)`").pairs
  }

  /// One of the words of an enumeration.
  package func choice<Choice: RawRepresentable & CaseIterable>(
    _ key: String, of type: Choice.Type = Choice.self
  ) throws -> Choice? where Choice.RawValue == String {
    guard let node = mapping[key] else { return nil }
    let words = Choice.allCases.map(\.rawValue)
    // The word `null` is not text in YAML.
    let value = node.isNull ? .string("null") : node.scalar?.value
    guard case .string(let word) = value, let choice = Choice(rawValue: word) else {
      let written = node.scalar?.source ?? ""
      throw node.position.error(
        "`\(key)` of \(what) is one of \(words.joined(separator: ", ")), not \(node.summary)"
          + (NearestWord.to(written, among: words).map { "; did you mean `\($0)`?" } ?? ""))
    }
    return choice
  }
}

extension YAMLNode {
  /// The text of this scalar; `what` names the value in the error, here and below.
  package func text(_ what: String) throws -> String {
    if case .string(let text) = scalar?.value { return text }
    let advice = scalar.map { $0.value.isNull ? "" : ": quote it" } ?? ""
    throw position.error("\(what) is a text, not \(summary)\(advice)")
  }

  package func boolean(_ what: String) throws -> Bool {
    if case .boolean(let value) = scalar?.value { return value }
    let advice = scalar?.legacyReading.map { $0.hasPrefix("the Bool ") ? ": write \($0.dropFirst(9))" : "" }
    throw position.error("\(what) is true or false, not \(summary)\(advice ?? "")")
  }

  package func integer(_ what: String) throws -> Int64 {
    if case .integer(let value) = scalar?.value { return value }
    throw position.error("\(what) is an integer, not \(summary)")
  }

  /// A list of texts, or a single text.
  package func texts(_ what: String) throws -> [String] {
    if let nodes = sequence { return try nodes.map { try $0.text("an element of \(what)") } }
    guard case .string(let text) = scalar?.value else {
      throw position.error("\(what) is a text or a list of texts, not \(summary)")
    }
    return [text]
  }

  package func elements(_ what: String) throws -> [YAMLNode] {
    if let nodes = sequence { return nodes }
    throw position.error("\(what) is a list (lines that start with `- `), not \(summary)")
  }

  package func pairs(_ what: String) throws -> YAMLMapping {
    if let mapping { return mapping }
    throw position.error("\(what) is a mapping (`key: value`), not \(summary)")
  }
}

extension YAMLMapping.Pair {
  /// The key when it is text; `what` names it in the error.
  package func textKey(_ what: String) throws -> String {
    guard case .string(let text) = key.value else {
      throw keyPosition.error("\(what) is text, not \(key.value.summary): quote it")
    }
    return text
  }
}
