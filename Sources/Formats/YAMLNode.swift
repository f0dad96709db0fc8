import DrydockErrors
import Foundation

/// One node of a parsed YAML document, with its place in the file.
package struct YAMLNode: Sendable {
  /// What a node holds.
  package indirect enum Content: Sendable {
    /// A single value.
    case scalar(YAMLScalar)
    /// A list.
    case sequence([YAMLNode])
    /// Keys and values, in the order of the file.
    case mapping(YAMLMapping)
  }

  /// What the node holds.
  package var content: Content
  /// Where the node starts.
  package var position: YAMLPosition
  /// Whether it is a sequence with the tag `!set`.
  package var isSet = false

  /// The value when this is a scalar.
  package var scalar: YAMLScalar? {
    if case .scalar(let scalar) = content { scalar } else { nil }
  }

  /// The elements when this is a sequence.
  package var sequence: [YAMLNode]? {
    if case .sequence(let nodes) = content { nodes } else { nil }
  }

  /// The keys and values when this is a mapping.
  package var mapping: YAMLMapping? {
    if case .mapping(let mapping) = content { mapping } else { nil }
  }

  /// Whether this is the null scalar (an empty value counts).
  package var isNull: Bool { scalar?.value.isNull == true }

  /// What the node is, for messages: "the text `on`", "a list", "a mapping".
  package var summary: String {
    switch content {
    case .scalar(let scalar): scalar.value.summary
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }
}

/// A scalar: its typed value and how it was written.
package struct YAMLScalar: Sendable {
  /// The typed value, never a container: one of the YAML 1.2 core schema, a date or data.
  package var value: PropertyListValue
  /// The characters between the delimiters, after unescaping.
  package var source: String
  /// Whether it was written without quotes and without a tag.
  package var isPlain: Bool

  /// The meaning of this plain scalar in YAML 1.1, if it differs.
  package var legacyReading: String? { isPlain ? Self.legacyReading(of: source) : nil }
}

/// A mapping: pairs in the order of the file; no two keys are equal.
package struct YAMLMapping: Sendable {
  /// A key with its value.
  package struct Pair: Sendable {
    /// The key's value.
    package var key: YAMLScalar
    package var keyPosition: YAMLPosition
    /// The value.
    package var value: YAMLNode
  }

  /// The pairs in the order of the file.
  package var pairs: [Pair]

  /// The value of a text key.
  package subscript(_ key: String) -> YAMLNode? {
    pairs.first { if case .string(let name) = $0.key.value { name.isExactly(key) } else { false } }?.value
  }
}

extension YAMLNode {
  /// The node of a value from Swift code. Dictionaries are sorted by key.
  package init(_ value: PropertyListValue, at position: YAMLPosition) {
    switch value {
    case .array(let values):
      self.init(values.map { YAMLNode($0, at: position) }, at: position)
    case .set(let values):
      self.init(values.strings.map { YAMLNode(.string($0), at: position) }, at: position)
      isSet = true
    case .dictionary(let values):
      self.init(values.sorted().map { (.string($0.key), YAMLNode($0.value, at: position)) }, at: position)
    default:
      self.init(content: .scalar(YAMLScalar(value)), position: position)
    }
  }

  package init(_ nodes: [YAMLNode], at position: YAMLPosition) {
    self.init(content: .sequence(nodes), position: position)
  }

  /// A mapping with scalar keys.
  package init(_ pairs: [(key: PropertyListValue, value: YAMLNode)], at position: YAMLPosition) {
    let pairs = pairs.map {
      YAMLMapping.Pair(key: YAMLScalar($0.key), keyPosition: position, value: $0.value)
    }
    self.init(content: .mapping(YAMLMapping(pairs: pairs)), position: position)
  }

  /// An unquoted word, which has a special meaning for some arguments.
  package init(word: String, at position: YAMLPosition) {
    let scalar = YAMLScalar(value: .string(word), source: word, isPlain: true)
    self.init(content: .scalar(scalar), position: position)
  }
}

extension YAMLScalar {
  /// Values that YAML cannot represent become null, which every reader rejects.
  fileprivate init(_ value: PropertyListValue) {
    switch value {
    case .array, .set, .dictionary, .unknown: self.init(value: .null, source: "", isPlain: false)
    case .string(let text): self.init(value: value, source: text, isPlain: false)
    case .data: self.init(value: value, source: "", isPlain: false)
    default: self.init(value: value, source: value.description, isPlain: false)
    }
  }
}

extension PropertyListValue {
  /// The value for messages about YAML, with its type: "the text `on`".
  package var summary: String {
    switch self {
    case .boolean, .int, .long: "the \(typeName) \(self)"
    case .integer, .unsigned: "the integer \(self)"
    case .real: "the real \(self)"
    case .single: "the float \(self)"
    case .string(let value): "the text `\(value)`"
    case .date: "a date"
    case .data(let bytes): "data of \(bytes.count) bytes"
    case .array, .set: "a list"
    case .dictionary: "a mapping"
    case .unknown: "null"
    }
  }
}

/// A note about a place in a document.
package struct YAMLNote: Hashable, Sendable, CustomStringConvertible {
  package var position: YAMLPosition
  package var message: String

  package init(position: YAMLPosition, message: String) {
    (self.position, self.message) = (position, message)
  }

  /// `file:line:column: message`.
  package var description: String { "\(position): \(message)" }
}

/// A place in a text file. Lines and columns count from 1, columns in Unicode scalars.
package struct YAMLPosition: Hashable, Sendable, CustomStringConvertible {
  package var file: String
  package var line: Int
  package var column: Int

  package init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  /// `file:line:column`, which editors understand.
  package var description: String { "\(file):\(line):\(column)" }

  /// An error whose message starts with this place.
  package func error(
    _ message: String, code: DrydockError.Code = .malformed, cause: (any Error)? = nil
  ) -> DrydockError {
    DrydockError(code, "\(self): \(message)", cause: cause)
  }
}
