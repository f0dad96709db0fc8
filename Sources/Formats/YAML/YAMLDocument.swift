import Yams

/// One parsed YAML file: the tree, and remarks on what only looks like something else.
package struct YAMLDocument: Sendable {
  /// The top node; nil when the file holds nothing but comments.
  package var root: YAMLNode?
  /// Places where a plain scalar means something else than in YAML 1.1.
  package var notes: [YAMLNote]

  /// Parses one document.
  ///
  /// - Parameters:
  ///   - bytes: the file's content, UTF-8.
  ///   - file: the name to use in messages.
  /// - Throws: `DrydockError` (`.malformed`) whose message starts with `file:line:column`.
  package init(_ bytes: [UInt8], file: String) throws {
    let text = try YAMLText.decode(bytes, file: file)
    var builder = YAMLTreeBuilder(file: file)
    do {
      // A rule that matches every plain scalar: Yams then takes `true` and `"true"` for different keys, as
      // this schema does. What the plain ones mean is decided by `YAMLCoreSchema`.
      let resolver = try Resolver.basic.appending(YAMLTreeBuilder.plainTag, "^[\\s\\S]*$")
      let node = try Yams.Parser(yaml: text, resolver: resolver, encoding: .utf8).singleRoot()
      root = try node.map { try builder.node($0, depth: 0) }
    } catch let error as YamlError {
      throw YAMLText.translate(error, text: text, file: file)
    }
    notes = builder.notes
  }

  /// Parses one document from text.
  package init(text: String, file: String) throws {
    try self.init(Array(text.utf8), file: file)
  }
}

/// Turns Yams' nodes into typed ones.
struct YAMLTreeBuilder {
  static let plainTag: Tag.Name = "drydock:plain"
  /// Far above what a person writes; aliases of aliases reach it within a few lines.
  private static let nodeLimit = 200_000
  private static let depthLimit = 100

  let file: String
  var notes: [YAMLNote] = []
  private var count = 0

  init(file: String) { self.file = file }

  mutating func node(_ node: Yams.Node, depth: Int) throws -> YAMLNode {
    let position = position(of: node)
    count += 1
    guard count <= Self.nodeLimit else {
      throw position.error("more than \(Self.nodeLimit) values in one file")
    }
    guard depth <= Self.depthLimit else {
      throw position.error("nested deeper than \(Self.depthLimit) levels")
    }
    switch node {
    case .scalar(let scalar):
      let value = try self.scalar(scalar, at: position)
      note(value, at: position)
      return YAMLNode(content: .scalar(value), position: position)
    case .sequence(let sequence):
      try checkTag(sequence.tag, "!!seq", at: position)
      let nodes = try sequence.map { try self.node($0, depth: depth + 1) }
      return YAMLNode(content: .sequence(nodes), position: position)
    case .mapping(let mapping):
      try checkTag(mapping.tag, "!!map", at: position)
      let pairs = try mapping.map { try pair($0.key, $0.value, depth: depth) }
      return YAMLNode(content: .mapping(try checked(pairs)), position: position)
    case .alias(let alias):
      throw position.error("the alias `\(alias.anchor)` could not be resolved")
    }
  }

  private func position(of node: Yams.Node) -> YAMLPosition {
    YAMLPosition(file: file, line: node.mark?.line ?? 1, column: node.mark?.column ?? 1)
  }

  private mutating func pair(
    _ key: Yams.Node, _ value: Yams.Node, depth: Int
  ) throws -> YAMLMapping.Pair {
    let position = position(of: key)
    guard case .scalar(let scalar) = key else {
      throw position.error("a key must be a single value, not a list or a mapping")
    }
    let typed = try self.scalar(scalar, at: position)
    if typed.isPlain, typed.source == "<<" {
      throw position.error("merge keys (`<<`) are not part of YAML 1.2: write the keys out")
    }
    note(typed, at: position)
    return YAMLMapping.Pair(key: typed, keyPosition: position, value: try node(value, depth: depth + 1))
  }

  private func scalar(_ scalar: Yams.Node.Scalar, at position: YAMLPosition) throws -> YAMLScalar {
    let tag = scalar.tag.rawValue
    let isPlainStyle = scalar.style == .plain || scalar.style == .any
    let isUntagged = tag.isEmpty || tag == Self.plainTag.rawValue
    if isUntagged && isPlainStyle {
      guard let value = YAMLCoreSchema.resolve(scalar.string) else {
        throw position.error("the number `\(scalar.string)` does not fit 64 bits: quote it if it is text")
      }
      return YAMLScalar(value: value, source: scalar.string, isPlain: true)
    }
    let value =
      isUntagged
      ? .text(scalar.string) : try YAMLTags.value(of: scalar.string, tag: tag, at: position)
    return YAMLScalar(value: value, source: scalar.string, isPlain: false)
  }

  private mutating func note(_ scalar: YAMLScalar, at position: YAMLPosition) {
    guard scalar.isPlain, let message = YAMLLegacy.note(for: scalar) else { return }
    let note = YAMLNote(position: position, message: message)
    if !notes.contains(note) { notes.append(note) }
  }

  private func checkTag(_ tag: Tag, _ expected: String, at position: YAMLPosition) throws {
    let name = YAMLTags.written(tag.rawValue)
    guard name.isEmpty || name == "!" || name == expected else {
      throw position.error("the tag `\(name)` does not fit here")
    }
  }

  /// Yams compares keys by their characters; `1` and `0x1` are one key, too.
  private func checked(_ pairs: [YAMLMapping.Pair]) throws -> YAMLMapping {
    var seen: [YAMLScalar.Value: YAMLPosition] = [:]
    for pair in pairs {
      if let first = seen.updateValue(pair.keyPosition, forKey: pair.key.value) {
        throw pair.keyPosition.error(
          "the key `\(pair.key.source)` is there already, in line \(first.line): keep one of them")
      }
    }
    return YAMLMapping(pairs: pairs)
  }
}
