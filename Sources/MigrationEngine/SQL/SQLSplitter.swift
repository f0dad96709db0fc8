import AppContainer
import GRDB

/// Takes a script apart, statement by statement. SQLite's parser finds where each one ends, after the one before
/// has run, so that a statement may use what that one made.
struct SQLSplitter {
  private let script: SQLScript
  private var offset = 0

  init(script: SQLScript) { self.script = script }

  /// The next statement, prepared, and where it starts; nil at the end.
  mutating func next(_ db: Database) throws -> (Statement, YAMLPosition)? {
    offset = script.word(from: offset)
    let rest = String(decoding: script.text.utf8.dropFirst(offset), as: UTF8.self)
    if rest.isEmpty { return nil }
    let position = script.position(at: offset)
    let statement: Statement?
    do {
      statement = try db.allStatements(sql: rest).next()
    } catch let error as DatabaseError {
      throw MigrationError(.sql, "\(position): \(error.plainMessage)", cause: error)
    }
    guard let statement, !statement.sql.isEmpty, rest.utf8.starts(with: statement.sql.utf8) else {
      throw MigrationError(.sql, "\(position): SQLite finds no statement here")
    }
    offset += statement.sql.utf8.count
    return (statement, position)
  }
}
