import AppStores
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// Compares two database files: definitions by name, rows by primary key. SQLite does the work, so that no table
/// is held in memory.
package struct DatabaseComparison {
  /// Paths of two closed database files in a private directory.
  let before, after: String
  /// How many rows of a table are listed, of each kind.
  let rowLimit: Int
  let redactor: Redactor

  package init(before: String, after: String, rowLimit: Int, redactor: Redactor) {
    (self.before, self.after, self.rowLimit, self.redactor) = (before, after, rowLimit, redactor)
  }

  package typealias Result = (
    schema: [ContainerDifference.SchemaObject], tables: [ContainerDifference.Table]
  )

  package func run() throws -> Result {
    do {
      let encodings = (try encoding(of: before), try encoding(of: after))
      let queue = try DatabaseQueue.alone(with: after) {
        // The schema is untrusted: its functions must be harmless.
        $0.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema=OFF") }
      }
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        guard encodings.0 == encodings.1 else {
          // SQLite can attach only databases with the same encoding.
          let encoding = ContainerDifference.SchemaObject(
            kind: "pragma", name: "encoding", change: .changed, before: encodings.0, after: encodings.1)
          return (schema: [encoding], tables: [])
        }
        try db.execute(sql: "ATTACH ? AS before", arguments: [before])
        db.add(function: redactor.databaseFunction)
        // SQLite does not even scan a table whose key is in an order that only the app knows. Such a key is compared in a
        // copy, by bytes.
        db.substituteUnknownCollations()
        let (old, new) = (try DatabaseSchema(db, "before"), try DatabaseSchema(db, "main"))
        let hasSecrets = try rowLimit > 0 && collectSecrets(db)
        let tables = try old.comparedTables(db).intersection(new.comparedTables(db))
        return (
          schema: try pragmas(db) + DatabaseSchema.difference(old, new, redactor),
          tables: try tables.sorted().compactMap {
            var rows = RowComparison(
              table: $0.text, db: db, limit: rowLimit, redactor: redactor, hasSecrets: hasSecrets)
            return try rows.run()
          }
        )
      }
    } catch let error as DatabaseError {
      throw DrydockError.database("cannot compare the database with its earlier state", after, error)
    }
  }

  /// So many values of a column are known as secrets.
  private static let secretLimit = 200_000

  /// Collects the values of columns with secret names, in memory: a migration may copy them to other columns.
  ///
  /// - Returns: false when there is none.
  private func collectSecrets(_ db: Database) throws -> Bool {
    var selections: [String] = []
    for schema in ["before", "main"] {
      let rows = try Row.fetchAll(
        db,
        sql: """
          SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_info(t.name, ?1) AS c
          WHERE t.schema = ?1 AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
          """, arguments: [schema])
      for (table, columns) in Dictionary(grouping: rows, by: { $0[0] as String }) {
        let names = RowNames(table: table, columns: columns.map { $0[1] })
        selections += names.secretColumns.map {
          "SELECT \(quotedIdentifier($0)) AS v FROM \(schema).\(quotedIdentifier(table)) LIMIT \(Self.secretLimit)"
        }
      }
    }
    if selections.isEmpty { return false }
    try db.execute(
      sql: "ATTACH ':memory:' AS secrets; CREATE TABLE secrets.drydock (v PRIMARY KEY) WITHOUT ROWID")
    for selection in selections {
      // A short one is equal to others by chance.
      try db.execute(
        sql: "INSERT OR IGNORE INTO secrets.drydock SELECT v FROM (\(selection)) WHERE length(v) > 3")
    }
    return true
  }

  private func encoding(of path: String) throws -> String {
    let queue = try DatabaseQueue.alone(with: path)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA encoding") } ?? ""
  }

  /// Numbers in the header that mean something to an app.
  private func pragmas(_ db: Database) throws -> [ContainerDifference.SchemaObject] {
    try ["application_id", "user_version"].compactMap { name in
      let old = try Int.fetchOne(db, sql: "PRAGMA before.\(name)") ?? 0
      let new = try Int.fetchOne(db, sql: "PRAGMA main.\(name)") ?? 0
      if old == new { return nil }
      return .init(kind: "pragma", name: name, change: .changed, before: "\(old)", after: "\(new)")
    }
  }
}

