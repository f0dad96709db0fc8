import Foundation
import TestSupport
import Testing

/// Folders in each tool's format, made by its documentation (the guide "Other tools' databases"): the database is what
/// `sqlite3` makes of the same statements, and goes back to nothing.
@Suite struct ToolFolderTests {
  private static let folders = Sandbox.repository + "/Tests/CommandTests/ToolFolders"

  /// Schema and rows as text, without what the tool keeps; blanks aside, which a stripped type of a column leaves.
  private func dump(_ sandbox: Sandbox, _ path: String) throws -> [String] {
    let tables = ["schema_migrations", "goose_db_version", "sqlite_sequence", "version_unique"]
    return try sandbox.sqlite(path, ".dump --nosys")
      .replacing(/\s+/, with: " ").replacing(/\ (?=[,)])/, with: "").split(separator: "; ").map(String.init)
      .filter { line in !tables.contains { line.contains($0) } && !line.hasPrefix("PRAGMA") }.sorted()
  }

  @Test(arguments: ["dbmate", "goose", "golang-migrate", "sqldelight"])
  func givesWhatSQLiteGives(_ format: String) throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.books\nlayout: generic\ndatabases: {books: Documents/books.sqlite}\n"
          + "migrations: {path: \(Self.folders)/\(format), format: \(format), database: books}\n")
      let path = "Notes/Documents/books.sqlite"
      try sandbox.write("Notes/Documents/readme.txt", "a container")
      if format == "sqldelight" {
        try sandbox.sqlite(
          path,
          """
          CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT NOT NULL); INSERT INTO book VALUES (1, 'One');
          PRAGMA user_version = 1;
          """)
      }
      try sandbox.succeed("validate")
      try sandbox.succeed("migrate Notes")
      try Command.run(
        Tools.system("sqlite3"), [sandbox("expected.sqlite")],
        input: Array(RawFiles.read(Array("\(Self.folders)/\(format).sql".utf8)))
      ).expect()
      #expect(try dump(sandbox, path) == dump(sandbox, "expected.sqlite"))
      guard format != "sqldelight" else { return }
      try sandbox.succeed("rollback Notes --down --to 0")
      let left = try dump(sandbox, path).filter { $0.hasPrefix("CREATE") || $0.hasPrefix("INSERT") }
      #expect(left == [], "\(left)")
    }
  }

  /// What is said of a record that says more than was done is in `ReplayedSchemaTests`.
  @Test func `A batch's baseline takes a database where the tool's record has that version alone`() throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.books\nlayout: generic\ndatabases: {books: books.sqlite}\n"
          + "migrations: {path: db, format: golang-migrate, database: books}\n")
      try sandbox.write("db/1_book.up.sql", "CREATE TABLE book (id, title);\n")
      try sandbox.write("db/2_more.up.sql", "ALTER TABLE book ADD COLUMN done;\n")
      for version in 1...2 {
        try sandbox.write("All/\(version)/readme.txt", "a container")
        try sandbox.sqlite(
          "All/\(version)/books.sqlite",
          """
          CREATE TABLE schema_migrations (version uint64,dirty bool); CREATE TABLE book (id, title);
          INSERT INTO schema_migrations VALUES (\(version), 0);
          """)
      }
      let all = try sandbox.drydock("baseline --all All --to 2")
      #expect(all.output.contains("version 1 already"), "\(all)")
      #expect(all.output.contains("1 changed, 1 unchanged"), "\(all)")
      try sandbox.drydock("migrate All/1").expect(output: "version 1 → 2")
    }
  }
}
