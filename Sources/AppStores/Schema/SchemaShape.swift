import Formats
import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// The definitions in a database by their names, as text that does not depend on how they were written.
package struct SchemaShape {
  /// All, in the order in which they were made.
  package let objects: [SchemaObject]
  /// The largest ids that tables with AUTOINCREMENT have used, by the tables' names in lower case.
  private var sequences: [String: (table: String, last: Int64)] = [:]

  /// - Parameter isTrusted: false after a closure had the connection: what it has read of the schema may not be what the
  ///   database has, and is not remembered.
  package init(_ db: Database, isTrusted: Bool = true) throws {
    // Any program can have written any value there, and SQLite accepts it.
    let columns = ["type", "name", "tbl_name", "sql"].map { "CAST(ifnull(\($0), '') AS TEXT)" }
    let sql =
      "SELECT \(columns.joined(separator: ", ")) FROM main.sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
    objects = try SchemaObject.readAll(db.makeStatement(sql: sql), db, isTrusted: isTrusted)
    if objects.contains(where: { $0.name == "sqlite_sequence" }) {
      for row in try Row.fetchAll(db, sql: "SELECT name, seq FROM sqlite_sequence") {
        if let name: String = row[0], let last = (row[1] as DatabaseValue).storage.value as? Int64 {
          sequences[name.lowercased()] = (name, last)
        }
      }
    }
  }

  /// What differs, in the order of the places. Names are compared as SQLite compares them.
  package func differences(from expected: SchemaShape) -> [(place: String, expected: String?, found: String?)]
  {
    let (mine, other) = (parts, expected.parts)
    var result: [(place: String, expected: String?, found: String?)] = []
    for key in Set(mine.keys).union(other.keys).sorted() {
      let (found, wanted) = (mine[key], other[key])
      if found?.text == wanted?.text { continue }
      // A missing table's columns say nothing more.
      let table = key.split(separator: ":", maxSplits: 1).first.map(String.init) ?? key
      if table != key, mine[table] == nil || other[table] == nil { continue }
      result.append((found?.place ?? wanted?.place ?? key, wanted?.text, found?.text))
    }
    return result
  }

  /// By their places in lower case, without SQLite's own and Android's.
  private var named: [String: SchemaObject] {
    let own = objects.filter { !$0.isOfTheSystem }
    return Dictionary(own.map { ($0.place.lowercased(), $0) }) { _, last in last }
  }

  /// All parts of the definitions.
  private var parts: [String: SchemaObject.Part] {
    named.values.reduce(into: [:]) { all, object in all.merge(object.parts) { first, _ in first } }
  }

  /// The places of all parts, in lower case.
  package var places: Set<String> { Set(named.values.flatMap(\.parts.keys)) }

  /// The tables, columns, indexes, views and triggers of another schema that this one lacks.
  ///
  /// - Parameter names: in lower case; they are left out, with what belongs to them.
  package func missing(from expected: SchemaShape, except names: Set<String>) -> [String] {
    let wanted = expected.named
    return differences(from: expected).compactMap { difference in
      let place = difference.place
      guard difference.found == nil, Self.constraint(place.lowercased()) == nil else { return nil }
      let name = place.drop { $0 != " " }.dropFirst()
      let object = wanted[place.lowercased()]
      let table =
        object.flatMap { $0.isTable ? nil : $0.table }
        ?? name.range(of: ": column ").map { String(name[..<$0.lowerBound]) }
      return [String(name), table ?? ""].contains { names.contains($0.lowercased()) } ? nil : place
    }
  }

  // MARK: Losses

  /// What tables had before a change and have no longer, such as an index that went with a table that was made again.
  ///
  /// - Parameter dropped: the indexes and triggers that were meant to go, in lower case; asked for when one is gone.
  package func losses(since before: SchemaShape, dropped: () -> Set<String>) -> [String] {
    // What a step leaves is the same object, and is not compared part by part. Most steps only add objects.
    if objects.starts(with: before.objects, by: ===) { return lostSequences(since: before) }
    let named = named
    let changed = before.named.filter { named[$0.key] !== $0.value }
    var lost: [(key: String, losses: [String])] = []
    for (key, old) in changed where old.isTable {
      guard let now = named[key] else { continue }
      lost += old.parts.map { ($0.key, Self.losses(of: $0.key, $0.value, old, now)) }
    }
    let gone = changed.filter { !$0.value.isTable && named[$0.key] == nil }
    let dropped = gone.isEmpty ? [] : dropped()
    for (key, old) in gone {
      let table = old.table.lowercased()
      let hasTable = named["table " + table] != nil || named["view " + table] != nil
      let isMeant = dropped.contains(old.name.lowercased()) || !hasTable
      if !key.hasPrefix("view "), !isMeant { lost.append((key, ["\(old.place) of `\(old.table)`"])) }
    }
    let tables = changed.values.filter(\.isTable).sorted { $0.name < $1.name }
    let words = tables.flatMap { old -> [String] in
      guard let now = named[old.place.lowercased()], !now.isVirtual else { return [] }
      return SchemaObject.words.filter { now.counts[$0, default: 0] < old.counts[$0, default: 0] }
        .map { "\(old.place): \($0)" }
    }
    return lost.sorted { $0.key < $1.key }.flatMap(\.losses) + words + lostSequences(since: before)
  }

  /// What is lost of a part of a table's definition.
  private static func losses(
    of key: String, _ part: SchemaObject.Part, _ old: SchemaObject, _ now: SchemaObject
  ) -> [String] {
    guard let found = now.parts[key] else {
      guard let kind = constraint(key) else { return [] }
      // Another one of this kind is the same one, perhaps with a column's new name.
      let counts = [now, old].map { $0.parts.keys.count { $0.hasPrefix(kind) } }
      return counts[0] < counts[1] ? [part.place] : []
    }
    if key.contains(": column ") {
      return ["NOT NULL", "PRIMARY KEY", "DEFAULT", "GENERATED"]
        .filter { part.text.contains($0) && !found.text.contains($0) }.map { "\(part.place): \($0)" }
    }
    guard key.contains(": foreign key (") else { return [] }
    return ["ON DELETE", "ON UPDATE"]
      .filter { !part.text.contains("\($0) NO ACTION") && found.text.contains("\($0) NO ACTION") }
      .map { "\(part.place): \($0)" }
  }

  private func lostSequences(since before: SchemaShape) -> [String] {
    if before.sequences.isEmpty { return [] }
    let named = named
    return before.sequences.sorted { $0.value.table < $1.value.table }.compactMap { key, old in
      let new = sequences[key]?.last ?? 0
      guard named["table " + key] != nil, new < old.last else { return nil }
      return "table \(old.table): the counter of AUTOINCREMENT goes from \(old.last) back to \(new)"
    }
  }

  /// The beginning of the place of a foreign key or a UNIQUE constraint, up to the columns.
  private static func constraint(_ place: String) -> String? {
    [": foreign key (", ": unique ("].compactMap { kind in
      place.range(of: kind).map { String(place[..<$0.upperBound]) }
    }.first
  }
}

