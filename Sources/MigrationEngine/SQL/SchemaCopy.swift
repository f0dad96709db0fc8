import Formats
import GRDB

/// A schema without rows in a database in memory, in which functions and collations that only the app has do nothing.
struct SchemaCopy {
  /// Why SQLite refuses a statement, or the first of what only the app has.
  typealias Result = (error: String?, unknown: String?)

  private let db: Database
  private var known: Set<String> = []
  /// Virtual tables whose module or tokenizer only the app has, as SQLite's message names them.
  private var absent: Set<String> = []

  init(_ db: Database) { self.db = db }

  /// Runs a definition, or compiles another statement.
  mutating func run(_ sql: String) -> Result {
    var unknown: String?
    while true {
      do {
        if SQLStatement(sql).definesSchema {
          try db.execute(sql: sql)
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
          db.add(function: DatabaseFunction(String(name.3), pure: true) { _ in nil })
        } else {
          db.add(collation: DatabaseCollation(String(name.3)) { _, _ in .orderedSame })
        }
      }
    }
  }
}
