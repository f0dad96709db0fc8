import AppStores
import GRDB

/// What became of a table's columns, and which of them have secrets of other columns.
extension RowComparison {
  private static let samples = 3

  /// The columns that have other values in rows that both sides have.
  func differing(_ join: RowJoin) throws -> [ContainerDifference.ColumnValues] {
    let names = Array(join.values.prefix(RowJoin.shownColumns))
    guard let counts = try Row.fetchOne(db, sql: join.changes(of: names)) else { return [] }
    return try zip(names, counts.databaseValues).compactMap { name, value in
      guard let changed = Int.fromDatabaseValue(value), changed > 0 else { return nil }
      return .init(
        name: name, change: .changed, changed: changed, before: try figures(name, "before"),
        after: try figures(name, "main"))
    }
  }

  /// A column that one side only has; nil when nothing is in it.
  func values(
    of name: String, _ change: ContainerDifference.Change, _ key: [String]
  ) throws -> ContainerDifference.ColumnValues? {
    let schema = change == .added ? "main" : "before"
    let figures = try figures(name, schema)
    if figures.distinct == 0 { return nil }
    var values = ContainerDifference.ColumnValues(name: name, change: change)
    if change == .added { values.after = figures } else { values.before = figures }
    let column = quotedIdentifier(name)
    let order = key.first.map { "min(\(quotedIdentifier($0)))" } ?? "1"
    let secret = RowNames(table: table, columns: [name], secret: secret).names(in: [])[name] ?? .plain
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT \(RowValue.selection(column).joined(separator: ", ")), \(copied.contains(name) ? "\(column) IN secrets.drydock" : "0")
        FROM \(schema).\(quotedIdentifier(table))
        WHERE \(column) IS NOT NULL GROUP BY +\(column) COLLATE BINARY ORDER BY \(order) LIMIT \(min(limit, Self.samples))
        """)
    values.samples = rows.map { row in
      var at = 0
      let value = RowValue(row, &at)
      return value.shown(row[at] ? .secret : secret, redactor)
    }
    return values
  }

  private func figures(_ name: String, _ schema: String) throws -> ContainerDifference.ColumnValues.Figures {
    let column = quotedIdentifier(name)
    let sql = """
      SELECT count(*) - count(\(column)), count(DISTINCT +\(column) COLLATE BINARY), coalesce(max(length(\(column))), 0)
      FROM \(schema).\(quotedIdentifier(table))
      """
    let row = try Row.fetchOne(db, sql: sql)
    return .init(nulls: row?[0] ?? 0, distinct: row?[1] ?? 0, longest: row?[2] ?? 0)
  }

  /// - Parameter join: the rows that both sides have; nil when they cannot be looked up.
  /// - Returns: the columns that have parts of secrets of the same row, and those that have whole ones.
  func copiedSecrets(
    _ old: [String], _ new: [String], _ join: RowJoin?
  ) throws -> (parts: Set<String>, whole: Set<String>) {
    let oldSecrets = RowNames(table: table, columns: old).secretColumns
    let newSecrets = RowNames(table: table, columns: new).secretColumns
    func others(_ columns: [String]) -> [String] {
      columns.prefix(RowJoin.shownColumns).filter { !oldSecrets.contains($0) && !newSecrets.contains($0) }
    }
    var found: Set<String> = []
    for (schema, columns) in [("main", new), ("before", old)] {
      let names = others(columns)
      let list = names.map { "max(\(quotedIdentifier($0)) IN secrets.drydock)" }
      let from = "FROM \(schema).\(quotedIdentifier(table))"
      found.formUnion(try flagged(names, "SELECT \(list.joined(separator: ", ")) \(from)"))
    }
    // A part of one, or one with something around it, in the same row.
    guard let join else { return ([], found) }
    var parts: Set<String> = []
    for (own, columns, other, secrets) in [("n", new, "o", oldSecrets), ("o", old, "n", newSecrets)] {
      if secrets.isEmpty { continue }
      let names = others(columns)
      let list = names.map { name in
        let value = "\(own).\(quotedIdentifier(name))"
        // A short one is in others by chance.
        let conditions = secrets.prefix(10).map { secret in
          let hidden = "\(other).\(quotedIdentifier(secret))"
          return "length(\(value)) > 5 AND instr(\(hidden), \(value)) > 0 "
            + "OR length(\(hidden)) > 5 AND instr(\(value), \(hidden)) > 0"
        }
        return "max(\(conditions.joined(separator: " OR ")))"
      }
      parts.formUnion(try flagged(names, "SELECT \(list.joined(separator: ", ")) \(join.both)"))
    }
    return (parts, found)
  }

  /// The names whose place in the row of a result is true.
  private func flagged(_ names: [String], _ sql: String) throws -> [String] {
    guard !names.isEmpty, let row = try Row.fetchOne(db, sql: sql) else { return [] }
    return zip(names, row.databaseValues).compactMap { $1 == 1.databaseValue ? $0 : nil }
  }
}