/// A table, index, view or trigger of a schema, and what its definition says.
package final class SchemaObject: Sendable {
  /// A row of the schema. All else follows from it.
  struct Definition: Hashable, Sendable {
    let type: String
    let name: ExactText
    /// Of an index or a trigger.
    let table: ExactText
    let sql: ExactText

    /// Whether it is short enough to be kept.
    var isShort: Bool { sql.text.utf8.count <= longest }

    /// Whether a statement's current row is known to have the same bytes; without making text of them.
    func isRow(of statement: Statement) -> Bool {
      let row = statement.sqliteStatement
      func has(_ column: Int32, _ text: String) -> Bool {
        guard let bytes = sqlite3_column_text(row, column) else { return false }
        let count = Int(sqlite3_column_bytes(row, column))
        return text.utf8.withContiguousStorageIfAvailable {
          guard $0.count == count, let known = $0.baseAddress else { return $0.count == count }
          return memcmp(known, bytes, count) == 0
        } ?? false
      }
      return has(1, name.text) && has(0, type) && has(3, sql.text) && has(2, table.text)
    }
  }

  /// Such as `table book: column title`, and its definition.
  typealias Part = (place: String, text: String)

  /// Parts of a table's definition that SQLite describes nowhere else.
  static let words = ["AUTOINCREMENT", "CHECK", "COLLATE", "DEFERRABLE", "ROWID", "STRICT"]

  private let definition: Definition
  package let isVirtual: Bool
  /// By the place in lower case.
  let parts: [String: Part]
  /// How often each of ``words`` is in the definition of a table.
  let counts: [String: Int]
  /// The tables that its foreign keys refer to, in their order.
  package let parents: [String]
  /// Whether it may use the state of a connection, such as `changes()`.
  package let usesConnection: Bool

  package var name: String { definition.name.text }
  package var table: String { definition.table.text }
  package var sql: String { definition.sql.text }
  package var isTable: Bool { definition.type == "table" }
  package var isView: Bool { definition.type == "view" }
  var isIndex: Bool { definition.type == "index" }
  package var isTrigger: Bool { definition.type == "trigger" }
  /// Such as `table book`.
  package var place: String { "\(definition.type) \(name)" }
  /// Whether it is SQLite's own, or the one that Android adds to each database.
  var isOfTheSystem: Bool { name.lowercased().hasPrefix("sqlite_") || name == "android_metadata" }

  /// Those that were read last: a run of many migrations looks at the whole schema before and after each of them.
  private struct Memory {
    var known: [Definition: SchemaObject] = [:]
    /// The last schema: the next one mostly has the same objects at the same places.
    var last: [SchemaObject] = []
  }

  private static let memory = Mutex(Memory())
  private static let limit = 4096, longest = 16 << 10, furthest = 8

  /// Reads the objects of a schema.
  ///
  /// - Parameter statement: its rows have the columns of a definition, as text.
  static func readAll(_ statement: Statement, _ db: Database, isTrusted: Bool) throws -> [SchemaObject] {
    let last = memory.withLock { $0.last }
    var (objects, next, isRemembered): ([SchemaObject], Int, Bool) = ([], 0, isTrusted)
    objects.reserveCapacity(last.count + 1)
    let rows = try Row.fetchCursor(statement)
    while let row = try rows.next() {
      // Objects are compared in order; skipped ones are looked up in `known`.
      let candidates = last[next...].prefix(furthest)
      if let index = candidates.firstIndex(where: { $0.definition.isRow(of: statement) }) {
        objects.append(last[index])
        next = index + 1
      } else {
        let definition = Definition(
          type: row[0], name: ExactText(row[1] as String), table: ExactText(row[2] as String),
          sql: ExactText(row[3] as String))
        objects.append(try read(definition, db, isTrusted: isTrusted))
        isRemembered = isRemembered && definition.isShort
      }
    }
    if isRemembered, objects.count <= limit { memory.withLock { [objects] in $0.last = objects } }
    return objects
  }

  private static func read(_ definition: Definition, _ db: Database, isTrusted: Bool) throws -> SchemaObject {
    if let object = memory.withLock({ $0.known[definition] }) { return object }
    let object = try SchemaObject(definition, db)
    guard isTrusted, definition.isShort else { return object }
    memory.withLock { memory in
      if memory.known.count == limit { memory.known = [:] }
      memory.known[definition] = object
    }
    return object
  }

  private init(_ definition: Definition, _ db: Database) throws {
    self.definition = definition
    let (name, sql) = (definition.name.text, definition.sql.text)
    let tokens = SQLToken.all(in: sql)
    usesConnection = tokens.useConnection
    // Words in capitals, names without their quotes, one blank between the tokens.
    let text = tokens.map { $0.kind == .string ? "'\($0.text)'" : $0.text.uppercased() }
      .joined(separator: " ")
    isVirtual = definition.type == "table" && text.hasPrefix("CREATE VIRTUAL")
    guard definition.type == "table", !isVirtual else {
      let place = "\(definition.type) \(name)"
      (parts, counts, parents) = ([place.lowercased(): (place, text)], [:], [])
      return
    }
    let words = tokens.filter { $0.kind == .word }.map { $0.text.uppercased() }
    counts = Dictionary(uniqueKeysWithValues: Self.words.map { word in (word, words.count { $0 == word }) })
    let (found, parents) = try Self.parts(ofTable: name, db, words)
    parts = Dictionary(found.map { ($0.place.lowercased(), $0) }) { first, _ in first }
    self.parents = parents
  }

  /// - Parameter words: of its definition, in capitals: most tables have no foreign key and no UNIQUE, and a query costs
  ///   more than to look for the word.
  private static func parts(
    ofTable name: String, _ db: Database, _ words: [String]
  ) throws -> (parts: [Part], parents: [String]) {
    var parts: [Part] = [("table \(name)", "a table")]
    // Of the database itself: a temporary table may have the same name.
    for row in try Row.fetchAll(
      db, sql: "SELECT * FROM pragma_table_xinfo(?, 'main')", arguments: [name])
    {
      let words: [String] = [
        (row["type"] ?? "").uppercased(), row["notnull"] != 0 ? "NOT NULL" : "",
        row["pk"] != 0 ? "PRIMARY KEY \(row["pk"] as Int)" : "",
        (row["dflt_value"] as String?).map { "DEFAULT \($0)" } ?? "",
        row["hidden"] != 0 ? "GENERATED" : "",
      ]
      let text = words.filter { !$0.isEmpty }.joined(separator: " ")
      parts.append(("table \(name): column \(row["name"] as String)", text))
    }
    var keys: [Int: (from: [String], to: [String], rest: String)] = [:]
    var parents: [String] = []
    let sql = "SELECT * FROM pragma_foreign_key_list(?, 'main') ORDER BY id, seq"
    let hasKeys = words.contains("REFERENCES")
    for row in hasKeys ? try Row.fetchAll(db, sql: sql, arguments: [name]) : [] {
      parents.append(row["table"])
      let rest: String =
        "to \(row["table"] as String) ON DELETE \(row["on_delete"] as String) ON UPDATE \(row["on_update"] as String)"
      keys[row["id"], default: ([], [], rest)].from.append(row["from"])
      keys[row["id"], default: ([], [], rest)].to.append((row["to"] as String?) ?? "")
    }
    for (_, key) in keys.sorted(by: { $0.key < $1.key }) {
      parts.append(
        (
          "table \(name): foreign key (\(key.from.joined(separator: ", ")))",
          "(\(key.to.joined(separator: ", "))) \(key.rest)"
        ))
    }
    let indexes = "SELECT name FROM pragma_index_list(?, 'main') WHERE origin = 'u'"
    let hasUnique = words.contains("UNIQUE")
    for index in hasUnique ? try String.fetchAll(db, sql: indexes, arguments: [name]) : [] {
      let sql = """
        SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(?, 'main') ORDER BY seqno)
        """
      let columns = try String.fetchOne(db, sql: sql, arguments: [index]) ?? ""
      parts.append(("table \(name): UNIQUE (\(columns))", "a constraint"))
    }
    return (parts, parents)
  }
}
