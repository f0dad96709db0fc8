import DrydockErrors
import FileSystem
import GRDB

/// A database written down as SQL.
struct FixtureDatabase {
  private let sql: String
  private let file: String

  init(sql path: ContainerPath, in source: Directory) throws {
    file = source.full(path)
    guard let text = String(validating: try source.contents(path, limit: 1 << 30), as: UTF8.self) else {
      throw DrydockError(.badFixture, "the SQL is not UTF-8", path: file)
    }
    sql = text
  }

  /// Makes the database in a private directory and puts it in its place: in WAL mode, as apps have it, unless the SQL
  /// begins with another `PRAGMA journal_mode`, and closed; or with every row in the `-wal`, as an app leaves it that is
  /// killed.
  func build(_ path: ContainerPath, in target: Directory, onlyInWAL: Bool) throws {
    let name: ContainerPath = "database"
    try ScratchDirectory.withTemporary { scratch in
      let queue = try DatabaseQueue.alone(with: scratch.full(name)) {
        // The SQL may begin a transaction and fail in it, or never end it.
        $0.allowsUnsafeTransactions = true
        // As SQLite by itself: an app's schema may have texts in double quotes.
        $0.acceptsDoubleQuotedStringLiterals = true
      }
      defer { try? queue.close() }
      do {
        try queue.writeWithoutTransaction { try run(on: $0) }
      } catch let error as DatabaseError {
        throw DrydockError(.badFixture, "the SQL fails: \(error.plainMessage)", path: file, cause: error)
      }
      if onlyInWAL {
        guard try scratch.status("database-wal") != nil else {
          throw DrydockError(
            .badFixture, "`only-in-wal` needs WAL mode, and the SQL sets another `journal_mode`", path: file)
        }
        // While it is open: closing would move the rows into the main file.
        try place(name, path, scratch, target)
        try place("database-wal", path.withSuffix("-wal"), scratch, target)
      } else {
        try queue.close()
        try place(name, path, scratch, target)
      }
    }
  }

  /// Runs the statements, in one transaction unless they say where theirs begin, as dumps do.
  private func run(on database: Database) throws {
    // The file is thrown away on any failure, so that nothing waits for the disk.
    try database.execute(sql: "PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
    var hasContent = false
    var hasMode = false
    let statements = try database.allStatements(sql: sql)
    while let statement = try statements.next() {
      let word = Self.firstWord(statement.sql)
      if Self.refused.contains(word) {
        throw DrydockError(
          .badFixture, "the SQL fails: \(word) is not for a fixture, which is one database", path: file)
      }
      // What comes before the first content is about the file itself: its encoding, the size of its pages.
      if !hasContent, word == "PRAGMA" {
        hasMode = hasMode || statement.sql.lowercased().contains("journal_mode")
      } else if !hasContent {
        hasContent = true
        try Self.begin(database, hasMode: hasMode)
      }
      if !database.isInsideTransaction, !["PRAGMA", "BEGIN", "SAVEPOINT"].contains(word) {
        try database.beginTransaction()
      }
      try statement.execute()
    }
    if !hasContent { try Self.begin(database, hasMode: hasMode) }
    if database.isInsideTransaction { try database.commit() }
  }

  private static let refused: Set<String> = ["ATTACH", "DETACH", "VACUUM"]

  private static func begin(_ database: Database, hasMode: Bool) throws {
    if !hasMode { try database.execute(sql: "PRAGMA journal_mode = WAL") }
    try database.execute(sql: "PRAGMA wal_autocheckpoint = 0")
  }

  private static func firstWord(_ sql: String) -> String {
    var rest = sql[...]
    while true {
      rest = rest.drop(while: \.isWhitespace)
      if rest.hasPrefix("--") {
        rest = rest.drop { !$0.isNewline }
      } else if rest.hasPrefix("/*") {
        rest = rest.range(of: "*/").map { rest[$0.upperBound...] } ?? ""
      } else {
        return rest.prefix(while: \.isLetter).uppercased()
      }
    }
  }

  private func place(
    _ name: ContainerPath, _ path: ContainerPath, _ scratch: Directory, _ target: Directory
  ) throws {
    try scratch.copyContents(of: name, to: path, in: target)
    try target.setMode(0o644, of: path)
  }
}
