import AppContainer
import DrydockErrors
import GRDB

/// A database made from the SQL of a golden.
enum GoldenDatabase {
  /// What a golden's SQL does: it makes tables and fills them, and reaches no other file.
  private static let words: Set<String> = [
    "BEGIN", "COMMIT", "END", "CREATE", "INSERT", "REPLACE", "DELETE", "UPDATE", "PRAGMA", "WITH", "ALTER",
    "DROP",
  ]

  /// Makes a database.
  ///
  /// - Parameters:
  ///   - sql: The statements.
  ///   - file: Where they are from, for messages.
  ///   - path: The database's path; nothing may be there.
  /// - Throws: `DrydockError` with code `malformed`, with the line.
  static func make(_ sql: String, from file: String, at path: String) throws {
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    // As SQLite itself does: the schemas of real apps have them.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.prepareDatabase {
      try $0.execute(sql: "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA trusted_schema=OFF")
    }
    // Where the statement is that runs: what SQLite knows of places ends with it.
    var statement = ""
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { db in
        let statements = try db.allStatements(sql: sql)
        while let next = try statements.next() {
          statement = next.sql
          try check(statement, sql, file)
          try next.execute()
        }
        if db.isInsideTransaction { try db.execute(sql: "COMMIT") }
      }
    } catch let error as DatabaseError {
      // The statement that cannot be compiled is not known before.
      let text = error.sql ?? statement
      throw failure("the SQL fails: \(error.plainMessage)", text, sql, file, cause: error)
    }
  }

  private static func check(_ statement: String, _ sql: String, _ file: String) throws {
    let bare = statement.drop { $0.isWhitespace }
    let word = bare.prefix { $0.isLetter }.uppercased()
    guard words.contains(word) || bare.hasPrefix("--") || bare.hasPrefix("/*") else {
      throw failure("a golden's SQL only makes and fills tables; \(word) is not for it", statement, sql, file)
    }
  }

  private static func failure(
    _ message: String, _ statement: String, _ sql: String, _ file: String, cause: (any Error)? = nil
  ) -> DrydockError {
    let first = statement.split(separator: "\n").first.map(String.init)
    let line = first.flatMap { first in
      sql.split(separator: "\n", omittingEmptySubsequences: false).lastIndex { $0.hasPrefix(first) }
    }
    return DrydockError(.badFixture, message, path: file, line: line.map { $0 + 1 }, cause: cause)
  }
}
