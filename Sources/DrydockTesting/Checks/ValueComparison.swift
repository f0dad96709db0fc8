import AppStores
import ContainerDiff
import ContainerTransaction
import FileSystem
import GRDB
import MigrationEngine

/// Compares the tables of a database before and after a step.
struct ValueComparison {
  /// A connection to the database after the step; the one before it is attached as `before`.
  private let db: Database
  private let path: ContainerPath
  private let outcomes: [String: AnnouncedLoss.Tables.Outcome]
  private let isGained: (DatabaseValue) -> Bool
  private let old: [String: TableShape], new: [String: TableShape]

  private struct TableShape {
    var name: String
    var columns: [String]
    /// The columns of the primary key; empty for rowids.
    var key: [String]
    var hasRowid: Bool
    /// Its primary key is an integer, which is an alias of the rowid: a number without a meaning.
    var keyIsRowid: Bool
    /// Its rows are not counted besides.
    var isVirtual: Bool

    /// Whether a column has numbers without a meaning, which may change.
    func isMeaningless(_ column: String) -> Bool { keyIsRowid && key.contains(column) }
  }

  /// - Parameters:
  ///   - before, after: files with the database before and after the step.
  ///   - outcomes: what the author says of tables, by their names in lower case.
  ///   - isGained: whether a setting, an item or a file has got a value.
  static func losses(
    before: String, after: String, at path: ContainerPath, outcomes: [String: AnnouncedLoss.Tables.Outcome],
    isGained: @escaping (DatabaseValue) -> Bool
  ) throws -> [Loss] {
    try with(before, after) { db in
      let comparison = try ValueComparison(db, path, outcomes, isGained)
      return try comparison.old.values.sorted { $0.name < $1.name }.filter {
        outcomes[$0.name.lowercased()] != .deleted
      }
      .flatMap { try comparison.losses(of: $0) }
    }
  }

  /// Whether all values of a column are in another one of the table that did not have them before.
  static func isKept(_ table: String, _ column: String, before: String, after: String) throws -> Bool {
    try with(before, after) { db in
      let comparison = try ValueComparison(db, .root, [:]) { _ in false }
      guard let shape = comparison.old[table.lowercased()], shape.columns.contains(column),
        let target = comparison.new[table.lowercased()]
      else { return false }
      return try comparison.isElsewhere(column, of: shape, in: [target])
    }
  }

  private init(
    _ db: Database, _ path: ContainerPath, _ outcomes: [String: AnnouncedLoss.Tables.Outcome],
    _ isGained: @escaping (DatabaseValue) -> Bool
  ) throws {
    (self.db, self.path, self.outcomes, self.isGained) = (db, path, outcomes, isGained)
    let unchanged = try Self.unchanged(db)
    (old, new) = (
      try Self.tables("before", db, besides: unchanged), try Self.tables("main", db, besides: unchanged)
    )
  }

