import AppContainer
import GRDB

/// Takes a script apart, statement by statement. SQLite's parser finds where each one ends, after the one before
/// has run, so that a statement may use what that one made.
struct SQLSplitter {
  let script: SQLScript
  private var rest: Substring
  private var offset = 0

  init(script: SQLScript) {
    self.script = script
    rest = script.text[...]
  }

  /// The next statement, prepared, and where it starts; nil at the end.
  mutating func next(_ db: Database) throws -> (Statement, YAMLPosition)? {
    while true {
      skipSeparators()
      if rest.isEmpty { return nil }
      let position = script.position(at: offset)
      do {
        if let statement = try db.allStatements(sql: String(rest)).next() {
          try take(statement.sql, from: position)
          return (statement, position)
        }
        // Only comments up to a semicolon or the end: GRDB would stop here and skip the rest of the script. A
        // word in front makes a statement of them, so that SQLite says where they end.
        let probe = "SELECT 0\n"
        guard let statement = try db.allStatements(sql: probe + rest).next(),
          statement.sql.hasPrefix(probe)
        else { return nil }
        try take(String(statement.sql.dropFirst(probe.count)), from: position)
      } catch let error as DatabaseError {
        throw MigrationError(.sql, "\(position): \(error.plainMessage)", cause: error)
      }
    }
  }

  private mutating func skipSeparators() {
    while let first = rest.utf8.first, first <= 0x20 || first == UInt8(ascii: ";") { advance(1) }
  }

  private mutating func take(_ sql: String, from position: YAMLPosition) throws {
    guard !sql.isEmpty, rest.utf8.starts(with: sql.utf8) else {
      throw MigrationError(.sql, "\(position): the end of this statement could not be found")
    }
    advance(sql.utf8.count)
  }

  private mutating func advance(_ count: Int) {
    rest = rest[rest.utf8.index(rest.startIndex, offsetBy: count)...]
    offset += count
  }
}
