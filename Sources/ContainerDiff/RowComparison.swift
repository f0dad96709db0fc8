import AppStores
import Formats
import GRDB

/// Compares the rows of a table that both databases have, over the columns that both have.
///
/// Each row of one side is looked up in the other by an index, inside of SQLite: nothing is loaded, whatever the
/// table's size, and no order of keys is needed that SQLite and this program would have to agree on.
struct RowComparison {
  let table: String
  let db: Database
  /// How many rows are listed, of each kind.
  let limit: Int
  let redactor: Redactor
  /// Columns that have what a column with a secret name has, in this table or another: it was renamed or copied.
  private(set) var secret: Set<String> = []
  /// Columns of which some values are those of such a column.
  private(set) var copied: Set<String> = []

  /// Whether `secrets.drydock` has the values of columns with secret names.
  let hasSecrets: Bool

  mutating func run() throws -> ContainerDifference.Table? {
    let (old, new) = (try TableKey(table, "before", db), try TableKey(table, "main", db))
    let shared = new.columns.filter { old.columns.containsExactly($0) }
    guard let key = TableKey.shared(old, new) else {
      return try compareWithoutKey(
        isSameShape: old.columns.elementsEqual(new.columns) { $0.isExactly($1) }, shared)
    }
    let rest = shared.filter { !key.columns.containsExactly($0) }
    let join = RowJoin(
      before: "before.\(quotedIdentifier(table))", after: "main.\(quotedIdentifier(table))", key: key.columns,
      values: rest)
    if hasSecrets {
      (secret, copied) = try copiedSecrets(old.columns, new.columns, key.isIndexed ? join : nil)
      secret.formUnion(copied.intersection(key.columns))
    }
    let lone =
      try old.columns.filter { !shared.containsExactly($0) }.compactMap {
        try values(of: $0, .removed, key.columns)
      }
      + new.columns.filter { !shared.containsExactly($0) }.compactMap {
        try values(of: $0, .added, key.columns)
      }
    if key.isIndexed { return try compare(join, lone) }
    return try withCopies(key, rest) { try compare($0, lone) }
  }

  /// Copies what has no index that compares by bytes: a key with another collation (the app's own may be unknown
  /// here), of another type on each side, or of a virtual table.
  private func withCopies<T>(_ key: TableKey.Shared, _ values: [String], _ body: (RowJoin) throws -> T) throws
    -> T
  {
    // Without affinity and collation, so that nothing is taken for equal that is not.
    let list = (key.columns + values).map { name in
      "+\(name == key.rowid ? name : quotedIdentifier(name)) COLLATE BINARY AS \(quotedIdentifier(name))"
    }.joined(separator: ", ")
    let index = key.columns.map(quotedIdentifier).joined(separator: ", ")
    func remove() throws {
      for side in ["before", "after"] { try db.execute(sql: "DROP TABLE IF EXISTS temp.drydock_\(side)") }
    }
    try remove()
    for (side, schema) in [("before", "before"), ("after", "main")] {
      let copy = "drydock_\(side)"
      try db.execute(
        sql: """
          CREATE TEMP TABLE \(copy) AS SELECT \(list) FROM \(schema).\(quotedIdentifier(table));
          CREATE INDEX temp.\(copy)_key ON \(copy) (\(index));
          """)
    }
    let result = try body(
      RowJoin(before: "temp.drydock_before", after: "temp.drydock_after", key: key.columns, values: values))
    try remove()
    return result
  }

  /// - Parameter lone: the columns that one side only has.
  private func compare(_ join: RowJoin, _ lone: [ContainerDifference.ColumnValues]) throws
    -> ContainerDifference.Table?
  {
    func count(_ from: String) throws -> Int { try Int.fetchOne(db, sql: "SELECT count(*) \(from)") ?? 0 }
    var result = ContainerDifference.Table(
      name: table, added: try count(join.added), removed: try count(join.removed),
      changed: try join.changed.map(count) ?? 0)
    result.columns = try (result.changed == 0 ? [] : differing(join)) + lone
    if result.added + result.removed + result.changed + lone.count == 0 { return nil }
    let parts: [(ContainerDifference.Change, Int, String?)] = [
      (.removed, result.removed, join.removed), (.changed, result.changed, join.changed),
      (.added, result.added, join.added),
    ]
    for case (let change, let number, let from?) in parts where number > 0 && limit > 0 {
      let names = RowNames(table: table, columns: join.key + join.values, secret: secret)
      result.rows += try join.rows(change, from, limit, db, names, redactor, copied: copied)
    }
    return result
  }