/// What a database's schema has, by kind and name.
struct DatabaseSchema {
  private struct Name: Hashable, Comparable {
    var kind, name: ExactText
    static func < (left: Name, right: Name) -> Bool { (left.kind, left.name) < (right.kind, right.name) }
  }

  private struct Object {
    var sql: ExactText?
    var columns: [(name: String, text: String)] = []
  }

  private let schema: String
  private var objects: [Name: Object] = [:]
  /// What SQLite calls each table: `table`, `virtual`, `shadow`, `view`.
  private var types: [ExactText: String] = [:]

  init(_ db: Database, _ schema: String) throws {
    self.schema = schema
    for row in try Row.fetchAll(
      db, sql: "SELECT name, type FROM pragma_table_list WHERE schema = ?", arguments: [schema])
    {
      types[ExactText(row["name"])] = row["type"]
    }
    let rows = try Row.fetchAll(
      db,
      sql: "SELECT type, name, sql FROM \(schema).sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    for row in rows {
      let name = Name(kind: ExactText(row["type"]), name: ExactText(row["name"]))
      // A virtual table makes its shadow tables itself.
      if types[name.name] == "shadow" { continue }
      var object = Object(sql: (row["sql"] as String?).map { ExactText($0) })
      if name.kind == "table", types[name.name] == "table" {
        object.columns = try columns(name.name.text, db)
      }
      objects[name] = object
    }
  }

  private func columns(_ table: String, _ db: Database) throws -> [(name: String, text: String)] {
    try Row.fetchAll(
      db, sql: "SELECT * FROM pragma_table_xinfo(?, ?)", arguments: [table, schema]
    ).map { row in
      let type: String = row["type"]
      var words = type.isEmpty ? [] : [type]
      if row["pk"] as Int > 0 { words.append("PRIMARY KEY") }
      if row["notnull"] as Int != 0 { words.append("NOT NULL") }
      if let value: String = row["dflt_value"] { words.append("DEFAULT \(value)") }
      if row["hidden"] as Int > 1 { words.append("GENERATED") }
      return (row["name"], words.isEmpty ? "(any type)" : words.joined(separator: " "))
    }
  }

  /// The tables whose rows are compared. A virtual table is read as itself, so that it does not matter how it is
  /// laid out; one that cannot be read (its module is not here) or that keeps no content, by its shadow tables.
  func comparedTables(_ db: Database) throws -> Set<ExactText> {
    var tables = Set(types.filter { $0.value == "table" && !$0.key.text.hasPrefix("sqlite_") }.keys)
    if types["sqlite_sequence"] != nil { tables.insert("sqlite_sequence") }
    for name in types.filter({ $0.value == "virtual" }).keys {
      if try keepsContent(name) && hasRow(db, "SELECT rowid, * FROM \(schema).\(quotedIdentifier(name.text))")
      {
        tables.insert(name)
      } else if try !hasRow(db, "SELECT * FROM \(schema).\(quotedIdentifier(name.text))")
        || !keepsContent(name)
      {
        tables.formUnion(
          types.filter { $0.key.text.utf8.starts(with: "\(name)_".utf8) && $0.value == "shadow" }.keys)
      }
    }
    return tables
  }

  /// Whether a table can be read and has a row. SQLite's general error is that of a module that is not here; what the disk
  /// says is thrown.
  private func hasRow(_ db: Database, _ sql: String) throws -> Bool {
    do {
      return try Row.fetchOne(db, sql: sql) != nil
    } catch let error as DatabaseError
      where [.SQLITE_ERROR, .SQLITE_CORRUPT, .SQLITE_AUTH, .SQLITE_CONSTRAINT].contains(error.resultCode)
    {
      return false
    }
  }

  /// Whether a full-text table holds the texts that it indexes.
  private func keepsContent(_ table: ExactText) -> Bool {
    let sql = objects[Name(kind: "table", name: table)]?.sql?.text ?? ""
    return sql.firstMatch(of: /content\s*=\s*(''|"")/.ignoresCase()) == nil
  }

