import ContainerDiff
import GRDB

/// The rows of a database's tables that are kept: those that a migration may fail at, then a sample spread over each table,
/// with all rows that they refer to, and no more than a limit of any table.
struct RowSelection {
  /// The identities of the rows, by the table's name in lower case.
  private(set) var kept: [String: Set<[DatabaseValue]>] = [:]
  /// How many kept rows refer to rows that do not exist, by table.
  private(set) var dangling: [String: Int] = [:]

  /// How many rows of a table are tried for each one that may be kept.
  private static let tries = 50
  /// A column with no more values has a row of each.
  private static let fewValues = 20

  private let db: Database
  private let limit: Int
  private let tables: [String: SQLTable]
  private let references: [String: [ForeignKey]]

  /// A selection of tables whose rows have identities.
  init(_ tables: [SQLTable], limit: Int, in db: Database) throws {
    (self.db, self.limit) = (db, limit)
    self.tables = tables.reduce(into: [:]) { $0[$1.name.lowercased()] = $1 }
    references = try self.tables.mapValues { try ForeignKey.of($0.name, in: db) }
    // The tables that refer to most others come first: their parents take the others' places.
    let depths = self.tables.keys.sorted().map { ($0, depth($0)) }
    let ordered = depths.sorted { $0.1 > $1.1 }.compactMap { self.tables[$0.0] }
    for table in ordered { kept[table.name.lowercased()] = [] }
    // The rarest first, of all tables: there may be no place for the others.
    for queries in [childless, oldestAndNewest, ofColumns] {
      for table in ordered {
        for query in try queries(table) { try choose(from: table, query) }
      }
    }
    for table in ordered { try choose(from: table, spread(table)) }
  }

  /// The longest chain of tables that a table's rows refer to.
  private func depth(_ table: String, _ seen: Set<String> = []) -> Int {
    guard !seen.contains(table) else { return 0 }
    return (references[table] ?? []).map { 1 + depth($0.parent.lowercased(), seen.union([table])) }.max() ?? 0
  }

  // MARK: Queries

  private func select(_ table: SQLTable, _ rest: String) -> String {
    "SELECT \(table.identity.joined(separator: ", ")) FROM \(quotedIdentifier(table.name)) \(rest)"
  }

  /// A row that no row of a table refers to, for each table that may.
  private func childless(_ table: SQLTable) -> [String] {
    references.flatMap { child, keys in
      keys.filter { $0.parent.lowercased() == table.name.lowercased() && !$0.parentColumns.isEmpty }.map {
        key in
        let columns = key.columns.map(quotedIdentifier)
        let isReference = columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
        return select(
          table,
          """
          WHERE (\(key.parentColumns.map(quotedIdentifier).joined(separator: ", "))) NOT IN
          (SELECT \(columns.joined(separator: ", ")) FROM \(quotedIdentifier(child)) WHERE \(isReference)) LIMIT 1
          """)
      }
    }.sorted()
  }

  private func oldestAndNewest(_ table: SQLTable) -> [String] {
    ["ASC", "DESC"].map { order in
      select(table, "ORDER BY \(table.identity.map { "\($0) \(order)" }.joined(separator: ", ")) LIMIT 1")
    }
  }

  /// A row with a null, the least and the greatest value of each column, and each value of a column that has few.
  private func ofColumns(_ table: SQLTable) throws -> [String] {
    let columns = table.columns.dropFirst(table.hasRowid ? 1 : 0).map(quotedIdentifier)
    let extremes = columns.flatMap { column in
      ["WHERE \(column) IS NULL"]
        + ["ASC", "DESC"].map { "WHERE \(column) IS NOT NULL ORDER BY \(column) \($0)" }
    }
    let few = try columns.filter { column in
      let values =
        "SELECT DISTINCT \(column) FROM \(quotedIdentifier(table.name)) LIMIT \(Self.fewValues + 1)"
      return try Int.fetchOne(db, sql: "SELECT count(*) FROM (\(values))") ?? 0 <= Self.fewValues
    }
    return few.map { select(table, "GROUP BY \($0)") } + extremes.map { select(table, "\($0) LIMIT 1") }
  }

  /// Multiples of the golden ratio: the first rows of this order are spread over the table.
  private func spread(_ table: SQLTable) -> String {
    let order = "row_number() OVER (ORDER BY \(table.identity.joined(separator: ", ")))"
    return select(table, "ORDER BY \(order) * 2654435769 % 4294967296 LIMIT \(limit * Self.tries)")
  }

  // MARK: Choosing

  /// Keeps the rows of a query, as far as there is a place for them and for what they refer to.
  private mutating func choose(from table: SQLTable, _ query: String) throws {
    let name = table.name.lowercased()
    let cursor = try Row.fetchCursor(db, sql: query)
    while kept[name, default: []].count < limit, let row = try cursor.next() {
      let identity = Array(row.databaseValues)
      if kept[name]?.contains(identity) == true { continue }
      let (rows, dangling) = try closure(of: identity, in: name)
      guard rows.allSatisfy({ $1.count + (kept[$0]?.count ?? 0) <= limit }) else { continue }
      kept.merge(rows) { $0.union($1) }
      self.dangling.merge(dangling, uniquingKeysWith: +)
    }
  }

  /// A row with all rows that it refers to and that are not kept yet, by table.
  private func closure(
    of row: [DatabaseValue], in table: String
  ) throws -> (rows: [String: Set<[DatabaseValue]>], dangling: [String: Int]) {
    var rows: [String: Set<[DatabaseValue]>] = [table: [row]]
    var dangling: [String: Int] = [:]
    var open = [(table, row)]
    while let (name, identity) = open.popLast() {
      var isDangling = false
      for key in references[name] ?? [] {
        let parent = key.parent.lowercased()
        guard let found = try referenced(by: identity, in: name, key) else { continue }
        guard !found.contains(where: \.isNull) else {
          isDangling = true
          continue
        }
        if kept[parent]?.contains(found) == true { continue }
        if rows[parent, default: []].insert(found).inserted { open.append((parent, found)) }
      }
      if isDangling { dangling[tables[name]?.name ?? name, default: 0] += 1 }
    }
    return (rows, dangling)
  }

  /// The identity of the row that a row refers to, or nulls if that does not exist; nil for a reference with a null.
  private func referenced(
    by identity: [DatabaseValue], in name: String, _ key: ForeignKey
  ) throws -> [DatabaseValue]? {
    guard let child = tables[name], let parent = tables[key.parent.lowercased()],
      key.columns.count == key.parentColumns.count
    else { return [.null] }
    let pairs = zip(key.columns, key.parentColumns)
    let sql = """
      SELECT \(parent.identity.map { "p.\($0)" }.joined(separator: ", "))
      FROM \(quotedIdentifier(child.name)) c LEFT JOIN \(quotedIdentifier(parent.name)) p
      ON \(pairs.map { "p.\(quotedIdentifier($1)) = c.\(quotedIdentifier($0))" }.joined(separator: " AND "))
      WHERE \(child.identity.map { "c.\($0) IS ?" }.joined(separator: " AND "))
      AND \(key.columns.map { "c.\(quotedIdentifier($0)) IS NOT NULL" }.joined(separator: " AND ")) LIMIT 1
      """
    return try Row.fetchOne(db, sql: sql, arguments: StatementArguments(identity)).map {
      Array($0.databaseValues)
    }
  }
}
