import AppContainer
import DrydockErrors
import GRDB

/// Takes a script apart, statement by statement. Each is compiled after the one before has run, so that it may use what
/// that one made.
struct SQLSplitter {
  /// A statement, ready to run.
  struct Part {
    let statement: Statement
    let source: SQLStatementText

    /// Its text, without comments before it.
    var text: String { source.text }
    /// Where its first word is in the script.
    var offset: Int { source.offset }
  }

  private let script: SQLScript
  private let db: Database
  private var offset = 0

  init(script: SQLScript, in db: Database) throws {
    // SQLite would take it for the end of the text.
    if let index = script.bytes.firstIndex(of: 0) {
      throw DrydockError(.sql, "\(script.position(at: index)): a NUL character is not SQL: remove it")
    }
    self.script = script
    self.db = db
  }

  /// The next statement; nil at the end.
  mutating func next() throws -> Part? {
    guard let source = script.statement(from: offset) else { return nil }
    offset = source.end
    do {
      // SQLite says so when it takes the text for several statements.
      return Part(statement: try db.makeStatement(sql: source.text), source: source)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw DrydockError(
        .sql, "\(script.position(at: source.offset)): \(error.plainMessage)", cause: error)
    }
  }
}
