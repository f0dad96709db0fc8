import Foundation

/// One node of a parsed YAML document, with its place in the file.
public struct YAMLNode: Sendable {
  /// What a node holds.
  public indirect enum Content: Sendable {
    /// A single value.
    case scalar(YAMLScalar)
    /// A list.
    case sequence([YAMLNode])
    /// Keys and values, in the order of the file.
    case mapping(YAMLMapping)
  }

  /// What the node holds.
  public var content: Content
  /// Where the node starts.
  public var position: YAMLPosition

  /// The value when this is a scalar.
  public var scalar: YAMLScalar? {
    if case .scalar(let scalar) = content { scalar } else { nil }
  }

  /// The elements when this is a sequence.
  public var sequence: [YAMLNode]? {
    if case .sequence(let nodes) = content { nodes } else { nil }
  }

  /// The keys and values when this is a mapping.
  public var mapping: YAMLMapping? {
    if case .mapping(let mapping) = content { mapping } else { nil }
  }

  /// Whether this is the null scalar (an empty value counts).
  public var isNull: Bool { scalar?.value == .null }

  /// What the node is, for messages: "the text `on`", "a list", "a mapping".
  public var summary: String {
    switch content {
    case .scalar(let scalar): scalar.value.summary
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }
}

/// A scalar: its typed value and how it was written.
public struct YAMLScalar: Hashable, Sendable {
  /// A value of the YAML 1.2 core schema, a date or data.
  public enum Value: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// Only above `Int64.max`.
    case unsigned(UInt64)
    case real(Double)
    case text(String)
    case date(Date)
    case data([UInt8])

    /// The value for messages, with its type.
    public var summary: String {
      switch self {
      case .null: "null"
      case .boolean(let value): "the Bool \(value)"
      case .integer(let value): "the integer \(value)"
      case .unsigned(let value): "the integer \(value)"
      case .real(let value): "the real \(value)"
      case .text(let value): "the text `\(value)`"
      case .date: "a date"
      case .data(let bytes): "data of \(bytes.count) bytes"
      }
    }
  }

  /// The typed value.
  public var value: Value
  /// The characters between the delimiters, after unescaping.
  public var source: String
  /// Whether it was written without quotes and without a tag.
  public var isPlain: Bool

  /// What a YAML 1.1 reader would have made of this plain scalar, where that differs from the value here.
  public var legacyReading: String? { isPlain ? YAMLLegacy.reading(of: source) : nil }
}

/// A mapping: pairs in the order of the file; no two keys are equal.
public struct YAMLMapping: Sendable {
  /// A key with its value.
  public struct Pair: Sendable {
    /// The key's value.
    public var key: YAMLScalar
    /// Where the key stands.
    public var keyPosition: YAMLPosition
    /// The value.
    public var value: YAMLNode
  }

  /// The pairs in the order of the file.
  public var pairs: [Pair]

  /// The value of a text key.
  public subscript(_ key: String) -> YAMLNode? {
    pairs.first { if case .text(let name) = $0.key.value { name.isExactly(key) } else { false } }?.value
  }
}

/// A remark about a place in a document.
public struct YAMLNote: Hashable, Sendable, CustomStringConvertible {
  /// The place.
  public var position: YAMLPosition
  /// The remark.
  public var message: String

  /// `file:line:column: message`.
  public var description: String { "\(position): \(message)" }
}
