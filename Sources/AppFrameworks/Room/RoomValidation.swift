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

// Compares a database with an exported schema by Room's rules, those of its `TableInfo`, `FtsTableInfo` and `ViewInfo`.
//
// Compared: the columns of each table by name, affinity, NOT NULL, membership in the primary key, and the default if the
// schema declares one; foreign keys; indexes made by CREATE INDEX; columns and options of full-text tables; the text of
// views. Not compared: CHECK, COLLATE, UNIQUE, WHERE of partial indexes, triggers, other tables, rows.
extension RoomSchema {
  /// What Room would refuse; empty when it would open the database.
  package func differences(in db: Database) throws -> [SchemaDrift] {
    try tables.flatMap { try differences(of: $0, in: db) } + views.flatMap { try differences(of: $0, in: db) }
  }

  private func drift(
    _ table: ExactText, _ part: String? = nil, column: ExactText? = nil, what: String = "",
    expected: String?, found: String?, kind: String = "table"
  ) -> SchemaDrift {
    SchemaDrift(
      place: "\(kind) \(table.text)" + (part.map { ": \($0)" } ?? ""), what: what, expected: expected,
      found: found, file: file, line: line(of: table, column: column) ?? line(of: table))
  }

  private func differences(of table: Table, in db: Database) throws -> [SchemaDrift] {
    let found = try Table(named: table.name, in: db)
    if found.columns.isEmpty { return [drift(table.name, expected: "a table", found: nil)] }
    if table.fullText != nil {
      let sql = try String.fetchOne(
        db, sql: "SELECT sql FROM sqlite_schema WHERE name = ?", arguments: [table.name.text])
      let options = [table.create(), sql ?? ""].map(Self.fullTextOptions)
      return differences(table, "column", table.columns.map(\.name), found.columns.map(\.name), \.text)
        + differences(table, "option", Array(options[0]), Array(options[1]), \.text)
    }
    var differing: [SchemaDrift] = []
    for column in table.columns {
      if let match = found.column(column.name) {
        differing += differences(of: column, match, table, found)
      } else {
        differing.append(
          drift(
            table.name, "column \(column.name.text)", column: column.name, expected: "a column", found: nil))
      }
    }
    for column in found.columns where table.column(column.name) == nil {
      differing.append(drift(table.name, "column \(column.name.text)", expected: nil, found: "a column"))
    }
    return differing + differences(table, "foreign key", table.foreignKeys, found.foreignKeys, \.shown)
      + differences(table, "index", table.indices, found.indices, \.shown)
  }

  private func differences(
    of column: Column, _ found: Column, _ table: Table, _ foundTable: Table
  ) -> [SchemaDrift] {
    var differing: [SchemaDrift] = []
    func add(_ what: String, _ expected: String?, _ found: String?) {
      differing.append(
        drift(
          table.name, "column \(column.name.text)", column: column.name, what: what, expected: expected,
          found: found))
    }
    let affinities = [column, found].map { Self.affinity($0.affinity) }.map { $0.isEmpty ? "UNDEFINED" : $0 }
    if affinities[0] != affinities[1] { add("affinity", affinities[0], affinities[1]) }
    if column.isNotNull != found.isNotNull {
      let words = { $0 ? "NOT NULL" : "nullable" }
      add("", words(column.isNotNull), words(found.isNotNull))
    }
    let isInKey = [table, foundTable].map { $0.primaryKey.contains(column.name) }
    if isInKey[0] != isInKey[1] {
      let words = { $0 ? "in the primary key" : "not in the primary key" }
      add("", words(isInKey[0]), words(isInKey[1]))
    }
    if let value = column.defaultValue, !Self.isDefault(value.text, found.defaultValue) {
      add("default", value.text, found.defaultValue?.text)
    }
    return differing
  }

  /// The parts of a table that only one side has.
  private func differences<Part: Equatable>(
    _ table: Table, _ noun: String, _ expected: [Part], _ found: [Part], _ shown: (Part) -> String
  ) -> [SchemaDrift] {
    expected.filter { !found.contains($0) }.map(shown).sorted().map {
      drift(table.name, "\(noun) \($0)", expected: "a \(noun)", found: nil)
    }
      + found.filter { !expected.contains($0) }.map(shown).sorted().map {
        drift(table.name, "\(noun) \($0)", expected: nil, found: "a \(noun)")
      }
  }

  private func differences(of view: View, in db: Database) throws -> [SchemaDrift] {
    let sql = try String.fetchOne(
      db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?", arguments: [view.name.text])
    guard let sql else { return [drift(view.name, expected: "a view", found: nil, kind: "view")] }
    if ExactText(sql) == ExactText(view.create) { return [] }
    return [drift(view.name, what: "text", expected: view.create, found: sql, kind: "view")]
  }

  // MARK: Texts

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
}

extension RoomSchema.Table {
  /// A table as a database has it, as far as Room compares it; without columns when there is none.
  fileprivate init(named name: ExactText, in db: Database) throws {
    let columns = try Row.fetchAll(
      db, sql: "SELECT * FROM pragma_table_info(?)", arguments: [name.text])
    self.init(
      name: name, createSQL: "",
      columns: columns.map { row in
        RoomSchema.Column(
          name: ExactText(row["name"]), affinity: row["type"] ?? "", isNotNull: row["notnull"] != 0,
          defaultValue: (row["dflt_value"] as String?).map { ExactText($0) })
      }, primaryKey: columns.filter { $0["pk"] != 0 }.map { ExactText($0["name"]) }, isAutoGenerated: false,
      indices: try Self.indices(of: name, in: db), foreignKeys: try Self.foreignKeys(of: name, in: db))
  }

  private static func foreignKeys(of table: ExactText, in db: Database) throws -> [RoomSchema.ForeignKey] {
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
    return Array(keys.values)
  }

  private static func indices(of table: ExactText, in db: Database) throws -> [RoomSchema.Index] {
    let sql = "SELECT name, \"unique\" FROM pragma_index_list(?) WHERE origin = 'c'"
    return try Row.fetchAll(db, sql: sql, arguments: [table.text]).map { index in
      // The rowid and expressions have no name.
      let sql = "SELECT name, desc FROM pragma_index_xinfo(?) WHERE cid >= 0 ORDER BY seqno"
      let name: String = index["name"]
      let parts = try Row.fetchAll(db, sql: sql, arguments: [name])
      return RoomSchema.Index(
        name: ExactText(name), isUnique: index["unique"] == 1, columns: parts.map { ExactText($0["name"]) },
        orders: parts.map { $0["desc"] > 0 ? "DESC" : "ASC" }, createSQL: "")
    }
  }
}

extension RoomSchema.Index: Equatable {
  /// As Room compares them when it validates: names that Room makes are interchangeable.
  package static func == (left: Self, right: Self) -> Bool {
    let areMade = [left, right].allSatisfy { $0.name.text.utf8.starts(with: "index_".utf8) }
    return (areMade || left.name == right.name) && left.isUnique == right.isUnique
      && left.columns == right.columns && left.orders == right.orders
  }

  fileprivate var shown: String {
    let columns = zip(columns, orders).map { $1 == "ASC" ? $0.text : "\($0.text) \($1)" }
    return "\(name.text)\(isUnique ? " UNIQUE" : "") (\(columns.joined(separator: ", ")))"
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
