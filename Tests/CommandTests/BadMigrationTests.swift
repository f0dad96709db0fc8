import Foundation
import TestSupport
import Testing

/// What is said about invalid migrations is in the sessions `validate.txt` and `bad-migrations.txt`.
@Suite("Migrations that fail while they run leave nothing of what came before")
struct BadMigrationTests {
  /// A seventh migration, which fails behind six that have changed settings, files, the vault and the database.
  private static let files: [(name: String, text: String, words: [String])] = [
    (
      "0007_sql.sql",
      """
      -- drydock: database notes
      -- migrate:up
      UPDATE account SET balance = 0 WHERE id > 0;
      CREATE TABLE half (id INTEGER PRIMARY KEY);
      INSERT INTO nowhere VALUES (1);
      """, ["0007_sql.sql:5:1", "nowhere"]
    ),
    (
      "0007_sql.sql",
      "-- drydock: database notes\n-- migrate:up\nUPDATE task SET projectId = 99 WHERE id = 1;\n",
      ["0007_sql.sql:3:1", "missing rows of project"]
    ),
    (
      "0007_sql.sql", "-- drydock: database notes\n-- migrate:up\nDELETE FROM task;\n",
      ["0007_sql.sql:3:1", "DELETE without WHERE", "destructive"]
    ),
    (
      "0007_verify.yaml",
      """
      steps:
        - defaults.set: {values: {theme: purple}, if-exists: replace}
      verify:
        - defaults: {key: theme, one-of: [dark, light]}

      """, ["0007_verify.yaml:4:5", "theme", "purple"]
    ),
    (
      "0007_check.yaml",
      """
      check:
        - sql: {database: notes, query: SELECT count(*) FROM task, equals: 7}
      steps:
        - defaults.set: {values: {theme: dark}, if-exists: replace}

      """, ["0007_check.yaml:2:5", "5", "7"]
    ),
  ]

  @Test("SQL that fails in the middle or breaks the database's own rules, and checks that do not hold")
  func failing() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.expectUnchanged {
        for (number, file) in Self.files.enumerated() {
          let path = "Migrations/" + file.name
          try sandbox.write(path, file.text)
          try sandbox.expectError("migrate Notes", exit: 1, file.words)
          if number == 0 { try sandbox.expectError("migrate Notes --dry-run", exit: 1, file.words) }
          try sandbox.remove(path)
        }
      }
      // The four before it run without it.
      try sandbox.write("Migrations/" + Self.files[0].name, Self.files[0].text)
      try sandbox.succeed("migrate Notes --to 4")
    }
  }
}
