import Foundation
import TestSupport
import Testing

/// Folders in each tool's format, made by its documentation (the guide "Other tools' migrations"): the database is what
/// `sqlite3` makes of the same statements, and goes back to nothing.
@Suite("Other tools' folders")
struct ToolFolderTests {
  private static let folders = Lab.repository + "/Tests/CommandTests/ToolFolders"

  /// Schema and rows as text, without what the tool keeps; blanks aside, which a stripped type of a column leaves.
  private func dump(_ lab: Lab, _ path: String) throws -> [String] {
    let tables = ["schema_migrations", "goose_db_version", "sqlite_sequence", "version_unique"]
    return try lab.run(Tools.system("sqlite3"), lab(path), ".dump --nosys")
      .replacing(/\s+/, with: " ").replacing(/\ (?=[,)])/, with: "").split(separator: "; ").map(String.init)
      .filter { line in !tables.contains { line.contains($0) } && !line.hasPrefix("PRAGMA") }.sorted()
  }

  @Test(arguments: ["dbmate", "goose", "golang-migrate", "sqldelight"])
  func givesWhatSQLiteGives(_ format: String) throws {
    try Lab.with { lab in
      try lab.write(
        "drydock.yaml",
        "app: com.example.books\nlayout: generic\ndatabases: {books: Documents/books.sqlite}\n"
          + "migrations: {path: \(Self.folders)/\(format), format: \(format), database: books}\n")
      let path = "Notes/Documents/books.sqlite"
      try lab.write("Notes/Documents/readme.txt", "a container")
      if format == "sqldelight" {
        try lab.run(
          Tools.system("sqlite3"), lab(path),
          """
          CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT NOT NULL); INSERT INTO book VALUES (1, 'One');
          PRAGMA user_version = 1;
          """)
      }
      try lab.succeed("validate")
      try lab.succeed("migrate", "Notes")
      let made = try Command.run(
        Tools.system("sqlite3"), [lab("expected.sqlite")],
        input: Array(RawFiles.read(Array("\(Self.folders)/\(format).sql".utf8))))
      #expect(made.succeeded, "\(made)")
      #expect(try dump(lab, path) == dump(lab, "expected.sqlite"))
      guard format != "sqldelight" else { return }
      try lab.succeed("rollback", "Notes", "--down", "--to", "0")
      let left = try dump(lab, path).filter { $0.hasPrefix("CREATE") || $0.hasPrefix("INSERT") }
      #expect(left == [], "\(left)")
    }
  }
}
