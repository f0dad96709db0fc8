import AppContainer
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// The schema that SQLDelight creates in an empty database: the CREATE statements of its `.sq` files. Labelled statements are
/// queries, and INSERTs are rows.
struct SQLDelightSources {
  private var tables: [SQLScript] = []
  private var views: [SQLScript] = []
  /// Indexes and triggers, which need the others.
  private var others: [SQLScript] = []
  /// The databases of old versions, `N.db`, that SQLDelight verifies its migrations with.
  private(set) var databases: [(version: Int, path: String)] = []

  private static let sizeLimit = 4 << 20

  /// Reads a directory's `.sq` files at every depth.
  ///
  /// - Throws: ``DrydockError`` `catalog` when it has none with a CREATE statement.
  init(_ path: String) throws {
    let folder: Directory
    do { folder = try Directory(path) } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.catalog, "the directory of SQLDelight's .sq files does not exist", path: path)
    }
    try folder.walk { entry in
      let name = entry.name.nameString
      if entry.status.type == .directory { return name.hasPrefix(".") ? .over : .into }
      guard entry.status.type == .file else { return .over }
      if name.hasSuffix(".sq") {
        add(try folder.contents(entry.path, limit: Self.sizeLimit), file: "\(path)/\(entry.path)")
      } else if name.hasSuffix(".db"), let version = Int(name.dropLast(3)), version > 0 {
        databases.append((version, "\(path)/\(entry.path)"))
      }
      return .over
    }
    databases.sort { $0.version < $1.version }
    if tables.isEmpty {
      throw DrydockError(
        .catalog, "no .sq file creates a table: name the directory of `.sq` files", path: path)
    }
  }

  private mutating func add(_ bytes: [UInt8], file: String) {
    let script = SQLScript(bytes: SQLDelightText.stripped(bytes), file: file, firstLine: 1)
    var places = SQLPlaces(script)
    var offset = 0
    while true {
      let start = script.word(from: offset)
      var tokens = SQLTokens(script.bytes, from: start)
      guard let first = tokens.next() else { return }
      if let second = tokens.next(), first.kind == .word, second.isSign("{") {
        offset = Self.end(of: &tokens) ?? script.bytes.count
        continue
      }
      guard let statement = script.statement(from: start) else { return }
      offset = statement.end
      guard statement.verb == "CREATE" else { continue }
      let words = SQLToken.all(in: statement.text).prefix(3).map { $0.text.uppercased() }
      let part = SQLScript(
        text: statement.text, file: file, firstLine: places.position(at: statement.offset).line)
      if words.contains("TABLE") {
        tables.append(part)
      } else if words.contains("VIEW") {
        views.append(part)
      } else {
        others.append(part)
      }
    }
  }

  /// Past the brace that closes a labelled group of statements.
  private static func end(of tokens: inout SQLTokens) -> Int? {
    var depth = 1
    while let token = tokens.next() {
      if token.isSign("{") { depth += 1 }
      if token.isSign("}") { depth -= 1 }
      if depth == 0 { return token.range.upperBound }
    }
    return nil
  }

  /// The database that the app creates, in memory.
  func fresh(_ configuration: ContainerConfiguration) throws -> DatabaseQueue {
    let queue = try DatabaseQueue.fresh(configuration)
    try queue.writeWithoutTransaction { db in
      for script in tables + views + others {
        var splitter = try SQLSplitter(script: script, in: db)
        while let part = try splitter.next() {
          do {
            let rules = StatementRules(source: part.source, destructive: "the schema")
            if let reason = try rules.refusal(db) {
              throw DrydockError(.sql, "\(script.position(at: 0)): \(reason)")
            }
            try part.statement.execute()
          } catch let error as DatabaseError {
            throw DrydockError(.sql, "\(script.position(at: 0)): \(error.plainMessage)", cause: error)
          }
        }
      }
    }
    return queue
  }
}

/// The definitions in a database by their names, as text that does not depend on how they were written.
struct SchemaShape {
  /// By the place, such as `table book: column title`.
  private var parts: [String: String] = [:]

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
      case "table": try add(table: name, db)
      default: parts["\(type) \(name)"] = text
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
    func byName(_ shape: SchemaShape) -> [String: (place: String, text: String)] {
      Dictionary(
        shape.parts.map { ($0.key.lowercased(), ($0.key, $0.value)) }, uniquingKeysWith: { first, _ in first }
      )
    }
    let (mine, other) = (byName(self), byName(expected))
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
}
