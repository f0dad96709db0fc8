import AppContainer
import GRDB

/// Compares the rows of a table that both databases have, over the columns that both have.
///
/// Each row of one side is looked up in the other by an index, inside of SQLite: nothing is loaded, whatever the
/// table's size, and no order of keys is needed that SQLite and this program would have to agree on.
struct RowComparison {
  let table: String
  let db: Database
  /// How many rows are told, of each kind.
  let limit: Int
  let redactor: Redactor

  func run() throws -> ContainerDifference.Table? {
    let (old, new) = (try TableKey(table, "before", db), try TableKey(table, "main", db))
    let shared = new.columns.filter { old.columns.containsExactly($0) }
    guard let key = try TableKey.shared(old, new) else {
      return try compareWithoutKey(
        isSameShape: old.columns.elementsEqual(new.columns) { $0.isExactly($1) }, shared)
    }
    let values = shared.filter { !key.columns.containsExactly($0) }
    if key.isIndexed {
      return try compare(
        RowJoin(before: "before.\(quoted(table))", after: "main.\(quoted(table))", key: key.columns, values))
    }
    return try withCopies(key, values) { try compare($0) }
  }

  /// Copies what has no index that compares by bytes: a key with another collation (the app's own may be unknown
  /// here), of another type on each side, or of a virtual table.
  private func withCopies<T>(_ key: TableKey.Shared, _ values: [String], _ body: (RowJoin) throws -> T) throws
    -> T
  {
    // Without affinity and collation, so that nothing is taken for equal that is not.
    let list = (key.columns + values).map { name in
      "+\(name == key.rowid ? name : quoted(name)) COLLATE BINARY AS \(quoted(name))"
    }.joined(separator: ", ")
    let index = key.columns.map(quoted).joined(separator: ", ")
    func remove() throws {
      for side in ["before", "after"] { try db.execute(sql: "DROP TABLE IF EXISTS temp.drydock_\(side)") }
    }
    try remove()
    for (side, schema) in [("before", "before"), ("after", "main")] {
      let copy = "drydock_\(side)"
      try db.execute(
        sql: """
          CREATE TEMP TABLE \(copy) AS SELECT \(list) FROM \(schema).\(quoted(table));
          CREATE INDEX temp.\(copy)_key ON \(copy) (\(index));
          """)
    }
    let result = try body(
      RowJoin(before: "temp.drydock_before", after: "temp.drydock_after", key: key.columns, values))
    try remove()
    return result
  }

  private func compare(_ join: RowJoin) throws -> ContainerDifference.Table? {
    func count(_ from: String) throws -> Int { try Int.fetchOne(db, sql: "SELECT count(*) \(from)") ?? 0 }
    var result = ContainerDifference.Table(
      name: table, added: try count(join.added), removed: try count(join.removed),
      changed: try join.changed.map(count) ?? 0)
    if result.added + result.removed + result.changed == 0 { return nil }
    let parts: [(ContainerDifference.Change, Int, String?)] = [
      (.removed, result.removed, join.removed), (.changed, result.changed, join.changed),
      (.added, result.added, join.added),
    ]
    for case (let change, let number, let from?) in parts where number > 0 && limit > 0 {
      let names = RowNames(table: table, columns: join.key + join.values)
      result.rows += try join.rows(change, from, limit, db).map { $0.shown(names, redactor) }
    }
    return result
  }

  /// Nothing tells which row is which: rows that are on one side only.
  private func compareWithoutKey(isSameShape: Bool, _ columns: [String]) throws -> ContainerDifference.Table?
  {
    let name = quoted(table)
    func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: "SELECT count(*) FROM \(sql)") ?? 0 }
    var result = ContainerDifference.Table(name: table, added: 0, removed: 0, changed: 0)
    if isSameShape {
      let list = columns.flatMap { ["+\(quoted($0)) COLLATE BINARY", "typeof(\(quoted($0)))"] }.joined(
        separator: ", ")
      let (old, new) = ("SELECT \(list) FROM before.\(name)", "SELECT \(list) FROM main.\(name)")
      (result.added, result.removed) = (
        try count("(\(new) EXCEPT \(old))"), try count("(\(old) EXCEPT \(new))")
      )
    } else {
      (result.added, result.removed) = (try count("main.\(name)"), try count("before.\(name)"))
    }
    return result.added + result.removed == 0 ? nil : result
  }
}

