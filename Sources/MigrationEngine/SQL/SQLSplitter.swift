import AppContainer
import GRDB

/// Takes a script apart, statement by statement. SQLite's parser finds where each one ends, after the one before
/// has run, so that a statement may use what that one made.
struct SQLSplitter {
  /// A statement, ready to run.
  struct Part {
    let statement: Statement
    /// Its text, without comments before it.
    let text: String
    /// Where its first word is in the script.
    let offset: Int
  }

  private let script: SQLScript
  private let statements: SQLStatementCursor
  private var offset = 0

  init(script: SQLScript, in db: Database) throws {
    self.script = script
    statements = try db.allStatements(sql: String(decoding: script.bytes, as: UTF8.self))
  }

  /// The next statement; nil at the end.
  mutating func next() throws -> Part? {
    let start = script.word(from: offset)
    if start == script.bytes.count { return nil }
    do {
      guard let statement = try statements.next() else { throw notFound() }
      // GRDB gives the text from the first comment on, without separators at both ends.
      let text = Array(statement.sql.utf8)
      while offset < script.bytes.count, SQLScript.isSeparator(script.bytes[offset]) { offset += 1 }
      guard start < offset + text.count, script.bytes[offset...].starts(with: text) else { throw notFound() }
      offset += text.count
      let words = String(decoding: script.bytes[start..<offset], as: UTF8.self)
      return Part(statement: statement, text: words, offset: start)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw MigrationError(.sql, "\(script.position(at: start)): \(error.plainMessage)", cause: error)
    }
  }

  private func notFound() -> MigrationError {
    MigrationError(.sql, "\(script.position(at: offset)): SQLite finds no statement here")
  }
}
