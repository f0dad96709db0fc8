import FileSystem
import Formats

extension MigrationStage {
  /// An assertion on the container before or after a stage: as in `check` and `verify` of a migration's file.
  public struct Assertion: Sendable {
    let entry: StageEntry

    /// The value of a setting.
    ///
    /// - Parameters:
    ///   - expected: not `count`.
    ///   - was: the name that the setting had before the stage, for `unchanged`.
    public static func defaults(
      _ key: String, _ expected: Expectation, was: String? = nil, suite: String? = nil,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs<String, StageArgument?> = [
        "key": .text(key), "was": .optional(was), "suite": .optional(suite),
      ]
      return Self("defaults", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    /// The result of a query: one row with one value.
    ///
    /// - Parameter expected: `equals` or `unchanged`.
    public static func sql(
      database: String, _ query: String, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs<String, StageArgument?> = [
        "database": .text(database), "query": .text(query),
      ]
      return Self("sql", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    /// The files at a path, or of a pattern such as `Documents/*.txt`.
    ///
    /// - Parameter expected: `exists`, `absent`, `count`, or `unchanged` for the number of paths.
    public static func files(
      _ path: String, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      var argument = expected.argument
      if case .unchanged = expected { argument.key = "count" }
      return Self("files", ["path": .text(path)], argument, YAMLPosition(file, line, column))
    }

    /// Vault items; needs the device key.
    ///
    /// - Parameter expected: `exists`, `absent`, `count`, or `unchanged` for their values.
    public static func vault(
      service: String, account: String? = nil, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs<String, StageArgument?> = [
        "service": .text(service), "account": .optional(account),
      ]
      return Self("vault", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    private init(
      _ name: String, _ arguments: KeyValuePairs<String, StageArgument?>,
      _ expected: (key: String, value: StageArgument), _ position: YAMLPosition
    ) {
      let given = arguments.compactMap { pair in pair.value.map { (key: pair.key, value: $0) } }
      entry = StageEntry(name, given + [expected], at: position)
    }
  }

  /// The expected value of an assertion.
  public enum Expectation: Sendable {
    /// This value, with its type.
    case equals(PropertyListValue)
    /// One of these values.
    case oneOf([PropertyListValue])
    case exists
    case absent
    case count(Int)
    /// The value before the stage; for `verify` only.
    case unchanged

    fileprivate var argument: (key: String, value: StageArgument) {
      switch self {
      case .equals(let value): ("equals", .value(value))
      case .oneOf(let values): ("one-of", .value(.array(values)))
      case .exists: ("exists", .value(true))
      case .absent: ("exists", .value(false))
      case .count(let count): ("count", .value(.integer(Int64(count))))
      case .unchanged: ("equals", .before)
      }
    }
  }
}

/// The name of an assertion or operation with its arguments, as Swift code gives them.
struct StageEntry: Sendable {
  let name: String
  let arguments: [(key: String, value: StageArgument)]
  let position: YAMLPosition

  init(_ name: String, _ arguments: [(key: String, value: StageArgument)], at position: YAMLPosition) {
    (self.name, self.arguments, self.position) = (name, arguments, position)
  }

  /// Leaves out the arguments that were not given.
  init(_ name: String, _ arguments: KeyValuePairs<String, StageArgument?>, at position: YAMLPosition) {
    self.init(name, arguments.compactMap { pair in pair.value.map { (pair.key, $0) } }, at: position)
  }

  private var mapping: StageArgument { .pairs(arguments.map { (.string($0.key), $0.value) }) }

  var node: YAMLNode { mapping.node(at: position) }

  /// What a checksum covers.
  var fingerprint: String { name + " " + mapping.fingerprint }

  /// - Throws: `DrydockError` with the place in the source file.
  func assertion() throws -> Assertion { try Assertion(name, position: position, arguments: node) }
}

extension YAMLPosition {
  /// A place in Swift code: the module and the file, without their path on the machine that compiled it.
  init(_ file: StaticString, _ line: Int, _ column: Int) {
    self.init(file: "\(file)", line: line, column: column)
  }
}

/// An argument of an operation or assertion, as Swift code gives it.
indirect enum StageArgument: Sendable {
  case value(PropertyListValue)
  /// The word `before` of an assertion, which is not the text.
  case before
  case list([StageArgument])
  /// In the order in which they were written; the keys need not be text.
  case pairs([(key: PropertyListValue, value: StageArgument)])

  static func text(_ text: String) -> StageArgument { .value(.string(text)) }

  static func optional(_ text: String?) -> StageArgument? { text.map { .text($0) } }

  /// A settings file.
  static func suite(_ name: String?) -> StageArgument? { name.map { .pairs([("suite", .text($0))]) } }

  static func texts(_ texts: [String]) -> StageArgument { .list(texts.map { .text($0) }) }

  static func path(_ path: ContainerPath) -> StageArgument {
    .text(GlobPattern.escaped(path.description))
  }

  static func word(_ word: some RawRepresentable<String>) -> StageArgument { .text(word.rawValue) }

  static func names(_ names: KeyValuePairs<String, String>) -> StageArgument {
    .pairs(names.map { (.string($0.key), .text($0.value)) })
  }

  func node(at position: YAMLPosition) -> YAMLNode {
    switch self {
    case .value(let value): YAMLNode(value, at: position)
    case .before: YAMLNode(word: "before", at: position)
    case .list(let arguments): YAMLNode(arguments.map { $0.node(at: position) }, at: position)
    case .pairs(let pairs): YAMLNode(pairs.map { ($0.key, $0.value.node(at: position)) }, at: position)
    }
  }

  /// A text that no other argument has: what a checksum covers. It is part of the history's format: never change it.
  var fingerprint: String {
    switch self {
    case .value(let value): Self.fingerprint(value)
    case .before: "before"
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