  /// The app's own tables by their names in lower case: no views, and not what is behind a virtual table.
  private static func tables(
    _ schema: String, _ db: Database, besides unchanged: Set<String> = []
  ) throws -> [String: TableShape] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT list.name, list.wr, list.type, master.sql FROM pragma_table_list AS list
        JOIN \(schema).sqlite_schema AS master ON master.name = list.name AND master.type = 'table'
        WHERE list.schema = ? AND list.type IN ('table', 'virtual') AND list.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        """, arguments: [schema])
    var shapes: [String: TableShape] = [:]
    for row in rows {
      let (name, sql): (String, String) = (row[0], row[3])
      if unchanged.contains(name.lowercased()) { continue }
      // The rows of such a full-text index are those of another table.
      if row[2] == "virtual", sql.lowercased().contains("content") { continue }
      // Core Data counts in Z_OPT how often it has saved an object.
      let text = "SELECT name, pk, type FROM pragma_table_xinfo(?, ?) WHERE hidden != 1 AND name != 'Z_OPT'"
      // The module may be the app's.
      guard let columns = try? Row.fetchAll(db, sql: text, arguments: [name, schema]) else { continue }
      let key = columns.filter { $0["pk"] != 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      shapes[name.lowercased()] = TableShape(
        name: name, columns: columns.map { $0["name"] }, key: key.map { $0["name"] }, hasRowid: row[1] == 0,
        keyIsRowid: key.count == 1 && (key[0]["type"] as String?)?.uppercased() == "INTEGER",
        isVirtual: row[2] == "virtual")
    }
    return shapes
  }

  /// The tables that are as they were, by their names in lower case: most steps change few of many.
  private static func unchanged(_ db: Database) throws -> Set<String> {
    let names = try String.fetchAll(
      db,
      sql: """
        SELECT new.name FROM main.sqlite_schema AS new JOIN before.sqlite_schema AS old
        ON old.type = 'table' AND old.name = new.name AND old.sql = new.sql WHERE new.type = 'table'
        """)
    let unchanged = names.filter { name in
      let table = quotedIdentifier(name)
      func isSame(_ columns: String) throws -> Bool {
        let sql = """
          SELECT (SELECT count(*) FROM before.\(table)) = (SELECT count(*) FROM main.\(table))
          AND NOT EXISTS (SELECT \(columns) FROM before.\(table) EXCEPT SELECT \(columns) FROM main.\(table))
          """
        return try Bool.fetchOne(db, sql: sql) == true
      }
      // One without rowids, or whose module or collation only the app has.
      return (try? isSame("rowid, *")) ?? (try? isSame("*")) ?? false
    }
    return Set(unchanged.map { $0.lowercased() })
  }

  // MARK: Tables

  private func losses(of table: TableShape) throws -> [Loss] {
    guard let target = new[table.name.lowercased()] ?? successor(of: table) else {
      // Its rows were copied into tables that there were already.
      guard case .dropped(let names) = outcomes[table.name.lowercased()] else { return [] }
      let successors = new.filter { names.contains($0.key) }.map(\.value)
      return try table.columns.filter { !table.isMeaningless($0) && !successors.isEmpty }.compactMap {
        column in
        let count = try values(of: column, table)
        let isThere = try successors.contains { other in
          try other.columns.contains { try has("main", other, $0, valuesOf: column, table) }
        }
        return count == 0 || isThere ? nil : loss(of: table, column, .column, count)
      }
    }
    let shared = table.columns.filter { column in
      target.columns.contains { $0.lowercased() == column.lowercased() }
    }
    // The author gives a reason for these.
    var excused: Set<String> = []
    if case .columns(let names) = outcomes[table.name.lowercased()] { excused = names }
    let content = shared.filter { !table.isMeaningless($0) && !excused.contains($0.lowercased()) }
    var losses: [Loss] = []
    let key = key(of: table, in: target)
    let isComplete =
      try !content.isEmpty && missing(content, from: table, in: target) == 0
      || hasOtherKeys(table, target, content)
    // All that is left under its name are numbers without a meaning, and the rest is under new names.
    let isRenamed =
      try content.isEmpty && count("main", target) >= count("before", table) && !table.columns.isEmpty
      && table.columns.allSatisfy { try table.isMeaningless($0) || isElsewhere($0, of: table) }
    if !isComplete && !isRenamed {
      let gone =
        try content.isEmpty
        ? key.map { try missingKeys($0, from: table, in: target) } ?? 0
        : missing(content, from: table, in: target, withoutKeys: key)
          + (key.map { try replaced(table, target, content, $0) } ?? 0)
      let net = table.isVirtual ? 0 : max(0, try count("before", table) - count("main", target))
      if gone > net { losses.append(loss(of: table, nil, .rows, gone)) }
    }
    let dropped = table.columns.filter {
      !shared.contains($0) && !table.isMeaningless($0) && !excused.contains($0.lowercased())
    }
    let added = target.columns.filter { column in
      !table.columns.contains { $0.lowercased() == column.lowercased() }
    }
    guard let key else {
      return try losses
        + dropped.filter { try !isElsewhere($0, of: table) }.map {
          try loss(of: table, $0, .column, values(of: $0, table))
        }
    }
    var pairs = isComplete ? [] : content.map { ($0, $0) }
    for column in dropped where try values(of: column, table) > 0 {
      if let name = try renamed(column, of: table, to: added, in: target, key) {
        pairs.append((column, name))
      } else if try !isElsewhere(column, of: table) {
        losses.append(loss(of: table, column, .column, try values(of: column, table)))
      }
    }
    for (column, name) in pairs { losses += try changes(of: column, to: name, table, target, key) }
    return losses
  }

  private func loss(of table: TableShape, _ column: String?, _ kind: Loss.Kind, _ count: Int)
    -> Loss
  {
    Loss(
      path: path, name: [table.name, column].compactMap { $0 }.joined(separator: "."), table: table.name,
      kind: kind, count: count, noun: column == nil ? "row" : "value")
  }

  /// The new table that has the rows of one that is gone: with most of its columns, and no fewer rows.
  private func successor(of table: TableShape) -> TableShape? {
    let names = Set(table.columns.map { $0.lowercased() })
    func score(_ shape: TableShape) -> Int { shape.columns.count { names.contains($0.lowercased()) } }
    return new.filter { old[$0.key] == nil }.values.filter { score($0) > 0 }
      .max { (score($0), $1.name) < (score($1), $0.name) }
  }

  private func count(_ schema: String, _ table: TableShape) throws -> Int {
    try number("SELECT count(*) FROM \(schema).\(quotedIdentifier(table.name))")
  }

  private func values(of column: String, _ table: TableShape) throws -> Int {
    let name = quotedIdentifier(column)
    return try number(
      "SELECT count(\(name)) FROM before.\(quotedIdentifier(table.name)) WHERE length(\(name)) > 0")
  }

  // MARK: Rows

  /// The columns that identify a row on both sides; nil when none do.
  private func key(of table: TableShape, in target: TableShape) -> [String]? {
    let names = Set(target.columns.map { $0.lowercased() })
    if !table.key.isEmpty, table.key.allSatisfy({ names.contains($0.lowercased()) }) { return table.key }
    return table.key.isEmpty && table.hasRowid && target.hasRowid ? ["rowid"] : nil
  }

  private func equal(_ columns: [String], _ left: String, _ right: String) -> String {
    columns.map {
      "\(left).\(quotedIdentifier($0)) COLLATE BINARY IS \(right).\(quotedIdentifier($0)) COLLATE BINARY"
    }.joined(separator: " AND ")
  }

  private func missingKeys(_ key: [String], from table: TableShape, in target: TableShape) throws -> Int {
    let sql = """
      SELECT count(*) FROM before.\(quotedIdentifier(table.name)) AS o
      WHERE NOT EXISTS (SELECT 1 FROM main.\(quotedIdentifier(target.name)) AS n WHERE \(equal(key, "o", "n")))
      """
    return try number(sql)
  }

  /// How many rows have a content that fewer rows have afterwards; with a key, only of rows whose key is gone.
  private func missing(
    _ content: [String], from table: TableShape, in target: TableShape, withoutKeys key: [String]? = nil
  ) throws -> Int {
    func grouped(_ side: String, _ own: TableShape, _ other: (String, TableShape)) -> String {
      let list = content.enumerated().map { "+x.\(quotedIdentifier($1)) COLLATE BINARY AS c\($0)" }
      let filter = key.map {
        " WHERE NOT EXISTS (SELECT 1 FROM \(other.0).\(quotedIdentifier(other.1.name)) AS y WHERE \(equal($0, "x", "y")))"
      }
      let groups = content.indices.map { "\($0 + 1)" }.joined(separator: ", ")
      return
        "SELECT \(list.joined(separator: ", ")), count(*) AS number FROM \(side).\(quotedIdentifier(own.name)) AS x"
        + "\(filter ?? "") GROUP BY \(groups)"
    }
    let match = content.indices.map { "o.c\($0) IS n.c\($0)" }.joined(separator: " AND ")
    let sql = """
      WITH o AS (\(grouped("before", table, ("main", target)))), n AS (\(grouped("main", target, ("before", table))))
      SELECT coalesce(sum(max(0, o.number - coalesce((SELECT n.number FROM n WHERE \(match)), 0))), 0) FROM o
      """
    return try number(sql)
  }

  /// Whether all rows are there and only their keys have changed, each to another one.
  private func hasOtherKeys(_ table: TableShape, _ target: TableShape, _ content: [String]) throws -> Bool {
    let keys = content.filter { table.key.contains($0) }
    let rest = content.filter { !table.key.contains($0) }
    guard !keys.isEmpty, try count("main", target) >= count("before", table),
      try rest.isEmpty || missing(rest, from: table, in: target) == 0
    else { return false }
    return try keys.allSatisfy { column in
      func distinct(_ schema: String, _ shape: TableShape) throws -> Int {
        let sql =
          "SELECT count(DISTINCT \(quotedIdentifier(column))) FROM \(schema).\(quotedIdentifier(shape.name))"
        return try number(sql)
      }
      return try distinct("main", target) >= distinct("before", table)
    }
  }

  /// How many rows have nothing of what a row with their key had, while others have all: they are other rows.
  private func replaced(
    _ table: TableShape, _ target: TableShape, _ content: [String], _ key: [String]
  ) throws -> Int {
    let values = content.filter { !key.contains($0) }
    guard values.count > 2 else { return 0 }
    let same = values.map { "o.\(quotedIdentifier($0)) IS n.\(quotedIdentifier($0))" }
    let filled = values.map { "(o.\(quotedIdentifier($0)) IS NOT NULL)" }.joined(separator: " + ")
    let from = joined(table, target, key)
    let kept = "SELECT EXISTS (SELECT 1 \(from) WHERE \(same.joined(separator: " AND ")))"
    guard try holds(kept) else { return 0 }
    let sql = "SELECT count(*) \(from) WHERE NOT (\(same.joined(separator: " OR "))) AND \(filled) > 1"
    return try number(sql)
  }

  // MARK: Values

  private func joined(_ table: TableShape, _ target: TableShape, _ key: [String]) -> String {
    "FROM before.\(quotedIdentifier(table.name)) AS o JOIN main.\(quotedIdentifier(target.name)) AS n ON \(equal(key, "o", "n"))"
  }

  /// The new column that has the most values of one that is gone; nil when none has any.
  private func renamed(
    _ column: String, of table: TableShape, to added: [String], in target: TableShape, _ key: [String]
  ) throws -> String? {
    var best: (name: String, count: Int)?
    for name in added {
      let sql =
        "SELECT count(*) \(joined(table, target, key)) WHERE o.\(quotedIdentifier(column)) = n.\(quotedIdentifier(name))"
      let count = try number(sql)
      if count > best?.count ?? 0 { best = (name, count) }
    }
    return best?.name
  }

  /// Whether a column has all values that another one had.
  private func has(
    _ schema: String, _ other: TableShape, _ name: String, valuesOf column: String, _ table: TableShape
  ) throws -> Bool {
    func has(_ form: (String) -> String) throws -> Bool {
      let own = quotedIdentifier(column)
      return try holds(
        """
        SELECT NOT EXISTS (
          SELECT \(form(own)) FROM before.\(quotedIdentifier(table.name)) WHERE length(\(own)) > 0
          EXCEPT SELECT \(form(quotedIdentifier(name))) FROM \(schema).\(quotedIdentifier(other.name)))
        """)
    }
    // A number may be text there.
    return try has { $0 } || has { "CAST(\($0) AS TEXT)" }
  }

  /// Whether all values of a column are now in one column that did not have them before, or in settings, items or files.
  private func isElsewhere(_ column: String, of table: TableShape, in targets: [TableShape]? = nil) throws
    -> Bool
  {
    let name = quotedIdentifier(column)
    let values =
      "SELECT DISTINCT \(name) FROM before.\(quotedIdentifier(table.name)) WHERE length(\(name)) > 0"
    let cursor = try DatabaseValue.fetchCursor(db, sql: values)
    var isInStores = try cursor.next().map(isGained) ?? false
    while isInStores, let value = try cursor.next() { isInStores = isGained(value) }
    if isInStores { return true }
    for target in targets ?? Array(new.values) {
      let known = old[target.name.lowercased()]
      for name in target.columns where try has("main", target, name, valuesOf: column, table) {
        let isKnown = known?.columns.contains { $0.lowercased() == name.lowercased() } == true
        if let known, isKnown, try has("before", known, name, valuesOf: column, table) { continue }
        return true
      }
    }
    return false
  }

  private func changes(
    of column: String, to name: String, _ table: TableShape, _ target: TableShape, _ key: [String]
  ) throws -> [Loss] {
    let (o, n) = ("o.\(quotedIdentifier(column))", "n.\(quotedIdentifier(name))")
    let from = joined(table, target, key)
    func count(_ condition: String) throws -> Int {
      try number("SELECT count(*) \(from) WHERE \(condition)")
    }
    // Values that were moved are not lost where they were.
    if try isElsewhere(column, of: table) { return [] }
    // As SQLite trims, besides what other programs take for space.
    let space = "char(32, 9, 10, 13, 160)"
    // Without the sign of an omission.
    func text(_ value: String) -> String {
      "iif(typeof(\(value)) = 'text', rtrim(\(value), '.…' || \(space)), \(value))"
    }
    let (whole, part) = (text(o), text(n))
    let isStart = "CAST(substr(\(whole), 1, length(\(part))) AS TEXT) = CAST(\(part) AS TEXT)"
    let isEnd = "CAST(substr(\(whole), -length(\(part))) AS TEXT) = CAST(\(part) AS TEXT)"
    // A number that was written with more digits is the same one. A NUL is the end of a text for SQLite's length.
    let isCut = """
      (typeof(\(o)) = 'text' AND typeof(\(n)) = 'text' AND instr(\(o), char(0)) > 0
      AND length(CAST(\(n) AS BLOB)) BETWEEN 1 AND length(CAST(\(o) AS BLOB)) - 1
      AND substr(CAST(\(o) AS BLOB), 1, length(CAST(\(n) AS BLOB))) = CAST(\(n) AS BLOB)) OR
      typeof(\(o)) IN ('text', 'blob') AND (typeof(\(n)) = typeof(\(o)) OR \(o) GLOB '*[^-+.0-9]*')
      AND length(\(part)) BETWEEN 1 AND length(\(whole)) - 1 AND (\(isStart) OR \(isEnd))
      """
    let floor = "CAST(\(o) AS INTEGER) - (\(o) < CAST(\(o) AS INTEGER))"
    let rounded = (["CAST(\(o) AS INTEGER)", floor, floor + " + 1"] + (0...4).map { "round(\(o), \($0))" })
      .joined(
        separator: ", ")
    // Besides digits that a number or a text does not hold.
    let isRounded = """
      typeof(\(o)) = 'real' AND typeof(\(n)) IN ('integer', 'real') AND \(o) <> \(n) AND abs(\(o) - \(n)) < 1
      AND \(n) IN (\(rounded))
      OR typeof(\(o)) = 'integer' AND typeof(\(n)) = 'real' AND abs(\(o)) > 9e15 AND abs(\(o) - \(n)) <= 1024
      AND CAST(\(n) AS INTEGER) <> \(o)
      OR typeof(\(o)) = 'integer' AND typeof(\(n)) = 'integer' AND abs(\(o)) > 9e15 AND \(o) <> \(n)
      AND CAST(CAST(\(o) AS REAL) AS INTEGER) = \(n)
      OR typeof(\(o)) = 'text' AND typeof(\(n)) IN ('integer', 'real') AND \(o) NOT GLOB '*[^0-9]*'
      AND abs(CAST(\(o) AS REAL) - \(n)) <= abs(\(n)) * 1e-9 AND CAST(CAST(\(n) AS INTEGER) AS TEXT) <> \(o)
      """
    let conditions: [(Loss.Kind, String)] = [
      (.emptied, "length(\(o)) > 0 AND coalesce(length(\(n)), 0) = 0"), (.shortened, isCut),
      (.rounded, isRounded),
    ]
    /// Whether all were cut by the same text, or have few values: then it is a mapping.
    func isMapping(_ found: Int) throws -> Bool {
      let rest =
        "iif(\(isStart), substr(\(whole), length(\(part)) + 1), substr(\(whole), 1, length(\(whole)) - length(\(part))))"
      let sql = "SELECT count(DISTINCT \(rest)), count(DISTINCT \(o)) \(from) WHERE \(isCut)"
      guard found > 1, let row = try Row.fetchOne(db, sql: sql) else { return false }
      return row[0] == 1 || (row[1] as Int) * 2 <= found
    }
    var losses: [Loss] = []
    for (kind, condition) in conditions {
      let found = try count(condition)
      if found == 0 { continue }
      if kind == .shortened, try isMapping(found) { continue }
      losses.append(loss(of: table, column, kind, found))
    }
    for other in table.columns where other != column && losses.isEmpty && !table.isMeaningless(other) {
      let changed = "\(o) IS NOT \(n) AND length(\(o)) > 0"
      let number = try count(changed)
      // Where the other one has this one's value now, they were exchanged.
      let isKept = target.columns.contains(other) ? "n.\(quotedIdentifier(other)) IS \(o)" : "0"
      let taken = "\(changed) AND o.\(quotedIdentifier(other)) IS \(n) AND NOT \(isKept)"
      if number > 1, try count(taken) == number { losses.append(loss(of: table, column, .replaced, number)) }
    }
    if losses.isEmpty {
      let number = try count(lostFields(o, n, target))
      if number > 0 { losses.append(loss(of: table, column, .fields, number)) }
    }
    let merged = """
      SELECT count(*) FROM (
        SELECT 1 \(from) WHERE \(o) IS NOT NULL AND length(\(n)) > 0
        GROUP BY \(n) COLLATE BINARY, typeof(\(n))
        HAVING count(DISTINCT lower(trim(\(o), \(space))) COLLATE BINARY) > 1)
      """
    let mixed = try number(merged)
    if mixed > 0 { losses.append(loss(of: table, column, .merged, mixed)) }
    return losses
  }

  /// Whether a JSON document has lost a field whose value is neither in the new one nor in another column of the row.
  private func lostFields(_ o: String, _ n: String, _ target: TableShape) -> String {
    let isDocument = { (value: String) in
      "typeof(\(value)) = 'text' AND substr(ltrim(\(value)), 1, 1) IN ('{', '[') AND json_valid(\(value))"
    }
    // A statement has at most some hundred terms.
    let fresh = new.filter { old[$0.key] == nil }.values.flatMap { table in
      table.columns.map {
        "AND CAST(f.atom AS TEXT) NOT IN "
          + "(SELECT coalesce(CAST(\(quotedIdentifier($0)) AS TEXT), '') FROM main.\(quotedIdentifier(table.name)))"
      }
    }
    let columns = target.columns.prefix(100).map { "coalesce(CAST(n.\(quotedIdentifier($0)) AS TEXT), '')" }
    return """
      \(isDocument(o)) AND \(isDocument(n)) AND \(o) IS NOT \(n) AND EXISTS (
        SELECT 1 FROM json_tree(iif(\(isDocument(o)), \(o), '{}')) AS f WHERE length(f.atom) > 0 AND f.type NOT IN ('true', 'false')
        AND NOT EXISTS (SELECT 1 FROM json_tree(iif(\(isDocument(n)), \(n), '{}')) AS g WHERE g.fullkey = f.fullkey AND g.type <> 'null')
        AND NOT EXISTS (SELECT 1 FROM json_tree(iif(\(isDocument(n)), \(n), '{}')) AS g WHERE CAST(g.atom AS TEXT) = CAST(f.atom AS TEXT))
        AND CAST(f.atom AS TEXT) NOT IN (\(columns.joined(separator: ", "))) \(fresh.prefix(50).joined(separator: " ")))
      """
  }

  private func number(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: sql) ?? 0 }
  private func holds(_ sql: String) throws -> Bool { try Bool.fetchOne(db, sql: sql) == true }

  /// Runs a body with the database after the step, with the one before it attached as `before`.
  private static func with<T>(
    _ before: String?, _ after: String, _ body: (Database) throws -> T
  ) throws -> T {
    var configuration = GRDB.Configuration()
    configuration.prepareDatabase { $0.substituteUnknownCollations() }
    let queue = try DatabaseQueue(path: after, configuration: configuration)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { db in
      if let before { try db.execute(sql: "ATTACH ? AS before", arguments: [before]) }
      return try body(db)
    }
  }

  /// Whether a database has a value in one of its columns.
  static func isFound(_ value: DatabaseValue, in file: String) throws -> Bool {
    try with(nil, file) { db in
      try tables("main", db).values.contains { table in
        try table.columns.contains { column in
          let name = quotedIdentifier(column)
          let sql = """
            SELECT EXISTS (SELECT 1 FROM \(quotedIdentifier(table.name)) WHERE \(name) = ?1 OR CAST(\(name) AS TEXT) = CAST(?1 AS TEXT))
            """
          return try Bool.fetchOne(db, sql: sql, arguments: [value]) == true
        }
      }
    }
  }
}
