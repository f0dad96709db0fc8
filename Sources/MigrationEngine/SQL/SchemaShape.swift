import Formats
import GRDB

/// The definitions in a database by their names, as text that does not depend on how they were written.
struct SchemaShape {
  /// By the place, such as `table book: column title`.
  private var parts: [String: String] = [:]
  /// The tables of indexes and triggers, by the place.
  private var owners: [String: String] = [:]
  /// How often each of ``words`` is in the definition of a table.
  private var counts: [String: [String: Int]] = [:]
  /// The largest ids that tables with AUTOINCREMENT have used.
  private var sequences: [String: Int64] = [:]

  /// Parts of a table's definition that SQLite describes nowhere else.
  private static let words = ["AUTOINCREMENT", "CHECK", "COLLATE", "DEFERRABLE", "ROWID", "STRICT"]

  init(_ db: Database) throws {
    let sql = """
      SELECT type, name, tbl_name, sql FROM sqlite_schema
      WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name != 'android_metadata'
      """
    for row in try Row.fetchAll(db, sql: sql) {
      let (type, name): (String, String) = (row["type"], row["name"])
      let text = Self.normalized(row["sql"] ?? "")
      switch type {
      case "table" where text.hasPrefix("CREATE VIRTUAL"): parts["table \(name)"] = text
      case "table":
        try add(table: name, db)
        let words = SQLToken.all(in: row["sql"] ?? "").filter { $0.kind == .word }.map {
          $0.text.uppercased()
        }
        for word in Self.words { counts[name, default: [:]][word] = words.count { $0 == word } }
      default:
        parts["\(type) \(name)"] = text
        owners["\(type) \(name)"] = row["tbl_name"]
      }
    }
    if try Int.fetchOne(db, sql: "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'") != nil {
      for row in try Row.fetchAll(db, sql: "SELECT name, seq FROM sqlite_sequence") {
        if let name: String = row[0], let last = (row[1] as DatabaseValue).storage.value as? Int64 {
          sequences[name] = last
        }
      }
    }
  }

  private mutating func add(table: String, _ db: Database) throws {
    parts["table \(table)"] = "a table"
    for row in try Row.fetchAll(db, sql: "SELECT * FROM pragma_table_xinfo(?)", arguments: [table]) {
      let words: [String] = [
        (row["type"] ?? "").uppercased(), row["notnull"] != 0 ? "NOT NULL" : "",
        row["pk"] != 0 ? "PRIMARY KEY \(row["pk"] as Int)" : "",
        (row["dflt_value"] as String?).map { "DEFAULT \($0)" } ?? "",
        row["hidden"] != 0 ? "GENERATED" : "",
      ]
      let name: String = row["name"]
      parts["table \(table): column \(name)"] = words.filter { !$0.isEmpty }.joined(separator: " ")
    }
    var keys: [Int: (from: [String], to: [String], rest: String)] = [:]
    let sql = "SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq"
    for row in try Row.fetchAll(db, sql: sql, arguments: [table]) {
      let rest: String =
        "to \(row["table"] as String) ON DELETE \(row["on_delete"] as String) ON UPDATE \(row["on_update"] as String)"
      keys[row["id"], default: ([], [], rest)].from.append(row["from"])
      keys[row["id"], default: ([], [], rest)].to.append((row["to"] as String?) ?? "")
    }
    for key in keys.values {
      parts["table \(table): foreign key (\(key.from.joined(separator: ", ")))"] =
        "(\(key.to.joined(separator: ", "))) \(key.rest)"
    }
    let indexes = "SELECT name FROM pragma_index_list(?) WHERE origin = 'u'"
    for index in try String.fetchAll(db, sql: indexes, arguments: [table]) {
      let sql = "SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(?) ORDER BY seqno)"
      parts["table \(table): UNIQUE (\(try String.fetchOne(db, sql: sql, arguments: [index]) ?? ""))"] =
        "a constraint"
    }
  }

  /// Words in capitals, names without their quotes, one blank between the tokens.
  private static func normalized(_ sql: String) -> String {
    SQLToken.all(in: sql).map { token in
      token.kind == .string ? "'\(token.text)'" : token.text.uppercased()
    }.joined(separator: " ")
  }

