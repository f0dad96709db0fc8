import FileSystem
import Formats

extension PlannedMigration {
  /// One operation of a stage: the same that a migration's file names, with the same arguments and defaults.
  public struct Operation: Sendable {
    /// The name and the arguments, which the checksum covers.
    let entry: StageEntry

    /// A step as a file has it: `defaults.rename: {keys: {user_name: username}}` is
    /// `.step("defaults.rename", ["keys": ["user_name": "username"]])`.
    ///
    /// - Parameters:
    ///   - name: such as `defaults.patch`.
    ///   - arguments: by their names in a file. They are checked, as the name is, when the plan is read, and an error has the
    ///     place of this call.
    public static func step(
      _ name: String, _ arguments: KeyValuePairs<String, Argument>,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments = arguments.map { (key: $0.key, value: $0.value) }
      return Self(entry: StageEntry(name, arguments, at: YAMLPosition(file, line, column)))
    }

    /// - Throws: `DrydockError` with the place in the source file, for invalid arguments.
    func step() throws -> MigrationStep {
      try Operations.step(
        entry.name, at: entry.position, arguments: entry.node,
        files: MigrationFiles(directory: "", isDirectory: true))
    }
  }

  /// An argument of an operation: a literal, or one of the functions for other values. Lists and mappings contain arguments;
  /// the keys of a mapping need not be text: `[true: "dark", false: "light"]`.
  public struct Argument: Sendable {
    private indirect enum Content {
      case value(PropertyListValue)
      /// An unquoted word with a meaning, which is not the text.
      case word(String)
      case list([Argument])
      /// In the order in which they were written.
      case pairs([(key: PropertyListValue, value: Argument)])
    }

    private let content: Content

    /// Any value of a setting, such as a date.
    public static func value(_ value: PropertyListValue) -> Self { Self(content: .value(value)) }
    /// A text that is not a literal.
    public static func text(_ text: String) -> Self { .value(.string(text)) }
    /// One path, whatever is in its name: no part of it is a pattern.
    public static func path(_ path: ContainerPath) -> Self { .text(GlobPattern.escaped(path.description)) }
    /// The value before the stage, in an assertion.
    static let before = Self(content: .word("before"))
  }
}

extension PlannedMigration.Argument: ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .text(value) }

  public init(booleanLiteral value: Bool) { self = .value(.boolean(value)) }

  public init(integerLiteral value: Int64) { self = .value(.integer(value)) }

  public init(floatLiteral value: Double) { self = .value(.real(value)) }

  public init(arrayLiteral elements: Self...) { content = .list(elements) }

  public init(dictionaryLiteral elements: (PropertyListValue, Self)...) {
    content = .pairs(elements.map { (key: $0.0, value: $0.1) })
  }
}

extension PlannedMigration.Argument {
  fileprivate init(_ pairs: [(key: String, value: Self)]) {
    content = .pairs(pairs.map { (.string($0.key), $0.value) })
  }

  fileprivate func node(at position: YAMLPosition) -> YAMLNode {
    switch content {
    case .value(let value): YAMLNode(value, at: position)
    case .word(let word): YAMLNode(word: word, at: position)
    case .list(let arguments): YAMLNode(arguments.map { $0.node(at: position) }, at: position)
    case .pairs(let pairs): YAMLNode(pairs.map { ($0.key, $0.value.node(at: position)) }, at: position)
    }
  }

  /// The first key that a dictionary has twice, at any depth.
  fileprivate var repeatedKey: String? {
    switch content {
    case .value, .word: return nil
    case .list(let arguments): return arguments.lazy.compactMap(\.repeatedKey).first
    case .pairs(let pairs):
      var keys: Set<String> = []
      let repeated = pairs.first { !keys.insert(Self.fingerprint($0.key)).inserted }
      return repeated.map { "\($0.key)" } ?? pairs.lazy.compactMap(\.value.repeatedKey).first
    }
  }

  /// A text that no other argument has: what a checksum covers. It is part of the history's format: never change it.
  fileprivate var fingerprint: String {
    switch content {
    case .value(let value): Self.fingerprint(value)
    case .word(let word): word
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

/// The name of an assertion or operation with its arguments, as Swift code gives them.
struct StageEntry: Sendable {
  let name: String
  let position: YAMLPosition
  private let arguments: PlannedMigration.Argument

  init(
    _ name: String, _ arguments: [(key: String, value: PlannedMigration.Argument)], at position: YAMLPosition
  ) {
    (self.name, self.position) = (name, position)
    self.arguments = PlannedMigration.Argument(arguments)
  }

  /// - Throws: `DrydockError` when a key is given twice, as in a file.
  var node: YAMLNode {
    get throws {
      if let key = arguments.repeatedKey { throw position.error("the key `\(key)` is given twice") }
      return arguments.node(at: position)
    }
  }

  /// What a checksum covers.
  var fingerprint: String { name + " " + arguments.fingerprint }

  /// - Throws: `DrydockError` with the place in the source file.
  func assertion() throws -> Assertion { try Assertion(name, position: position, arguments: try node) }
}

extension YAMLPosition {
  /// A place in Swift code: the module and the file, without their path on the machine that compiled it.
  init(_ file: StaticString, _ line: Int, _ column: Int) {
    self.init(file: "\(file)", line: line, column: column)
  }
}

extension PlannedMigration {
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
      let arguments: KeyValuePairs<String, Argument?> = [
        "key": .text(key), "was": was.map { .text($0) }, "suite": suite.map { .text($0) },
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
      let arguments: KeyValuePairs<String, Argument?> = [
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
      let arguments: KeyValuePairs<String, Argument?> = [
        "service": .text(service), "account": account.map { .text($0) },
      ]
      return Self("vault", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    private init(
      _ name: String, _ arguments: KeyValuePairs<String, Argument?>,
      _ expected: (key: String, value: Argument), _ position: YAMLPosition
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

    fileprivate var argument: (key: String, value: Argument) {
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
