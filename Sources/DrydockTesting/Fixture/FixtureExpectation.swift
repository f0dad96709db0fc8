import AppContainer
import ContainerTransaction
import FileSystem
import Formats
import MigrationEngine

/// What must be true of a fixture's container after it was migrated to the latest version: assertions, as migrations
/// have them in `verify:`, in the spelling of `expect:`.
package struct FixtureExpectation: Sendable {
  /// Texts that the error must hold, when migrating must fail and change nothing; empty when it must succeed.
  package private(set) var error: [String] = []
  /// Rows that the migrations must take away.
  package private(set) var losses: [ExpectedLoss] = []
  package let position: YAMLPosition
  private var assertions: [Assertion] = []
  /// What assertions that compare with the container before migrating saw there.
  private var before: [Int: Observation] = [:]

  /// Whether it names something that must be there, so that an empty container is not as expected.
  package var demandsSomething: Bool { assertions.contains(where: \.demandsSomething) }

  private static let keys = [
    "error", "settings", "absent-settings", "suites", "vault", "queries", "files", "absent", "excluded",
    "protection", "lost-rows",
  ]

  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "expect", keys: Self.keys)
    position = reader.position
    if let first = reader["error"] {
      error = try first.texts("`error`")
      let others = Self.keys.dropFirst().filter { reader[$0] != nil }
      guard error.contains(where: { !$0.isEmpty }), others.isEmpty else {
        throw first.position.error("`error` names words of the message, and is alone in `expect`")
      }
      return
    }
    assertions = try Assertion.settings(reader, suite: nil) + Self.suites(reader["suites"])
    if let vault = reader["vault"] {
      let items = try FixtureVaultItem.items(vault) ?? []
      assertions.append(.vault(items.map { ($0.item, $0.position) }, at: vault.position))
    }
    assertions += try reader["queries"]?.elements("`queries`").map { try Assertion.query($0) } ?? []
    assertions += try Assertion.files(reader)
    for element in reader["excluded"].map({ $0.sequence ?? [$0] }) ?? [] {
      assertions.append(.isExcluded(try element.pathOrRoot("an element of `excluded`"), at: element.position))
    }
    for pair in try reader["protection"]?.pairs("`protection`").pairs ?? [] {
      assertions.append(.isProtected(try pair.path(), try pair.value.protection(), at: pair.keyPosition))
    }
    losses = try ExpectedLoss.all(reader["lost-rows"])
  }

  private static func suites(_ node: YAMLNode?) throws -> [Assertion] {
    try node?.pairs("`suites`").pairs.flatMap { pair in
      let name = try pair.textKey("a suite's name")
      let reader = try YAMLReader(pair.value, what: "a suite", keys: ["settings", "absent-settings"])
      let assertions = try Assertion.settings(reader, suite: (name, pair.keyPosition))
      guard !assertions.isEmpty else {
        throw pair.keyPosition.error("nothing is expected of this suite: add `settings` or `absent-settings`")
      }
      return assertions
    } ?? []
  }

  // MARK: Checking

  /// What is not as expected in a container that was migrated, each with the line that expects it. The container is
  /// only read: its databases are read in copies.
  ///
  /// - Throws: `DrydockError` when the container cannot be read, or for a suite that `drydock.yaml` does not have.
  package func findings(in stage: StagedContainer) throws -> [Finding] {
    try assertions.enumerated().flatMap { index, assertion in
      try assertion.failures(in: stage, before: before[index]).map {
        Finding($0, of: assertion)
      }
    }
  }

  /// The same expectation with what `before` means, taken from the container as it is before migrating.
  ///
  /// - Returns: with what could not be taken.
  func knowing(before stage: StagedContainer) throws -> (FixtureExpectation, [Finding]) {
    var known = self
    var findings: [Finding] = []
    for (index, assertion) in assertions.enumerated() {
      let (before, failures) = try assertion.stateBefore(stage)
      known.before[index] = before
      findings += failures.map { Finding($0, of: assertion) }
    }
    return (known, findings)
  }
}

extension FixtureResult.Finding {
  fileprivate init(_ failure: AssertionFailure, of assertion: Assertion) {
    let position = failure.position ?? assertion.position
    self.init(
      .expectation, failure.message, place: failure.place, expected: failure.expected, found: failure.found,
      file: position.file, line: position.line)
  }
}

/// Rows of a table that the migrations must take away: `lost-rows: {DATABASE: {TABLE: COUNT}}`.
package struct ExpectedLoss: Sendable {
  private let database: String
  let path: ContainerPath
  let table: String
  package let rows: Int
  let position: YAMLPosition

  fileprivate static func all(_ node: YAMLNode?) throws -> [ExpectedLoss] {
    try node?.pairs("`lost-rows`").pairs.flatMap { pair in
      let path = try ContainerPath(databaseOrPath: pair.key.source, at: pair.keyPosition)
      return try pair.value.pairs("the tables of a database").pairs.map { table in
        let number = try table.value.integer("the number of lost rows")
        guard let rows = Int(exactly: number), rows > 0 else {
          throw table.value.position.error("the number of lost rows is 1 or more, not \(number)")
        }
        return ExpectedLoss(
          database: pair.key.source, path: path, table: table.key.source, rows: rows,
          position: table.keyPosition)
      }
    } ?? []
  }

  /// Whether it is about a table of the database at a path.
  package func isOf(_ table: String, in path: ContainerPath, of container: Container) -> Bool {
    table == self.table && (container.configuration.databases[database] ?? [self.path]).contains(path)
  }
}
