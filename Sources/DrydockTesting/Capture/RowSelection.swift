import ContainerDiff
import GRDB

/// Which rows of a database's tables are kept: a spread over each table, no more than so many of each, and with each
/// row all that it refers to, in cycles too.
struct RowSelection {
  /// The identities of the rows that are kept, in the order of the table, by table.
  private(set) var kept: [String: [[DatabaseValue]]] = [:]
  /// How many kept rows refer to what is not there, by table: they are copied without the referenced row.
  var dangling: [String: Int] {
    Dictionary(
      uniqueKeysWithValues: kept.map { table, rows in
        (table, rows.count { loose[table.lowercased()]?.contains($0) == true })
      }
    ).filter { $0.value > 0 }
  }
  private var loose: [String: Set<[DatabaseValue]>] = [:]

  /// How many rows of a table are tried for each one that may be kept.
  private static let tries = 50

  private let db: Database
  private let limit: Int
  private let tables: [String: SQLTable]
  private let references: [String: [ForeignKey]]
  private var chosen: [String: Set<[DatabaseValue]>] = [:]

  /// A selection of tables whose rows have identities.
  init(_ tables: [SQLTable], limit: Int, in db: Database) throws {
    (self.db, self.limit) = (db, limit)
    self.tables = Dictionary(
      tables.map { ($0.name.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })
    references = try Dictionary(
      tables.map { ($0.name.lowercased(), try ForeignKey.of($0.name, in: db)) },
      uniquingKeysWith: { first, _ in first })
    var candidates = try tables.map { ($0, try self.candidates(of: $0)) }
    // Who refers to most tables comes first: what it needs takes the others' places.
    candidates.sort { depth($0.0.name.lowercased()) > depth($1.0.name.lowercased()) }
    for (table, rows) in candidates { try choose(rows.spread, of: table.name.lowercased()) }
    for (table, rows) in candidates {
      let chosen = chosen[table.name.lowercased()] ?? []
      // A row that another one refers to may not be among the candidates.
      let known = Set(rows)
      kept[table.name] = rows.filter(chosen.contains) + chosen.filter { !known.contains($0) }
    }
  }

  /// Identities of rows; of a very large table a part, evenly taken.
  private func candidates(of table: SQLTable) throws -> [[DatabaseValue]] {
    let names = table.identity.joined(separator: ", ")
    let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quoted(table.name))") ?? 0
    let step = max(1, count / max(10_000, limit * Self.tries))
    let cursor = try Row.fetchCursor(
      db, sql: "SELECT \(names) FROM \(quoted(table.name)) ORDER BY \(names)")
    var rows: [[DatabaseValue]] = []
    var number = 0
    while let row = try cursor.next() {
      if number % step == 0 || number == count - 1 { rows.append(Array(row.databaseValues)) }
      number += 1
    }
    return rows
  }

  /// How many tables in a row a table's rows refer to.
  private func depth(_ table: String, _ seen: Set<String> = []) -> Int {
    guard !seen.contains(table) else { return 0 }
    return (references[table] ?? []).map { 1 + depth($0.parent.lowercased(), seen.union([table])) }.max() ?? 0
  }

  private mutating func choose(_ rows: [[DatabaseValue]], of table: String) throws {
    for row in rows {
      if chosen[table]?.count ?? 0 >= limit { return }
      if chosen[table]?.contains(row) == true { continue }
      guard let all = try closure(of: row, in: table) else { continue }
      let fits = all.allSatisfy { name, rows in rows.count + (chosen[name]?.count ?? 0) <= limit }
      guard fits else { continue }
      for (name, rows) in all { chosen[name, default: []].formUnion(rows) }
    }
  }

  /// A row with all that it refers to, by table; nil when something of that is not there.
  private mutating func closure(
    of row: [DatabaseValue], in table: String
  ) throws -> [String: Set<[DatabaseValue]>]? {
    var found: [String: Set<[DatabaseValue]>] = [table: [row]]
    var open = [(table, row)]
    while let (name, identity) = open.popLast() {
      guard let captured = tables[name] else { return nil }
      for key in references[name] ?? [] {
        let parent = key.parent.lowercased()
        let values =
          try Row.fetchOne(
            db,
            sql:
              "SELECT \(key.columns.map(quoted).joined(separator: ", ")) FROM \(quoted(captured.name)) WHERE "
              + captured.identity.map { "\($0) IS ?" }.joined(separator: " AND "),
            arguments: StatementArguments(identity)
          ).map { Array($0.databaseValues) } ?? []
        // A reference with a null in it refers to nothing.
        if values.contains(where: \.isNull) { continue }
        guard let other = try self.row(of: parent, key.parentColumns, values) else {
          loose[name, default: []].insert(identity)
          continue
        }
        if chosen[parent]?.contains(other) == true { continue }
        if found[parent, default: []].insert(other).inserted { open.append((parent, other)) }
      }
    }
    return found
  }

  private func row(of table: String, _ columns: [String], _ values: [DatabaseValue]) throws
    -> [DatabaseValue]?
  {
    guard let captured = tables[table], columns.count == values.count else { return nil }
    let sql =
      "SELECT \(captured.identity.joined(separator: ", ")) FROM \(quoted(captured.name)) WHERE "
      + columns.map { "\(quoted($0)) = ?" }.joined(separator: " AND ") + " LIMIT 1"
    return try Row.fetchOne(db, sql: sql, arguments: StatementArguments(values)).map {
      Array($0.databaseValues)
    }
  }
}

extension Array {
  /// The elements, spread out: the first, the middle one, those between, and so on; all of them in the end.
  fileprivate var spread: [Element] {
    guard count > 2 else { return self }
    var result: [Element] = []
    let bits = Int.bitWidth - (count - 1).leadingZeroBitCount
    for number in 0..<(1 << bits) {
      var (reversed, rest) = (0, number)
      for _ in 0..<bits { (reversed, rest) = (reversed << 1 | rest & 1, rest >> 1) }
      if reversed < count { result.append(self[reversed]) }
    }
    return result
  }
}