  /// Nothing identifies rows: those that are on one side only are counted.
  private func compareWithoutKey(isSameShape: Bool, _ columns: [String]) throws -> ContainerDifference.Table?
  {
    let name = quotedIdentifier(table)
    func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: "SELECT count(*) FROM \(sql)") ?? 0 }
    var result = ContainerDifference.Table(name: table, added: 0, removed: 0, changed: 0)
    if isSameShape {
      let values = columns.map { "+\(quotedIdentifier($0)) COLLATE BINARY" }
      // The types of many columns in one: a result has at most two thousand columns, an expression a depth of a thousand.
      let types = stride(from: 0, to: columns.count, by: 100).map { first in
        columns[first...].prefix(100).map { "typeof(\(quotedIdentifier($0)))" }.joined(separator: " || ")
      }
      let list = (values + types).joined(separator: ", ")
      // Equal rows are numbered, so that one of two is missed.
      let rows = "SELECT \(list), row_number() OVER (PARTITION BY \(list)) FROM"
      let (old, new) = ("\(rows) before.\(name)", "\(rows) main.\(name)")
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
  /// The columns that identify a row, and all others that both sides have.
  let key, values: [String]

  private var condition: String {
    key.map { "n.\(quotedIdentifier($0)) COLLATE BINARY IS o.\(quotedIdentifier($0))" }.joined(
      separator: " AND ")
  }

  var added: String {
    "FROM \(after) n WHERE NOT EXISTS (SELECT 1 FROM \(before) o WHERE \(condition))"
  }

  var removed: String {
    "FROM \(before) o WHERE NOT EXISTS (SELECT 1 FROM \(after) n WHERE \(condition))"
  }

  /// The order of the tables is fixed: the first is scanned, the second is searched by its index.
  var both: String { "FROM \(before) o CROSS JOIN \(after) n WHERE \(condition)" }

  /// A statement that counts for each column the rows that differ in it.
  func changes(of columns: [String]) -> String {
    let counts = columns.map(quotedIdentifier).map { "sum(NOT (\(Self.isSame($0))))" }
    return "SELECT \(counts.joined(separator: ", ")) \(both)"
  }

  private static func isSame(_ column: String) -> String {
    "+o.\(column) COLLATE BINARY IS +n.\(column) AND typeof(o.\(column)) = typeof(n.\(column))"
  }

  /// Nil when there is nothing besides the key.
  var changed: String? {
    if values.isEmpty { return nil }
    // Row values, since a table may have more columns than an expression may be deep. The type counts too: 1 and 1.0
    // are not the same to an app.
    func list(_ form: (String) -> String) -> String { values.map(form).joined(separator: ", ") }
    func side(_ alias: String) -> (String, String) {
      (
        list { "+\(alias).\(quotedIdentifier($0)) COLLATE BINARY" },
        list { "typeof(\(alias).\(quotedIdentifier($0)))" }
      )
    }
    let (n, o) = (side("n"), side("o"))
    return "\(both) AND ((\(n.0)) IS NOT (\(o.0)) OR (\(n.1)) IS NOT (\(o.1)))"
  }

  /// A result has at most 2,000 columns; rows of so many are not readable.
  static let shownColumns = 200

  /// The first rows that differ, in the order of their keys, in readable form: the key, and the columns that differ. All columns
  /// are read, since what differs may be named by what does not.
  func rows(
    _ change: ContainerDifference.Change, _ from: String, _ limit: Int, _ db: Database, _ names: RowNames,
    _ redactor: Redactor, copied: Set<String>
  ) throws -> [ContainerDifference.Row] {
    let (isOld, isNew) = (change != .added, change != .removed)
    let own = isOld ? "o" : "n"
    let shown = values.prefix(Self.shownColumns)
    var list = key.flatMap { RowValue.selection("\(own).\(quotedIdentifier($0))") }
    let sides: [String] = (isOld ? ["o"] : []) + (isNew ? ["n"] : [])
    for (plain, name) in shown.map({ ($0, quotedIdentifier($0)) }) {
      if copied.contains(plain) {
        let found = sides.map { "coalesce(\($0).\(name) IN secrets.drydock, 0)" }
        list.append(found.joined(separator: " OR "))
      }
      if isOld { list += RowValue.selection("o.\(name)") }
      if isNew { list += RowValue.selection("n.\(name)") }
      if isOld && isNew {
        list.append(Self.isSame(name))
      }
    }
    let order = key.map { "\(own).\(quotedIdentifier($0)) COLLATE BINARY" }.joined(separator: ", ")
    let sql = "SELECT \(list.joined(separator: ", ")) \(from) ORDER BY \(order) LIMIT \(limit)"
    var result: [ContainerDifference.Row] = []
    // Row by row, since documents are read as a whole.
    let cursor = try Row.fetchCursor(db, sql: sql)
    while let row = try cursor.next() {
      var at = 0
      let keys = key.map { name in
        let value = RowValue(row, &at)
        return ComparedValue(name: name, before: isOld ? value : nil, after: isNew ? value : nil)
      }
      let columns = shown.map { name in
        var column = ComparedValue(name: name)
        if copied.contains(name) {
          column.isSecret = row[at]
          at += 1
        }
        if isOld { column.before = RowValue(row, &at) }
        if isNew { column.after = RowValue(row, &at) }
        if isOld && isNew {
          column.isSame = row[at]
          at += 1
        }
        return column
      }
      let judged = names.names(
        in: keys.flatMap { $0.texts(isKey: true) } + columns.flatMap { $0.texts(isKey: false) })
      func field(_ value: ComparedValue) -> ContainerDifference.Field {
        let name = value.isSecret ? .secret : judged[value.name] ?? .plain
        return .init(
          name: value.name, before: value.before?.shown(name, redactor),
          after: value.after?.shown(name, redactor), document: value.document(name, redactor))
      }
      result.append(
        .init(change: change, key: keys.map(field), columns: columns.filter { !$0.isSame }.map(field)))
    }
    return result
  }
}

