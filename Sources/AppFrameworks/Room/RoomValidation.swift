import Formats
import GRDB

/// A place where a database differs from the schema that its library declares for a version.
package struct SchemaDrift: Sendable, Equatable {
  /// Such as `table note: column title`.
  package var place: String
  /// Such as `affinity`; empty when the place as a whole is missing or unexpected.
  package var what: String
  package var expected: String?, found: String?
  /// Where the schema declares the place, if that is known.
  package var file: String?, line: Int?

  package init(
    place: String, what: String = "", expected: String?, found: String?, file: String? = nil, line: Int? = nil
  ) {
    (self.place, self.what, self.expected, self.found) = (place, what, expected, found)
    (self.file, self.line) = (file, line)
  }

  package var description: String {
    let values =
      switch (expected, found) {
      case (let expected?, let found?): "\(expected) expected, found \(found)"
      case (let expected?, nil): what.isEmpty ? "missing" : "\(expected) expected, found none"
      case (nil, let found?): what.isEmpty ? "not in the schema" : "none expected, found \(found)"
      case (nil, nil): "different"
      }
    let source = [file, line.map { "\($0)" }].compactMap(\.self).joined(separator: ":")
    return "\(place): \(what.isEmpty ? "" : what + " ")\(values) (\(source))"
  }
}

