import Formats
import GRDB
import Synchronization

extension Database {
  /// Executes a definition as a schema has it. SQLite reads its first statement only; what another program has written
  /// behind that, such as ATTACH, must not run.
  package func execute(definition sql: String) throws { try allStatements(sql: sql).next()?.execute() }
}

/// A schema without rows in a database in memory, in which functions and collations that only the app has do nothing.
package struct SchemaCopy {
  /// Why SQLite refuses a statement, or the first of what only the app has.
  package typealias Result = (error: String?, unknown: String?)

  private let db: Database
  private var known: Set<String> = []
  private var functions: [DatabaseFunction] = []
  private var collations: [DatabaseCollation] = []
  /// Virtual tables whose module or tokenizer only the app has, as SQLite's message names them.
  private var absent: Set<String> = []

  package init(_ db: Database) { self.db = db }

  /// Whether functions or collations that only the app has were added.
  var hasAppParts: Bool { !functions.isEmpty || !collations.isEmpty }

  /// Runs a definition, or compiles another statement.
  package mutating func run(_ sql: String) -> Result {
    var unknown: String?
    while true {
      do {
        if SQLStatement(sql).definesSchema {
          try db.execute(definition: sql)
        } else {
          _ = try db.makeStatement(sql: sql)
        }
        return (nil, unknown)
      } catch {
        let message = (error as? DatabaseError)?.message ?? "SQLite error"
        guard
          let name = message.firstMatch(
            of: #/^(?:error in .*: )?(no such|unknown) (function|collation sequence): ([^()]+)(\(\))?$/#),
          known.insert(message).inserted
        else {
          let tokens = SQLToken.all(in: sql)
          if SQLStatement(sql).createsVirtualTable, tokens.count > 3 {
            absent.insert("no such table: main.\(tokens[3].text)")
          }
          return absent.contains(message) ? (nil, message) : (message, unknown)
        }
        unknown = unknown ?? message
        if name.2 == "function" {
          functions.append(DatabaseFunction(String(name.3), pure: true) { _ in nil })
          db.add(function: functions[functions.count - 1])
        } else {
          collations.append(DatabaseCollation(String(name.3)) { _, _ in .orderedSame })
          db.add(collation: collations[collations.count - 1])
        }
      }
    }
  }

  /// Removes the functions and collations that a copy of this value has added since.
  func restore(from later: SchemaCopy) {
    for function in later.functions.dropFirst(functions.count) { db.remove(function: function) }
    for collation in later.collations.dropFirst(collations.count) { db.remove(collation: collation) }
  }
}

/// Tries the views and triggers of schemas in an empty copy. It is kept for the next schema, which is mostly the same one after
/// a step: only what differs is copied again.
package final class SchemaTrial: @unchecked Sendable {
  /// Those that no thread uses now.
  private static let free = Mutex<[SchemaTrial]>([])
  private static let limit = 4, largest = 2000

  private let queue: DatabaseQueue
  private var copy: SchemaCopy
  /// The copied tables, indexes and views, by their names in lower case.
  private var copied: [String: SchemaObject] = [:]
  private var last: (objects: [SchemaObject], results: [String: SchemaCopy.Result]) = ([], [:])

  private init() throws {
    queue = try DatabaseQueue()
    copy = queue.inDatabase { SchemaCopy($0) }
  }

  /// What SQLite says of the views and triggers, by parts such as ``view `active` ``.
  package static func results(for objects: [SchemaObject]) throws -> [String: SchemaCopy.Result] {
    if !objects.contains(where: { $0.isView || $0.isTrigger }) { return [:] }
    var trial = try free.withLock { $0.popLast() } ?? SchemaTrial()
    if !trial.last.objects.elementsEqual(objects, by: ===) {
      if !trial.adopt(objects) {
        trial = try SchemaTrial()
        _ = trial.adopt(objects)
      }
      trial.last = (objects, try trial.results(for: objects))
    }
    let results = trial.last.results
    // From now on another thread may take it.
    free.withLock { free in if free.count < limit, objects.count <= largest { free.append(trial) } }
    return results
  }

  /// Makes the copied tables, indexes and views those of a schema.
  ///
  /// - Returns: false when that needs a new copy: a virtual table comes with tables of its own, and keeps what it has read of
  ///   others; a function that a table needed stays.
  private func adopt(_ objects: [SchemaObject]) -> Bool {
    let parts = objects.filter { !$0.isTrigger }
    let wanted = Dictionary(parts.map { ($0.name.lowercased(), $0) }) { first, _ in first }
    let gone = copied.filter { wanted[$0.key] !== $0.value }
    // The indexes of a table go with it.
    let new = parts.filter { copied[$0.name.lowercased()] !== $0 || gone[$0.table.lowercased()] != nil }
    // Names that are one for Swift and two for SQLite, such as `Ä` and `ä`, are not told apart here.
    let isExact = wanted.count == parts.count && (gone.isEmpty || !copy.hasAppParts)
    let hasVirtual = (copied.values + new).contains(where: \.isVirtual)
    if !copied.isEmpty, !isExact || hasVirtual && !(gone.isEmpty && new.isEmpty) { return false }
    return queue.inDatabase { db in
      for object in gone.values {
        let type = object.isView ? "VIEW" : object.isIndex ? "INDEX" : "TABLE"
        if copy.run("DROP \(type) IF EXISTS \(quotedIdentifier(object.name))").error != nil { return false }
      }
      for object in new {
        // A trigger may name an index, or a unique one's columns in ON CONFLICT. One that needs what only the app has is
        // left out: what triggers need of it is to be reported.
        if object.isIndex { try? db.execute(definition: object.sql) } else { _ = copy.run(object.sql) }
      }
      copied = wanted
      return true
    }
  }

  /// Tries each view, and each trigger by itself.
  private func results(for objects: [SchemaObject]) throws -> [String: SchemaCopy.Result] {
    try queue.inDatabase { db in
      var (trial, results): (SchemaCopy, [String: SchemaCopy.Result]) = (copy, [:])
      defer { copy.restore(from: trial) }
      for object in objects where object.isView {
        results["view `\(object.name)`"] = trial.run("SELECT * FROM \(quotedIdentifier(object.name))")
      }
      for object in objects where object.isTrigger {
        guard results["view `\(object.table)`"]?.error == nil, trial.run(object.sql).error == nil else {
          continue
        }
        let verb = SQLStatement(object.sql).triggeringVerb ?? ""
        results["trigger `\(object.name)` (\(verb) on `\(object.table)`)"] =
          trial.run(try Self.statement(verb, on: object.table, db))
        _ = trial.run("DROP TRIGGER \(quotedIdentifier(object.name))")
      }
      return results
    }
  }

  /// A statement that runs all triggers of a table or view for a verb.
  private static func statement(_ verb: String, on table: String, _ db: Database) throws -> String {
    let name = quotedIdentifier(table)
    switch verb {
    case "INSERT": return "INSERT INTO \(name) DEFAULT VALUES"
    case "DELETE": return "DELETE FROM \(name)"
    default:
      let columns = try String.fetchAll(
        db, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", arguments: [table])
      let values = columns.map(quotedIdentifier).map { "\($0) = \($0)" }
      return "UPDATE \(name) SET \(values.joined(separator: ", "))"
    }
  }
}
