import FileSystem
import Formats

/// An argument of an operation as Swift code gives it. It is read like one of a file, so that both mean the same.
indirect enum StageArgument: Sendable {
  case value(PropertyListValue)
  /// The word `before` of an assertion, which is no text.
  case before
  case list([StageArgument])
  /// SQL, and what it is, for the place of an error in it: nobody knows the line that a text of Swift code starts in.
  case sql(String, part: String)
  /// In the order in which they were written; the keys need not be text.
  case pairs([(key: PropertyListValue, value: StageArgument)])

  static func text(_ text: String) -> StageArgument { .value(.string(text)) }

  static func texts(_ texts: [String]) -> StageArgument { .list(texts.map { .text($0) }) }

  static func path(_ path: ContainerPath) -> StageArgument {
    .text(GlobPattern.escaped(path.description))
  }

  /// One of the words that an argument knows.
  static func word(_ word: some RawRepresentable<String>) -> StageArgument { .text(word.rawValue) }

  /// Names and what becomes of them, in order.
  static func names(_ names: KeyValuePairs<String, String>) -> StageArgument {
    .pairs(names.map { (.string($0.key), .text($0.value)) })
  }

  func node(at position: YAMLPosition) -> YAMLNode {
    switch self {
    case .value(let value): YAMLNode(value, at: position)
    case .before: YAMLNode(word: "before", at: position)
    case .sql(let text, let part):
      // A text of several lines is read as a block, which starts in the line after its node.
      YAMLNode(
        .string(text),
        at: YAMLPosition(
          file: "\(position): \(part)", line: text.contains(where: \.isNewline) ? 0 : 1, column: 1))
    case .list(let arguments): YAMLNode(arguments.map { $0.node(at: position) }, at: position)
    case .pairs(let pairs): YAMLNode(pairs.map { ($0.key, $0.value.node(at: position)) }, at: position)
    }
  }

  /// All of it as text, from which no other argument gives the same: what a checksum covers.
  var fingerprint: String {
    switch self {
    case .value(let value): Self.fingerprint(value)
    case .before: "before"
    case .sql(let text, _): Self.fingerprint(.string(text))
    case .list(let arguments): "[" + arguments.map(\.fingerprint).joined(separator: ",") + "]"
    case .pairs(let pairs):
      "{" + pairs.map { Self.fingerprint($0.key) + ":" + $0.value.fingerprint }.joined(separator: ",") + "}"
    }
  }

  private static func fingerprint(_ value: PropertyListValue) -> String {
    switch value {
    case .string(let text): "text(\(text.utf8.count)) \(text)"
    case .date(let date): "date \(date.timeIntervalSinceReferenceDate)"
    case .data(let bytes): "data \(bytes.map(String.init).joined(separator: " "))"
    case .array(let values): "[" + values.map(fingerprint).joined(separator: ",") + "]"
    case .dictionary(let values):
      "{"
        + values.sorted().map { fingerprint(.string($0.key)) + ":" + fingerprint($0.value) }
        .joined(separator: ",") + "}"
    default: "\(value.typeName) \(value)"
    }
  }
}
