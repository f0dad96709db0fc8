import AppContainer

/// What must be true of a fixture's container after it was migrated to the latest version.
public struct FixtureExpectation: Sendable {
  /// A query and the rows that it must give.
  public struct Query: Sendable {
    /// The database's path.
    public var database: ContainerPath
    /// The SQL.
    public var sql: String
    /// The rows, each with its values in order.
    public var rows: [[YAMLScalar.Value]]
  }

  /// Texts that the error must hold, when migrating must fail and change nothing; empty when it must succeed.
  public var error: [String] = []
  /// Settings with their exact values and types; others may exist.
  public var settings: [String: PropertyListValue] = [:]
  /// Settings that must not exist.
  public var absentSettings: [String] = []
  /// Exactly these vault items, by name, accessibility and value; nil when the vault is not looked into.
  public var vault: [VaultItem]?
  /// Queries with their rows.
  public var queries: [Query] = []
  /// Paths that must exist.
  public var files: [ContainerPath] = []
  /// Paths that must not exist.
  public var absent: [ContainerPath] = []
  /// Paths that must be flagged as not to be backed up.
  public var excluded: [ContainerPath] = []

  init(_ node: YAMLNode) throws {
    let keys = ["error", "settings", "absent-settings", "vault", "queries", "files", "absent", "excluded"]
    let reader = try YAMLReader(node, what: "expect", keys: keys)
    if let first = reader["error"] {
      error = try first.texts("`error`")
      let others = keys.dropFirst().filter { reader[$0] != nil }
      guard error.contains(where: { !$0.isEmpty }), others.isEmpty else {
        throw first.position.error("`error` names words of the message, and stands alone in `expect`")
      }
      return
    }
    settings = try reader["settings"]?.pairs("`settings`").propertyListValues() ?? [:]
    absentSettings = try reader.texts("absent-settings") ?? []
    vault = try FixtureVaultItem.items(reader["vault"])?.map(\.item)
    files = try reader["files"]?.paths("`files`") ?? []
    absent = try reader["absent"]?.paths("`absent`") ?? []
    excluded = try reader["excluded"]?.paths("`excluded`") ?? []
    queries = try reader["queries"]?.elements("`queries`").map(Query.init) ?? []
    if settings.isEmpty, queries.isEmpty, files.isEmpty {
      throw reader.position.error("`expect` names nothing that must be there: add settings, queries or files")
    }
  }
}

extension FixtureExpectation.Query {
  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "a query", keys: ["database", "sql", "rows"])
    let place = try reader.required("database")
    guard let path = try place.paths("`database`").first else {
      throw place.position.error("`database` is one path")
    }
    database = path
    sql = try reader.required("sql").text("`sql`")
    rows = try reader.required("rows").elements("`rows`").map { row in
      try row.elements("a row").map { value in
        guard let scalar = value.scalar else {
          throw value.position.error("a row's value is a single one, not \(value.summary)")
        }
        return scalar.value
      }
    }
  }
}