  /// What is in one of two schemas only, or another in each.
  static func difference(
    _ old: DatabaseSchema, _ new: DatabaseSchema, _ redactor: Redactor
  ) -> [ContainerDifference.SchemaObject] {
    func shown(_ sql: ExactText?) -> String? { sql.map { redactor.shown(sql: $0.text) } }
    return Set(old.objects.keys).union(new.objects.keys).sorted().compactMap { name in
      let (before, after) = (old.objects[name], new.objects[name])
      if let before, let after, isSame(before.sql, after.sql, kind: name.kind.text) { return nil }
      var object = ContainerDifference.SchemaObject(
        kind: name.kind.text, name: name.name.text,
        change: before == nil ? .added : after == nil ? .removed : .changed,
        before: shown(before?.sql), after: shown(after?.sql))
      if let before, let after { object.columns = difference(before.columns, after.columns, redactor) }
      return object
    }
  }

  /// Whether two definitions differ in nothing but white space, comments and the quotes of names.
  private static func isSame(_ before: ExactText?, _ after: ExactText?, kind: String) -> Bool {
    guard before != after, let before, let after else { return before == after }
    return SQLToken.definition(before.text, kind: kind).map { ExactText($0.source) }
      == SQLToken.definition(after.text, kind: kind).map { ExactText($0.source) }
  }

  private static func difference(
    _ old: [(name: String, text: String)], _ new: [(name: String, text: String)], _ redactor: Redactor
  ) -> [ContainerDifference.Column] {
    func shown(_ column: (name: String, text: String)) -> String {
      redactor.shown(sql: column.text, named: column.name)
    }
    let removed = old.filter { column in !new.contains { $0.name.isExactly(column.name) } }.map {
      ContainerDifference.Column(name: $0.name, change: .removed, before: shown($0))
    }
    return removed
      + new.compactMap { column in
        let before = old.first { $0.name.isExactly(column.name) }
        if before?.text.isExactly(column.text) == true { return nil }
        return .init(
          name: column.name, change: before == nil ? .added : .changed, before: before.map(shown),
          after: shown(column))
      }
  }
}

extension Redactor {
  /// The SQL of a schema as it is shown: texts in it, such as a column's default value, are hidden when they look like
  /// secrets, and so are comments.
  ///
  /// - Parameter name: the column that the SQL is about, when it is about one.
  package func shown(sql: String, named name: String? = nil) -> String {
    // For each parenthesis that is open, the first word since it or since the last comma: a column's name.
    var names = [name]
    var text = ""
    let tokens = SQLToken.all(in: sql, withSpace: true)
    let beside = tokens.namesBesideTexts()
    for (index, token) in tokens.enumerated() {
      switch token.kind {
      case .string:
        let own = names.compactMap { $0 }.last ?? ""
        text += shown(literal: token, beside: [own] + (beside[index] ?? []))
        continue
      case .comment:
        text += shown(comment: token.source)
        continue
      case .word, .name: if names[names.count - 1] == nil { names[names.count - 1] = token.text }
      case .sign where token.isSign("("): names.append(nil)
      case .sign where token.isSign(")"): if names.count > 1 { names.removeLast() }
      case .sign where token.isSign(","): names[names.count - 1] = nil
      case .sign, .space: break
      }
      text += token.source
    }
    return text
  }

  private func shown(literal token: SQLToken, beside names: [String]) -> String {
    let name = names.map { SecretName($0) }.max() ?? .plain
    guard SecretPattern.isSecret(.string(token.text), named: name) else { return token.source }
    return shown(secret: token.text)
  }

  private func shown(comment source: String) -> String {
    // The marks around a comment are not part of its text.
    let words = source.drop { "-/* ".contains($0) }
    let plain = words.hasSuffix("*/") ? words.dropLast(2) : words
    return SecretPattern.isSecret(text: String(plain)) ? "/* \(shown(secret: source)) */" : source
  }
}