/// The value of a column in a row that differs.
private struct ComparedValue {
  var name: String
  var before: RowValue?, after: RowValue?
  var isSame = false
  /// Whether it is that of a column with a secret name.
  var isSecret = false

  func document(_ name: SecretName, _ redactor: Redactor) -> ContainerDifference.DocumentFields? {
    guard let old = before?.whole, let new = after?.whole else { return nil }
    return redactor.difference(from: old, to: new, named: name)
  }

  func texts(isKey: Bool) -> [(name: String, text: String?, isKey: Bool)] {
    [before, after].compactMap { value in value.map { (name, $0.name, isKey) } }
  }
}

/// What identifies a row of a table.
package struct TableKey {
  /// The key that identifies a row on both sides.
  struct Shared {
    /// The columns.
    var columns: [String]
    /// Whether both sides have an index of these that compares by bytes.
    var isIndexed: Bool
    /// The column that is the rowid, when that is the key.
    var rowid: String?
  }

  /// The columns that are not computed, in the table's order.
  package let columns: [String]
  /// The columns of the primary key.
  package let primaryKey: [String]
  /// The declared key; empty when there is none, or when it is null in some row.
  package let declared: [String]
  /// How the declared key is indexed: each column's type and collation. Nil when it is the rowid.
  private let index: [String]?
  /// A name of the rowid that no column has; nil for a table without rowids.
  package let rowid: String?
  private let isVirtual: Bool

  package init(_ table: String, _ schema: String, _ db: Database) throws {
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, pk, type FROM pragma_table_info(?, ?)", arguments: [table, schema])
    let names: [String] = rows.map { $0["name"] }
    let key: [String] = rows.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      .map {
        $0["name"]
      }
    let kind = try Row.fetchOne(
      db, sql: "SELECT type, wr FROM pragma_table_list(?) WHERE schema = ?", arguments: [table, schema])
    let hasRowid = (kind?["wr"] as Int?) != 1
    (columns, primaryKey) = (names, key)
    isVirtual = kind?["type"] == "virtual"
    let taken = Set(names.map { $0.lowercased() })
    rowid = hasRowid ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    let indexName = try String.fetchOne(
      db, sql: "SELECT name FROM pragma_index_list(?, ?) WHERE origin = 'pk'", arguments: [table, schema])
    let listed = try indexName.map { name in
      try Row.fetchAll(
        db, sql: "SELECT name, coll FROM pragma_index_xinfo(?, ?) WHERE key = 1", arguments: [name, schema]
      ).map { row in
        let type: String? = rows.first { (row["name"] as String?)?.isExactly($0["name"]) == true }?["type"]
        return "\((type ?? "").uppercased()) \((row["coll"] as String? ?? "").uppercased())"
      }
    }
    // SQLite's own table of counters says nothing of a key.
    index = table == "sqlite_sequence" ? ["none"] : listed
    if table == "sqlite_sequence" {
      declared = ["name"]
    } else if hasRowid, listed != nil, !key.isEmpty {
      // SQLite allows several NULLs in a key.
      let isNull = key.map { "\(quotedIdentifier($0)) IS NULL" }.joined(separator: " OR ")
      let hasNull =
        try Bool.fetchOne(
          db, sql: "SELECT EXISTS (SELECT 1 FROM \(schema).\(quotedIdentifier(table)) WHERE \(isNull))")
        ?? true
      declared = hasNull ? [] : key
    } else {
      declared = key
    }
  }

  /// The declared key where both have the same one, else the rowid; nil when nothing identifies rows.
  static func shared(_ old: TableKey, _ new: TableKey) -> Shared? {
    if !new.declared.isEmpty, new.declared.allSatisfy({ old.columns.containsExactly($0) }),
      !old.declared.isEmpty,
      Set(old.declared.map { ExactText($0) }) == Set(new.declared.map { ExactText($0) })
    {
      let isIndexed =
        old.index == new.index && old.declared.elementsEqual(new.declared) { $0.isExactly($1) }
        && new.index?.allSatisfy { $0.hasSuffix(" BINARY") } != false
      return Shared(columns: new.declared, isIndexed: isIndexed, rowid: nil)
    }
    guard let rowid = new.rowid, old.rowid == rowid else { return nil }
    return Shared(columns: [rowid], isIndexed: !old.isVirtual && !new.isVirtual, rowid: rowid)
  }
}