/// The SQL that finds the rows that differ.
struct RowJoin {
  /// The two tables, as SQL.
  let before, after: String
  /// The columns that tell which row is which, and all others that both sides have.
  let key, values: [String]

  init(before: String, after: String, key: [String], _ values: [String]) {
    (self.before, self.after, self.key, self.values) = (before, after, key, values)
  }

  private var condition: String {
    key.map { "n.\(quoted($0)) COLLATE BINARY IS o.\(quoted($0))" }.joined(separator: " AND ")
  }

  var added: String {
    "FROM \(after) n WHERE NOT EXISTS (SELECT 1 FROM \(before) o WHERE \(condition))"
  }

  var removed: String {
    "FROM \(before) o WHERE NOT EXISTS (SELECT 1 FROM \(after) n WHERE \(condition))"
  }

  /// Nil when there is nothing besides the key.
  var changed: String? {
    if values.isEmpty { return nil }
    // Row values, since a table may have more columns than an expression may be deep. The type counts too: 1 and 1.0
    // are not the same to an app.
    func list(_ form: (String) -> String) -> String { values.map(form).joined(separator: ", ") }
    func side(_ alias: String) -> (String, String) {
      (list { "+\(alias).\(quoted($0)) COLLATE BINARY" }, list { "typeof(\(alias).\(quoted($0)))" })
    }
    let (n, o) = (side("n"), side("o"))
    // The order of the tables is fixed: the one is read from its start to its end, the other by its index.
    return """
      FROM \(before) o CROSS JOIN \(after) n
      WHERE \(condition) AND ((\(n.0)) IS NOT (\(o.0)) OR (\(n.1)) IS NOT (\(o.1)))
      """
  }

  /// A result has at most 2,000 columns; nobody reads rows of so many.
  private static let shownColumns = 200

  /// The first rows that differ, in the order of their keys.
  func rows(
    _ change: ContainerDifference.Change, _ from: String, _ limit: Int, _ db: Database
  ) throws -> [ComparedRow] {
    let (isOld, isNew) = (change != .added, change != .removed)
    let own = isOld ? "o" : "n"
    let shown = values.prefix(Self.shownColumns)
    var list = key.flatMap { RowValue.selection("\(own).\(quoted($0))") }
    for name in shown.map(quoted) {
      if isOld { list += RowValue.selection("o.\(name)") }
      if isNew { list += RowValue.selection("n.\(name)") }
      if isOld && isNew {
        list.append("+o.\(name) COLLATE BINARY IS +n.\(name) AND typeof(o.\(name)) = typeof(n.\(name))")
      }
    }
    let order = key.map { "\(own).\(quoted($0)) COLLATE BINARY" }.joined(separator: ", ")
    let sql = "SELECT \(list.joined(separator: ", ")) \(from) ORDER BY \(order) LIMIT \(limit)"
    return try Row.fetchAll(db, sql: sql).map { row in
      var at = 0
      var compared = ComparedRow(change: change)
      compared.key = key.map { name in
        let value = RowValue(row, &at)
        return .init(name: name, before: isOld ? value : nil, after: isNew ? value : nil)
      }
      for name in shown {
        var column = ComparedRow.Column(name: name)
        if isOld { column.before = RowValue(row, &at) }
        if isNew { column.after = RowValue(row, &at) }
        if isOld && isNew {
          column.isSame = row[at]
          at += 1
        }
        compared.columns.append(column)
      }
      return compared
    }
  }
}
