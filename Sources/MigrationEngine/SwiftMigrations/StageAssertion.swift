import FileSystem
import Formats

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