/// A value of a row as it is shown. No more of it than that is taken out of the database.
struct RowValue {
  private static let taken = 2000
  /// Texts that begin as a document, and blobs, are taken as a whole up to this length.
  private static let takenDocument = 1 << 16
  private static let shownLength = 120
  /// Above so many bytes a secret has no fingerprint.
  private static let markedLength = 1 << 16

  private let type: String
  private let text: String
  /// A blob, unless it is large.
  private let data: [UInt8]?
  private let length: Int
  private let mark: String?

  /// The SQL expressions that ``init(_:_:)`` reads.
  static func selection(_ column: String) -> [String] {
    [
      "typeof(\(column))",
      "CASE typeof(\(column)) WHEN 'text' THEN substr(\(column), 1, CASE WHEN length(\(column)) <= \(takenDocument) "
        + "AND substr(\(column), 1, 1) IN ('{', '[', '<') THEN \(takenDocument) ELSE \(taken) END) "
        + "WHEN 'blob' THEN CASE WHEN length(\(column)) <= \(takenDocument) THEN \(column) END "
        + "ELSE CAST(\(column) AS TEXT) END",
      "length(\(column))",
      // What is not taken out as a whole is fingerprinted where it is.
      "CASE WHEN length(\(column)) <= \(markedLength) AND (typeof(\(column)) = 'blob' "
        + "OR typeof(\(column)) = 'text' AND length(\(column)) > \(taken)) "
        + "THEN \(Redactor.markFunction)(\(column)) END",
    ]
  }

  /// Reads the columns from a number on, and moves it behind them.
  init(_ row: Row, _ at: inout Int) {
    type = row[at] ?? "null"
    let value: DatabaseValue = row[at + 1]
    if case .blob(let bytes) = value.storage {
      (text, data) = ("", [UInt8](bytes))
    } else {
      (text, data) = (String.fromDatabaseValue(value) ?? "", nil)
    }
    length = row[at + 2] ?? 0
    mark = row[at + 3]
    at += 4
  }