  /// What differs, in the order of the places. Names are compared as SQLite compares them.
  func differences(from expected: SchemaShape) -> [(place: String, expected: String?, found: String?)] {
    let (mine, other) = (byName, expected.byName)
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

  func has(_ place: String) -> Bool { byName[place.lowercased()] != nil }

  /// The tables, columns, indexes, views and triggers of another schema that this one lacks.
  ///
  /// - Parameter names: in lower case; they are left out, with what belongs to them.
  func missing(from expected: SchemaShape, except names: Set<String>) -> [String] {
    differences(from: expected).compactMap { difference in
      let place = difference.place
      guard difference.found == nil, Self.constraint(place.lowercased()) == nil else { return nil }
      let name = place.drop { $0 != " " }.dropFirst()
      let table = expected.owners[place] ?? name.range(of: ": column ").map { String(name[..<$0.lowerBound]) }
      return [String(name), table ?? ""].contains { names.contains($0.lowercased()) } ? nil : place
    }
  }

  private var byName: [String: (place: String, text: String)] {
    Dictionary(parts.map { ($0.key.lowercased(), ($0.key, $0.value)) }) { first, _ in first }
  }

  // MARK: Losses

  /// What tables had before a change and have no longer, such as an index that went with a table that was made again.
  ///
  /// - Parameter dropped: the indexes and triggers that were meant to go, in lower case.
  func losses(since before: SchemaShape, dropped: Set<String>) -> [String] {
    let now = byName
    var lost: [String] = []
    for (key, (place, text)) in before.byName.sorted(by: { $0.key < $1.key }) {
      if let owner = before.owners[place] {
        let name = key.split(separator: " ", maxSplits: 1).last.map(String.init) ?? key
        let hasOwner = ["table", "view"].contains { now["\($0) \(owner.lowercased())"] != nil }
        let isMeant = dropped.contains(name) || !hasOwner
        if now[key] == nil, !key.hasPrefix("view "), !isMeant { lost.append("\(place) of `\(owner)`") }
      } else if key.contains(": column "), let found = now[key] {
        for word in ["NOT NULL", "PRIMARY KEY", "DEFAULT", "GENERATED"]
        where text.contains(word) && !found.text.contains(word) { lost.append("\(place): \(word)") }
      } else if key.contains(": foreign key ("), let found = now[key] {
        for action in ["ON DELETE", "ON UPDATE"]
        where !text.contains("\(action) NO ACTION") && found.text.contains("\(action) NO ACTION") {
          lost.append("\(place): \(action)")
        }
      } else if now[key] == nil, let kind = Self.constraint(key) {
        // Another one of this kind is the same one, perhaps with a column's new name.
        let isFewer = now.keys.count { $0.hasPrefix(kind) } < before.byName.keys.count { $0.hasPrefix(kind) }
        if isFewer, now[kind.split(separator: ":").first.map(String.init) ?? ""] != nil { lost.append(place) }
      }
    }
    for (table, words) in before.counts.sorted(by: { $0.key < $1.key }) {
      guard let found = counts.first(where: { $0.key.lowercased() == table.lowercased() })?.value else {
        continue
      }
      for word in Self.words where found[word, default: 0] < words[word, default: 0] {
        lost.append("table \(table): \(word)")
      }
    }
    for (table, last) in before.sequences.sorted(by: { $0.key < $1.key })
    where now["table \(table.lowercased())"] != nil {
      let new = sequences.first { $0.key.lowercased() == table.lowercased() }?.value ?? 0
      if new < last {
        lost.append("table \(table): the counter of AUTOINCREMENT goes from \(last) back to \(new)")
      }
    }
    return lost
  }

  /// The beginning of the place of a foreign key or a UNIQUE constraint, up to the columns.
  private static func constraint(_ place: String) -> String? {
    [": foreign key (", ": unique ("].compactMap { kind in
      place.range(of: kind).map { String(place[..<$0.upperBound]) }
    }.first
  }
}
