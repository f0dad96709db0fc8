import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// What must be true of a fixture's container after it was migrated to the latest version.
package struct FixtureExpectation: Sendable {
  /// Texts that the error must hold, when migrating must fail and change nothing; empty when it must succeed.
  package private(set) var error: [String] = []
  /// Settings, file by file.
  package private(set) var settings: [ExpectedSettings] = []
  /// The vault's items; nil when the vault is not looked into.
  package private(set) var vault: ExpectedVault?
  /// Queries with their rows.
  package private(set) var queries: [ExpectedQuery] = []
  /// What must be there, and what must not.
  package private(set) var files: [ExpectedFiles] = []
  /// How paths must be marked.
  package private(set) var marks: [ExpectedMark] = []
  /// Rows that the migrations may take away.
  package private(set) var losses: [ExpectedLoss] = []
  /// Where `expect` is.
  package let position: YAMLPosition

  /// Whether it names something that must be there, so that an empty container is not as expected.
  package var demandsSomething: Bool {
    settings.contains { $0.demandsSomething } || !queries.isEmpty || files.contains { $0.demandsSomething }
      || vault?.items.isEmpty == false || !marks.isEmpty
  }

  init(_ node: YAMLNode) throws {
    let keys = [
      "error", "settings", "absent-settings", "suites", "vault", "queries", "files", "absent", "excluded",
      "protection", "lost-rows",
    ]
    let reader = try YAMLReader(node, what: "expect", keys: keys)
    position = reader.position
    if let first = reader["error"] {
      error = try first.texts("`error`")
      let others = keys.dropFirst().filter { reader[$0] != nil }
      guard error.contains(where: { !$0.isEmpty }), others.isEmpty else {
        throw first.position.error("`error` names words of the message, and stands alone in `expect`")
      }
      return
    }
    settings = try ExpectedSettings.all(reader)
    vault = try reader["vault"].map(ExpectedVault.init)
    queries = try reader["queries"]?.elements("`queries`").map(ExpectedQuery.init) ?? []
    files = try ExpectedFiles.all(reader)
    marks = try ExpectedMark.all(reader)
    losses = try ExpectedLoss.all(reader["lost-rows"])
  }

  /// What is not as expected in a container that was migrated, each with the line that expects it; empty when all is
  /// well. The container is only read: its databases are looked at in copies.
  ///
  /// - Parameters:
  ///   - deviceKeys: What opens the vault; nil when nothing is expected of it.
  ///   - redactor: What hides secrets in the findings.
  /// - Throws: `DrydockError` when the container cannot be read, or for a suite that `drydock.yaml` does not have.
  package func findings(
    in container: Container, deviceKeys: DeviceKeys? = nil, redactor: Redactor = Redactor()
  ) throws -> [FixtureFinding] {
    var options = TransactionOptions()
    (options.deviceKeys, options.redactor) = (deviceKeys, redactor)
    return try Transaction.inspect(container, options: options) { try findings(in: $0) }
  }

  /// The same expectation with the rows that `rows: before` takes from the container as it is before migrating.
  ///
  /// - Returns: with what could not be taken.
  func knowing(before stage: StagedContainer) throws -> (FixtureExpectation, [FixtureFinding]) {
    var known = self
    var findings: [FixtureFinding] = []
    for index in queries.indices { findings += try known.queries[index].takeRows(before: stage) }
    return (known, findings)
  }

  /// The same for a container that is looked at already.
  package func findings(in stage: StagedContainer) throws -> [FixtureFinding] {
    var findings = try settings.flatMap { try $0.findings(stage) }
    findings += try vault?.findings(stage) ?? []
    findings += try queries.flatMap { try $0.findings(stage) }
    findings += try files.flatMap { try $0.findings(stage) }
    findings += try marks.flatMap { try $0.findings(stage) }
    return findings
  }

  /// How many rows of a table the migrations may take away, as `lost-rows` says.
  ///
  /// - Parameter database: One of the database's places.
  package func announcedLoss(
    of table: String, in database: ContainerPath, of container: Container
  ) -> Int {
    losses.filter { $0.table == table && $0.isOf(database, container) }.map(\.rows).max() ?? 0
  }
}

extension FixtureFinding {
  /// What an expectation finds, with the line that expects it.
  init(
    at position: YAMLPosition, _ message: String, place: String, expected: String? = nil,
    found: String? = nil
  ) {
    self.init(.expectation, message, place: place)
    (self.expected, self.found) = (expected, found)
    (file, line) = (position.file, position.line)
  }
}