  /// The text when there is all of it here, to see whether it names the value beside it.
  var name: String? { type == "text" && isWhole ? text : nil }

  /// The whole text or blob, if it was taken.
  var whole: PropertyListValue? {
    if type == "blob" { return data.map { .data($0) } }
    return type == "text" && isWhole ? .string(text) : nil
  }

  private var isWhole: Bool { length <= text.unicodeScalars.count }

  /// The value of a column in readable form: `"text"`, `12`, `blob (5 bytes)`; secrets by their length.
  func shown(_ name: SecretName, _ redactor: Redactor) -> String {
    switch type {
    case "null": return "null"
    case "text": return shownText(name, redactor)
    case "blob":
      let isSecret = length > 0 && (name >= .code || name == .suspicious && length >= 8)
      if isSecret { return redactor.secret("\(length) bytes", mark) }
      let document = data.flatMap { redactor.document(in: .data($0), named: name) }
      return document.map { redactor.shown($0, named: name) } ?? "blob (\(length) bytes)"
    case "integer": return Int64(text).map { redactor.shown(.integer($0), named: name) } ?? text
    default:
      // SQLite's digits, unless it is a secret.
      guard let number = Double(text), SecretPattern.isSecret(.real(number), named: name) else { return text }
      return redactor.shown(.real(number), named: name)
    }
  }

  private func shownText(_ name: SecretName, _ redactor: Redactor) -> String {
    if isWhole {
      let shown = redactor.shown(.string(text), named: name)
      if length <= Self.shownLength { return shown }
      if shown != "\"\(text)\"" { return shown.count <= Self.taken ? shown : "\(shown.prefix(Self.taken))…" }
    } else if SecretPattern.isSecret(.string(text), named: name) {
      return redactor.secret("\(length) characters", mark)
    }
    return "\"\(text.prefix(Self.shownLength))…\" (\(length) characters)"
  }
}

extension Redactor {
  fileprivate static let markFunction = "drydock_mark"

  /// The SQL function that fingerprints a value inside of a database.
  var databaseFunction: DatabaseFunction {
    DatabaseFunction(Self.markFunction, argumentCount: 1, pure: true) { values in
      switch values.first?.storage {
      case .blob(let data): data.withUnsafeBytes { mark($0) }
      case .string(var text): text.withUTF8 { mark(UnsafeRawBufferPointer($0)) }
      default: nil
      }
    }
  }
}

/// What the names of a table and of its columns say about the values in them.
package struct RowNames {
  private let fields: SecretFields
  private let columns: [String: SecretName]

  /// - Parameter secret: columns that are secret whatever their names say.
  package init(table: String, columns: [String], secret: Set<String> = []) {
    // A store's metadata is a property list to which apps add what they like.
    let hidden = secret.union(table == "Z_METADATA" ? ["Z_PLIST"] : [])
    let fields = SecretFields(columns: columns, of: SecretName(table))
    self.fields = fields
    self.columns = Dictionary(
      columns.map { ($0, hidden.contains($0) ? .secret : fields[$0]) }, uniquingKeysWith: max)
  }

  /// The columns whose values are secret by their names alone, sorted.
  var secretColumns: [String] { columns.filter { $0.value >= .code }.keys.sorted() }

  /// What is known about each column of a row.
  ///
  /// - Parameter values: all columns of the row, each with its text, where it is one, and whether it belongs to the key.
  package func names(in values: [(name: String, text: String?, isKey: Bool)]) -> [String: SecretName] {
    var fields = fields
    var isNamed = false
    for (name, text, isKey) in values {
      if let text, fields.note(text, in: name, isKey: isKey) { isNamed = true }
    }
    if !isNamed { return columns }
    // The key is what names the rest, and is shown unless it is a secret itself.
    let keys = Set(values.filter(\.isKey).map(\.name))
    return Dictionary(
      columns.map { ($0.key, keys.contains($0.key) ? $0.value : max($0.value, fields[$0.key])) },
      uniquingKeysWith: max)
  }
}
