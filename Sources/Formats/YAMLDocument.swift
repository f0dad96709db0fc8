import DrydockErrors
import Yams

/// A parsed YAML file: the tree, and notes on ambiguous scalars.
package struct YAMLDocument: Sendable {
  /// The top node; nil for a file of comments only.
  package var root: YAMLNode?
  /// Plain scalars that have another meaning in YAML 1.1.
  package var notes: [YAMLNote]

  /// Parses one document.
  ///
  /// - Parameter file: the name for messages.
  /// - Throws: `DrydockError` (`.malformed`) whose message starts with `file:line:column`.
  package init(_ bytes: [UInt8], file: String) throws {
    let text = try Self.decode(bytes, file: file)
    var builder = YAMLTreeBuilder(file: file)
    do {
      // A tag for every plain scalar, so that Yams distinguishes the keys `true` and `"true"`. `YAMLScalar.resolve` decides
      // what plain scalars mean.
      let resolver = try Resolver.basic.appending(YAMLTreeBuilder.plainTag, "^[\\s\\S]*$")
      let node = try Yams.Parser(yaml: text, resolver: resolver, encoding: .utf8).singleRoot()
      root = try node.map { try builder.node($0, depth: 0) }
    } catch let error as YamlError {
      throw Self.translate(error, text: text, file: file)
    }
    notes = builder.notes
  }

  package init(text: String, file: String) throws {
    try self.init(Array(text.utf8), file: file)
  }
}

/// Converts Yams' nodes into typed ones.
struct YAMLTreeBuilder {
  static let plainTag: Tag.Name = "drydock:plain"
  /// Far above what a person writes, but a few lines of nested aliases reach it.
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
      let isSet = sequence.tag.rawValue == "!set"
      if !isSet { try checkTag(sequence.tag, "!!seq", at: position) }
      let nodes = try sequence.map { try self.node($0, depth: depth + 1) }
      return YAMLNode(content: .sequence(nodes), position: position, isSet: isSet)
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
      guard let value = YAMLScalar.resolve(scalar.string) else {
        throw position.error("the number `\(scalar.string)` does not fit 64 bits: quote it if it is text")
      }
      return YAMLScalar(value: value, source: scalar.string, isPlain: true)
    }
    let value =
      isUntagged
      ? .string(scalar.string) : try YAMLScalar.value(of: scalar.string, tag: tag, at: position)
    return YAMLScalar(value: value, source: scalar.string, isPlain: false)
  }

  private mutating func note(_ scalar: YAMLScalar, at position: YAMLPosition) {
    guard let message = scalar.note else { return }
    let note = YAMLNote(position: position, message: message)
    if !notes.contains(note) { notes.append(note) }
  }

  private func checkTag(_ tag: Tag, _ expected: String, at position: YAMLPosition) throws {
    let name = YAMLScalar.writtenTag(tag.rawValue)
    guard name.isEmpty || name == "!" || name == expected else {
      throw position.error("the tag `\(name)` does not fit here")
    }
  }

  /// Yams compares keys by their characters; `1` and `0x1` are the same key as well, and so are texts that Unicode takes for
  /// equal, and both zeros.
  private func checked(_ pairs: [YAMLMapping.Pair]) throws -> YAMLMapping {
    var seen: [PropertyListValue: YAMLPosition] = [:]
    for pair in pairs {
      let key: PropertyListValue =
        switch pair.key.value {
        case .string(let text): .string(text.precomposedStringWithCanonicalMapping)
        case .real(0): .real(0)
        case let value: value
        }
      if let first = seen.updateValue(pair.keyPosition, forKey: key) {
        throw pair.keyPosition.error(
          "duplicate key `\(pair.key.source)`, first in line \(first.line): keep one of them")
      }
    }
    return YAMLMapping(pairs: pairs)
  }
}

// Decodes text, and translates Yams' errors to errors with positions.
extension YAMLDocument {
  /// The text of a file, without a byte order mark.
  private static func decode(_ bytes: [UInt8], file: String) throws -> String {
    if let text = TextFile.utf8(bytes) { return String(decoding: text, as: UTF8.self) }
    var (decoder, iterator, valid) = (UTF8(), bytes.makeIterator(), String.UnicodeScalarView())
    while case .scalarValue(let scalar) = decoder.decode(&iterator) { valid.append(scalar) }
    if valid.first == "\u{FEFF}" { valid.removeFirst() }
    throw position(after: String(valid), file).error("this byte is not UTF-8: save the file as UTF-8")
  }

  private static func translate(_ error: YamlError, text: String, file: String) -> DrydockError {
    switch error {
    case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _):
      let position = YAMLPosition(file: file, line: mark.line, column: mark.column)
      if let tab = tab(in: text, line: mark.line) {
        let place = YAMLPosition(file: file, line: mark.line, column: tab)
        return place.error("a tab in the indentation, which YAML forbids: use spaces")
      }
      if problem.contains("Maximum nesting") { return position.error("nested too deeply to be read") }
      let note = context.map { " (\($0.text), from line \($0.mark.line))" } ?? ""
      return position.error("not valid YAML: \(problem)\(note)")
    case .composer(_, let problem, let mark, _):
      let position = YAMLPosition(file: file, line: mark.line, column: mark.column)
      if problem.contains("another document") {
        return position.error("a second document starts here: one file holds one document")
      }
      if problem.contains("undefined alias") {
        return position.error("this alias has no anchor before it (an anchor cannot hold itself)")
      }
      return position.error("not valid YAML: \(problem)")
    case .duplicatedKeysInMapping(let keys, let context):
      let position = YAMLPosition(file: file, line: context.mark.line, column: context.mark.column)
      let key = keys.first.map { "`\($0)`" } ?? ""
      return position.error("duplicate key \(key) in this mapping: keep one of them")
    case .reader(let problem, let offset, _, _):
      return position(after: text.prefix(offset ?? 0), file).error("not valid YAML: \(problem)")
    case .memory:
      return position(after: "", file).error("nested too deeply to be read")
    default:
      return position(after: "", file).error("not valid YAML", cause: error)
    }
  }

  private static func position(after text: some StringProtocol, _ file: String) -> YAMLPosition {
    let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
    return YAMLPosition(file: file, line: lines.count, column: (lines.last?.count ?? 0) + 1)
  }

  private static func tab(in text: String, line: Int) -> Int? {
    let lines = text.split(maxSplits: line, omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard line >= 1, line <= lines.count else { return nil }
    let indentation = lines[line - 1].prefix { $0 == " " || $0 == "\t" }
    return indentation.firstIndex(of: "\t").map {
      indentation.distance(from: indentation.startIndex, to: $0) + 1
    }
  }
}
