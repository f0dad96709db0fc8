import Formats

extension MigrationStage {
  /// What a stage expects of a container before its steps, or promises after them: the same that `check` and `verify` of
  /// a migration's file say.
  package struct Assertion: Sendable {
    let entry: StageEntry

    /// What a setting is.
    ///
    /// - Parameter expected: not `count`.
    package static func defaults(
      _ key: String, _ expected: Expectation, suite: String? = nil,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs = ["key": StageArgument.text(key), "suite": suite.map { .text($0) }]
      return Self("defaults", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    /// What one row with one value a query gives.
    ///
    /// - Parameter expected: `equals` or `unchanged`.
    package static func sql(
      database: String, _ query: String, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs<String, StageArgument?> = [
        "database": .text(database), "query": .text(query),
      ]
      return Self("sql", arguments, expected.argument, YAMLPosition(file, line, column))
    }

    /// What is at a path, or matches a pattern such as `Documents/*.txt`.
    ///
    /// - Parameter expected: `exists`, `absent`, `count`, or `unchanged` for the number of paths.
    package static func files(
      _ path: String, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      var argument = expected.argument
      if case .unchanged = expected { argument.key = "count" }
      return Self("files", ["path": .text(path)], argument, YAMLPosition(file, line, column))
    }

    /// What vault items are; needs the device key.
    ///
    /// - Parameter expected: `exists`, `absent`, `count`, or `unchanged` for their values.
    package static func vault(
      service: String, account: String? = nil, _ expected: Expectation,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments: KeyValuePairs = [
        "service": StageArgument.text(service), "account": account.map { .text($0) },
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

  /// What an assertion compares with.
  package enum Expectation: Sendable {
    /// This value, with its type.
    case equals(PropertyListValue)
    /// One of these values.
    case oneOf([PropertyListValue])
    /// Anything.
    case exists
    /// Nothing.
    case absent
    /// So many.
    case count(Int)
    /// What it was before the stage; for `verify` only.
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
