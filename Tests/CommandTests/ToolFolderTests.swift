import Foundation
import TestSupport
import Testing

/// Folders in each tool's format, made by its documentation (the guide "Other tools' databases"): the database is what
/// `sqlite3` makes of the same statements, and goes back to nothing.
@Suite("Other tools' folders")
struct ToolFolderTests {
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

  @Test("What the tool's statements lose is announced beside them")
  func losses() throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.books\nlayout: generic\ndatabases: {books: books.sqlite}\nfixtures: Tests\n"
          + "migrations: {path: db, format: dbmate, database: books}\n")
      try sandbox.write(
        "db/1_shelf.sql",
        "-- migrate:up\nALTER TABLE book DROP COLUMN shelf;\n-- migrate:down\nALTER TABLE book ADD COLUMN shelf;\n"
      )
      try sandbox.write("Tests/old/fixture.yaml", "version: 0\n")
      try sandbox.write("Tests/old/container/readme.txt", "a container")
      try sandbox.sqlite(
        "Tests/old/container/books.sqlite",
        "CREATE TABLE schema_migrations (version); CREATE TABLE book (id, shelf); INSERT INTO book VALUES (1, 2)"
      )
      try sandbox.drydock("test --record").expect(exit: 1, output: "`loses: {book.shelf: \"why\"}`")
      try sandbox.write(
        "db/1_losses.yaml",
        "steps: []\nloses: {book.shelf: nobody reads it}\ndown-loses: {book.shelf: it is gone}\n")
      try sandbox.succeed("test")
    }
  }
}

/// The first run on a database whose record says more than was done.
@Suite struct ToolRecordTests {
  @Test("Each command says the same; baseline takes the database as it is, where the record has that version")
  func aMissingColumn() throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.books\nlayout: generic\ndatabases: {books: books.sqlite}\n"
          + "migrations: {path: db, format: golang-migrate, database: books}\n")
      try sandbox.write("db/1_book.up.sql", "CREATE TABLE book (id, title);\n")
      try sandbox.write("db/2_more.up.sql", "ALTER TABLE book ADD COLUMN done;\n")
      try sandbox.write("db/3_author.up.sql", "CREATE TABLE author (id);\n")
      for (name, version) in [("A", 1), ("B", 2), ("C", 3)] {
        try sandbox.write("All/\(name)/readme.txt", "a container")
        try sandbox.sqlite(
          "All/\(name)/books.sqlite",
          """
          CREATE TABLE schema_migrations (version uint64,dirty bool); INSERT INTO schema_migrations VALUES (\(version), 0);
          CREATE TABLE book (id, title);
          """)
      }
      let message = """
        books is at version 2, and the database lacks what its migrations make:
          table book: column done (0002_more)
          if they were not applied: set the version to 1, from which they run
          if the database is as it should be: set the version to 2
          (`drydock baseline CONTAINER --to N`)

        """
      for command in [["status"], ["migrate"], ["migrate", "--dry-run"]] {
        let result = try sandbox.drydock(command + ["All/B"]).expect(exit: 4)
        #expect(result.errors.hasSuffix(message), "\(result)")
      }
      try sandbox.drydock("inspect All/B").expect(output: "schema version: 2, by golang-migrate's table")
      // Another version is not set where the record has one.
      let all = try sandbox.drydock("baseline --all All --to 3")
      #expect(all.output.contains("version 1 already") && all.output.contains("version 2 already"), "\(all)")
      #expect(all.output.contains("1 changed, 2 unchanged"), "\(all)")
      #expect(
        all.errors.contains(
          "the database lacks what its migrations make: table author (0003_author), table book: column done"))
      try sandbox.succeed("baseline All/B --to 1")
      try sandbox.drydock("migrate All/B").expect(output: "version 1 → 3")
    }
  }
}