/// Compares a database with an exported schema by Room's rules, those of its `TableInfo`, `FtsTableInfo` and `ViewInfo`.
///
/// Compared: the columns of each table by name, affinity, NOT NULL, membership in the primary key, and the default if the
/// schema declares one; foreign keys; indexes made by CREATE INDEX; columns and options of full-text tables; the text of
/// views. Not compared: CHECK, COLLATE, UNIQUE, WHERE of partial indexes, triggers, other tables, rows.
package struct RoomValidation {
  private let db: Database
  private let schema: RoomSchema
  private var found: [SchemaDrift] = []

  /// What Room would refuse; empty when it would open the database.
  package static func differences(_ db: Database, _ schema: RoomSchema) throws -> [SchemaDrift] {
    var validation = RoomValidation(db: db, schema: schema)
    for table in schema.tables {
      if let fullText = table.fullText {
        try validation.compare(table, fullText)
      } else {
        try validation.compare(table)
      }
    }
    for view in schema.views { try validation.compare(view) }
    return validation.found
  }

  private mutating func add(
    _ table: ExactText, _ part: String? = nil, column: ExactText? = nil, what: String = "",
    expected: String?, found: String?, kind: String = "table"
  ) {
    self.found.append(
      SchemaDrift(
        place: "\(kind) \(table.text)" + (part.map { ": \($0)" } ?? ""), what: what, expected: expected,
        found: found, file: schema.file,
        line: schema.line(of: table, column: column) ?? schema.line(of: table)))
  }

  // MARK: Tables

  private struct FoundColumn {
    var type: String, isNotNull: Bool, isInPrimaryKey: Bool, defaultValue: ExactText?
  }

  private func columns(of table: ExactText) throws -> [(name: ExactText, FoundColumn)] {
    try Row.fetchAll(db, sql: "SELECT * FROM pragma_table_info(?)", arguments: [table.text]).map { row in
      (
        ExactText(row["name"]),
        FoundColumn(
          type: row["type"] ?? "", isNotNull: row["notnull"] != 0, isInPrimaryKey: row["pk"] != 0,
          defaultValue: (row["dflt_value"] as String?).map { ExactText($0) })
      )
    }
  }

  private mutating func compare(_ table: RoomSchema.Table) throws {
    let columns = try columns(of: table.name)
    if columns.isEmpty { return add(table.name, expected: "a table", found: nil) }
    let byName = Dictionary(columns, uniquingKeysWith: { first, _ in first })
    for column in table.columns {
      guard let found = byName[column.name] else {
        add(table.name, "column \(column.name.text)", column: column.name, expected: "a column", found: nil)
        continue
      }
      compare(column, found, of: table)
    }
    for (name, _) in columns where table.column(name) == nil {
      add(table.name, "column \(name.text)", expected: nil, found: "a column")
    }
    try compare(
      Set(table.foreignKeys), foreignKeys(of: table.name), of: table.name, "foreign key", \.shown)
    try compare(
      Set(table.indices.map(IndexRule.init)), indices(of: table.name), of: table.name, "index", \.shown)
  }

  private mutating func compare(
    _ column: RoomSchema.Column, _ found: FoundColumn, of table: RoomSchema.Table
  ) {
    let place = "column \(column.name.text)"
    func shown(_ affinity: String) -> String { affinity.isEmpty ? "UNDEFINED" : affinity }
    let (wanted, has) = (Self.affinity(column.affinity), Self.affinity(found.type))
    if wanted != has {
      add(
        table.name, place, column: column.name, what: "affinity", expected: shown(wanted), found: shown(has))
    }
    if column.isNotNull != found.isNotNull {
      let words = { $0 ? "NOT NULL" : "nullable" }
      add(
        table.name, place, column: column.name, expected: words(column.isNotNull),
        found: words(found.isNotNull))
    }
    let isInPrimaryKey = table.primaryKey.contains(column.name)
    if isInPrimaryKey != found.isInPrimaryKey {
      let words = { $0 ? "in the primary key" : "not in the primary key" }
      add(
        table.name, place, column: column.name, expected: words(isInPrimaryKey),
        found: words(found.isInPrimaryKey))
    }
    if let value = column.defaultValue, !Self.isDefault(value.text, found.defaultValue) {
      add(
        table.name, place, column: column.name, what: "default", expected: value.text,
        found: found.defaultValue?.text)
    }
  }

  /// The affinity of a type, by the rules of SQLite; empty where SQLite has NUMERIC.
  package static func affinity(_ type: String) -> String {
    let type = type.uppercased()
    if type.contains("INT") { return "INTEGER" }
    if ["CHAR", "CLOB", "TEXT"].contains(where: type.contains) { return "TEXT" }
    if type.contains("BLOB") { return "BLOB" }
    if ["REAL", "FLOA", "DOUB"].contains(where: type.contains) { return "REAL" }
    return ""
  }

  /// SQLite gives a default without the parentheses around it.
  package static func isDefault(_ expected: String, _ found: ExactText?) -> Bool {
    if ExactText(expected) == found { return true }
    var depth = 0
    let scalars = Array(expected.unicodeScalars)
    guard scalars.first == "(" else { return false }
    for (index, scalar) in scalars.enumerated() {
      if scalar == "(" { depth += 1 }
      if scalar == ")" { depth -= 1 }
      if depth == 0, index != scalars.count - 1 { return false }
    }
    guard depth == 0 else { return false }
    let inner = String(String.UnicodeScalarView(scalars.dropFirst().dropLast()))
    return ExactText(inner.trimmed(while: \.isWhitespace)) == found
  }

  private mutating func compare<Part: Hashable>(
    _ expected: Set<Part>, _ found: Set<Part>, of table: ExactText, _ noun: String, _ shown: (Part) -> String
  ) {
    for part in expected.subtracting(found).map(shown).sorted() {
      add(table, "\(noun) \(part)", expected: "a \(noun)", found: nil)
    }
    for part in found.subtracting(expected).map(shown).sorted() {
      add(table, "\(noun) \(part)", expected: nil, found: "a \(noun)")
    }
  }

  private func foreignKeys(of table: ExactText) throws -> Set<RoomSchema.ForeignKey> {
    var keys: [Int: RoomSchema.ForeignKey] = [:]
    let sql = "SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq"
    for row in try Row.fetchAll(db, sql: sql, arguments: [table.text]) {
      let new = RoomSchema.ForeignKey(
        table: ExactText(row["table"]), onDelete: row["on_delete"], onUpdate: row["on_update"], columns: [],
        referencedColumns: [])
      keys[row["id"], default: new].columns.append(ExactText(row["from"]))
      // Without names in the statement, it is the primary key.
      keys[row["id"], default: new].referencedColumns.append(ExactText((row["to"] as String?) ?? ""))
    }
    return Set(keys.values)
  }

  /// An index as Room compares it: names that Room makes are interchangeable.
  private struct IndexRule: Hashable {
    var name: ExactText, isUnique: Bool, columns: [ExactText], orders: [String]
    private var ownName: ExactText

    init(_ index: RoomSchema.Index) {
      let isMade = index.name.text.utf8.starts(with: "index_".utf8)
      (name, ownName) = (isMade ? ExactText("index_") : index.name, index.name)
      (isUnique, columns, orders) = (index.isUnique, index.columns, index.orders)
    }

    static func == (left: Self, right: Self) -> Bool {
      left.name == right.name && left.isUnique == right.isUnique && left.columns == right.columns
        && left.orders == right.orders
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(name)
      hasher.combine(columns)
    }

    var shown: String {
      let columns = zip(columns, orders).map { $1 == "ASC" ? $0.text : "\($0.text) \($1)" }
      return "\(ownName.text)\(isUnique ? " UNIQUE" : "") (\(columns.joined(separator: ", ")))"
    }
  }

  private func indices(of table: ExactText) throws -> Set<IndexRule> {
    let sql = "SELECT name, \"unique\" FROM pragma_index_list(?) WHERE origin = 'c'"
    return Set(
      try Row.fetchAll(db, sql: sql, arguments: [table.text]).map { index in
        // The rowid and expressions have no name.
        let sql = "SELECT name, desc FROM pragma_index_xinfo(?) WHERE cid >= 0 ORDER BY seqno"
        let name: String = index["name"]
        let parts = try Row.fetchAll(db, sql: sql, arguments: [name])
        return IndexRule(
          RoomSchema.Index(
            name: ExactText(name), isUnique: index["unique"] == 1,
            columns: parts.map { ExactText($0["name"]) },
            orders: parts.map { $0["desc"] > 0 ? "DESC" : "ASC" }, createSQL: ""))
      })
  }

  // MARK: Full-text tables and views

  private mutating func compare(_ table: RoomSchema.Table, _ fullText: RoomSchema.FullText) throws {
    let columns = try columns(of: table.name).map(\.name)
    if columns.isEmpty { return add(table.name, expected: "a table", found: nil) }
    compare(Set(table.columns.map(\.name)), Set(columns), of: table.name, "column", \.text)
    let sql = try String.fetchOne(
      db, sql: "SELECT sql FROM sqlite_schema WHERE name = ?", arguments: [table.name.text])
    compare(
      Self.fullTextOptions(table.create()), Self.fullTextOptions(sql ?? ""), of: table.name, "option", \.text)
  }

  private static let optionNames = [
    "tokenize=", "compress=", "content=", "languageid=", "matchinfo=", "notindexed=", "order=", "prefix=",
    "uncompress=",
  ]

  /// The options in CREATE VIRTUAL TABLE, as text.
  package static func fullTextOptions(_ sql: String) -> Set<ExactText> {
    let bytes = Array(sql.utf8)
    guard let open = bytes.firstIndex(of: UInt8(ascii: "(")),
      let close = bytes.lastIndex(of: UInt8(ascii: ")")),
      open < close
    else { return [] }
    var (arguments, quote): ([[UInt8]], UInt8?) = ([[]], nil)
    for byte in bytes[(open + 1)..<close] {
      if let closing = quote {
        if byte == closing { quote = nil }
      } else if "'\"`[".utf8.contains(byte) {
        quote = byte == UInt8(ascii: "[") ? UInt8(ascii: "]") : byte
      } else if byte == UInt8(ascii: ",") {
        arguments.append([])
        continue
      }
      arguments[arguments.count - 1].append(byte)
    }
    let texts = arguments.map { String(decoding: $0, as: UTF8.self).trimmed(while: { $0 <= " " }) }
    return Set(texts.filter { text in optionNames.contains { text.hasPrefix($0) } }.map { ExactText($0) })
  }

  private mutating func compare(_ view: RoomSchema.View) throws {
    let sql = try String.fetchOne(
      db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?", arguments: [view.name.text])
    guard let sql else { return add(view.name, expected: "a view", found: nil, kind: "view") }
    if ExactText(sql) != ExactText(view.create) {
      add(view.name, what: "text", expected: view.create, found: sql, kind: "view")
    }
  }
}

extension RoomSchema.ForeignKey {
  fileprivate var shown: String {
    func list(_ names: [ExactText]) -> String { names.map(\.text).joined(separator: ", ") }
    return
      "(\(list(columns))) to \(table.text) (\(list(referencedColumns))) ON DELETE \(onDelete) ON UPDATE \(onUpdate)"
  }
}

extension String {
  fileprivate func trimmed(while isTrimmed: (Character) -> Bool) -> String {
    let start = drop(while: isTrimmed)
    guard let end = start.lastIndex(where: { !isTrimmed($0) }) else { return "" }
    return String(start[...end])
  }
}
