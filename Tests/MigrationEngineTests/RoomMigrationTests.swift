import AppContainer
import AppFrameworks
import DrydockErrors
import GRDB
import Testing

@testable import MigrationEngine

/// Room's migrations of a database that another program wrote.
@Suite struct RoomMigrationTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let migrations = Samples.room + "/migrations"

  /// The database has a version by SQLite's number and by Room's hash.
  private func expectVersion(_ version: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let hash = try lab.column("SELECT id || ' ' || identity_hash FROM room_master_table")
    #expect(try hash == ["42 \(Samples.schema(version).identityHash)"], sourceLocation: sourceLocation)
    #expect(try lab.column("PRAGMA user_version") == ["\(version)"], sourceLocation: sourceLocation)
  }

  /// The statements of the sample's derived migration from a version to the next.
  private func derived(from version: Int) throws -> String {
    let file = "\(Self.migrations)/\(version)_\(version + 1).auto.yaml"
    let spec = try RoomAutoSpec(Samples.bytes(file), file: "")
    let schemas = try (Samples.schema(version), Samples.schema(version + 1))
    return try RoomAutoMigration(from: schemas.0, to: schemas.1, spec).statements
      .map { $0 + ";\n" }.joined()
  }

  @Test func fromTheFirstVersionToTheLast() throws {
    try lab.sample(Samples.room + "/notes-1.db")
    let catalog = try lab.catalog(.room, in: Self.migrations)
    #expect(
      catalog.numbers == [2, 3, 4]
        && catalog.migrations.map(\.name) == ["1_2.auto.yaml", "2_3.auto.yaml", "3_4.sql"])
    #expect(try lab.drift(catalog, at: 1) == [])
    let report = try lab.migrate(catalog)
    #expect(report.from == 1 && report.to == 4 && report.notes == [])
    try expectVersion(4)
    #expect(
      try lab.column("SELECT id || '|' || title || '|' || text || '|' || pinned FROM note ORDER BY id")
        == ["1|Milk|two bottles|0", "7|Paint||0"])
    #expect(try lab.column("SELECT id || name FROM notebook") == ["f1Home"])
    // What Room does not know stays.
    #expect(try lab.tables().contains("android_metadata"))
    // The full-text index follows the new column, and its triggers are there again.
    #expect(try lab.column("SELECT docid FROM note_fts WHERE note_fts MATCH 'text:bottles'") == ["1"])
    try lab.change("INSERT INTO note (title, text) VALUES ('Nails', 'fifty')")
    #expect(try lab.column("SELECT docid FROM note_fts WHERE note_fts MATCH 'fifty'") == ["8"])
    #expect(try lab.drift(catalog, at: 4) == [])
    #expect(try lab.migrate(catalog).changedAnything == false)
  }

  /// Each version is one that the app opens.
  @Test(arguments: [2, 3]) func stopsOnTheWay(_ version: Int) throws {
    try lab.sample(Samples.room + "/notes-1.db")
    let catalog = try lab.catalog(.room, in: Self.migrations)
    _ = try lab.migrate(catalog, to: version)
    try expectVersion(version)
    #expect(try lab.drift(catalog, at: version) == [])
  }

  private func prepare(_ files: [String: String] = [:]) throws {
    try lab.files(files)
    try lab.sample(Samples.room + "/notes-1.db")
  }

  @Test(arguments: [
    (["1_3.sql": "", "2_3.sql": ""], "leads to version 3, too: keep one of them"),
    (["1_2.sql": "", "3_4.sql": ""], "3_4.sql: no file migrates from version 2 to 3"),
    (["1_3.sql": "", "2_4.sql": ""], "2_4.sql: it starts at version 2, inside of 1_3.sql"),
    (["3_2.sql": ""], "leads from a version to a later one"),
    (["1_2.yaml": ""], "room would not run this file"),
    (["4_5.sql": ""], "/schemas has no 5.json: export the schema of version 5"),
    (["1_2.auto.yaml": "delete-tables: [7]"], "1_2.auto.yaml:1:17: a table is a text, not the integer 7"),
    (["2_3.auto.yaml": ""], "the column `body` of the table `note` is in version 2 and not in 3"),
  ])
  func filesThatCannotBe(_ files: [String: String], _ message: String) throws {
    try prepare(files)
    expectFailure(message, code: .catalog) { try lab.catalog(.room) }
  }

  /// `1_3.sql` in the place of two files is one migration.
  @Test func aPairMaySkipVersions() throws {
    try prepare(["1_3_all_at_once.sql": derived(from: 1) + derived(from: 2)])
    let catalog = try lab.catalog(.room)
    #expect(catalog.numbers == [3])
    #expect(try lab.migrate(catalog).to == 3)
    try expectVersion(3)
  }

  /// A failed validation fails the migration, and says what and where; `validate` finds it without a container.
  @Test func aWrongResultIsRefused() throws {
    try prepare(["1_2.sql": "ALTER TABLE note ADD COLUMN pinned TEXT;\nDROP VIEW titles;\n"])
    let error = failure { try lab.migrate(lab.catalog(.room)) }
    #expect(error.code == .verifyFailed)
    let text = error.text.replacing(Samples.room + "/schemas/", with: "")
    #expect(
      text == """
        1_2.sql:1:1: sql: Room would refuse this database as version 2:
          table note: column pinned: affinity INTEGER expected, found TEXT (2.json:31)
          table note: column pinned: NOT NULL expected, found nullable (2.json:31)
          table note: column pinned: default 0 expected, found none (2.json:31)
          table tag: missing (2.json:83)
          view titles: missing (2.json:164)
        """, "\(text)")
    try expectVersion(1)
    let found = try MigrationValidation.run(lab.directory("migrations"), tool: .room, lab.configuration)
    #expect(found.problems.map(\.code) == [.verifyFailed])
    #expect(
      found.problems.first?.message.contains(
        "1_2.sql:1:1: the empty database of version 1: Room would refuse") == true, "\(found.problems)")
  }

  /// A schema that was never committed, of a version that only lies between two others.
  @Test func aMissingSchema() throws {
    try prepare(["1_2.sql": derived(from: 1), "2_3.sql": derived(from: 2)])
    for version in [1, 3] {
      let bytes = try Samples.bytes("\(Samples.room)/schemas/\(version).json")
      try lab.migration("schemas/\(version).json", String(decoding: bytes, as: UTF8.self))
    }
    let tool = MigrationTool(.room, database: "notes", schemas: lab.directory("migrations/schemas"))
    let found = try MigrationValidation.run(lab.directory("migrations"), tool: tool, lab.configuration)
    #expect(found.problems.isEmpty, "\(found.problems)")
    expectFailure("1_2.sql:1:1: schemas has no 2.json: export the schema") {
      try lab.migrate(lab.catalog(tool), to: 2)
    }
    #expect(try lab.migrate(lab.catalog(tool)).to == 3)
    try expectVersion(3)
    // Room derives a migration from both of its schemas.
    try lab.removeMigration("2_3.sql")
    try lab.migration("2_3.auto.yaml", "")
    expectFailure("2_3.auto.yaml:1:1: schemas has no 2.json") { try lab.catalog(tool) }
    try lab.removeMigration("2_3.auto.yaml")
    expectFailure("1_2.sql:1:1: schemas has no 2.json") { try lab.catalog(tool) }
  }

  @Test func aVersionThatNoFileLeadsFrom() throws {
    try prepare([
      "2_3.auto.yaml":
        "rename-tables: {folder: notebook}\nrename-columns: {note: {body: text}, note_fts: {body: text}}"
    ])
    expectFailure(
      "the file migrates from version 2, and the database has version 1: no file leads there",
      code: .stepFailed
    ) { try lab.migrate(lab.catalog(.room)) }
  }

  /// Violations that were there are not new ones; but Room refuses them after it recreates a table.
  @Test func foreignKeys() throws {
    try prepare([:])
    let catalog = try lab.catalog(.room, in: Self.migrations)
    _ = try lab.migrate(catalog, to: 3)
    try lab.change("PRAGMA foreign_keys = OFF; UPDATE note SET notebook_id = 'nowhere' WHERE id = 7")
    let report = try lab.migrate(catalog)
    #expect(
      report.migrations.flatMap(\.notes).contains { $0.contains("references to missing rows, as before") })
    let step = try #require(catalog.migrations[1].toolSQL?.room)
    let target = try #require(step.target)
    expectFailure("the foreign keys of the table note refer to missing rows of notebook (1 rows)") {
      try target.fresh(lab.configuration).writeWithoutTransaction { (db: Database) throws -> Void in
        try db.execute(sql: "INSERT INTO note (title, notebook_id) VALUES ('x', 'nowhere')")
        try step.finish(db)
      }
    }
  }

  @Test func baselineWritesTheHashOfAValidSchemaOnly() throws {
    try prepare([:])
    let catalog = try lab.catalog(.room, in: Self.migrations)
    try lab.change("DELETE FROM room_master_table")
    try lab.baseline(0, catalog)
    try expectVersion(1)
    expectFailure("table notebook: missing", code: .verifyFailed) { try lab.baseline(3, catalog) }
    try expectVersion(1)
  }

  @Test func withoutADatabaseNothingIsDone() throws {
    let report = try lab.migrate(lab.catalog(.room, in: Self.migrations))
    #expect(report.to == 4 && report.migrations.allSatisfy { $0.missingDatabases == ["notes"] })
  }

  /// Statements that another tool's files must not have are refused here, too.
  @Test(arguments: [
    ("ATTACH 'x' AS y;", "ATTACH"), ("COMMIT;", "transaction"), ("SELECT nonsense;", "no such column"),
  ])
  func statements(_ sql: String, _ message: String) throws {
    try prepare(["1_2.sql": sql])
    expectFailure(message, start: "1_2.sql:1:1: ", code: .sql) { try lab.migrate(lab.catalog(.room)) }
  }

  @Test func theCheckOfAMigration() throws {
    try lab.sample(Samples.room + "/notes-1.db")
    let steps = { (column: String) in
      """
      steps:
        - sql:
            database: notes
            destructive: the view is made again
            up: |
              ALTER TABLE note ADD COLUMN pinned \(column);
              CREATE TABLE tag (`id` INTEGER NOT NULL, `label` TEXT NOT NULL, PRIMARY KEY(`id`));
              CREATE UNIQUE INDEX index_tag_label ON tag (label);
              DROP VIEW titles;
              CREATE VIEW `titles` AS SELECT id, title FROM note WHERE pinned = 0;
              UPDATE room_master_table SET identity_hash = '\((try? Samples.schema(2).identityHash) ?? "")' WHERE id = 42;
              PRAGMA user_version = 2;
      irreversible: true
      verify:
        - room: {database: notes, schema: 2.json}
      """
    }
    try lab.migration("0001_pinned/2.json", Samples.text(Samples.room + "/schemas/2.json"))
    try lab.migration("0001_pinned/migration.yaml", steps("INTEGER NOT NULL DEFAULT 1"))
    try lab.baseline(0)
    let error = failure { try lab.migrate() }
    #expect(error.code == .verifyFailed, "\(error.text)")
    #expect(error.text.contains("table note: column pinned: default 0 expected, found 1"), "\(error.text)")
    try lab.migration("0001_pinned/migration.yaml", steps("INTEGER NOT NULL DEFAULT 0"))
    #expect(failure { try lab.migrate() }.text == "no error")
    try lab.migration(
      "0002_x.yaml",
      "steps:\n  - defaults.set: {values: {a: 1}}\nverify:\n  - room: {database: notes, schema: 2.json}\n")
    expectFailure("make the migration a directory") { try lab.catalog() }
  }

  /// Drydock's own migration of a database of Room, which refuses a schema that it does not know.
  private func migrate(_ sql: String) throws -> (code: DrydockError.Code?, text: String) {
    try Lab.with { lab in
      try lab.database(
        Lab.oldDatabase,
        """
        CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT);
        CREATE TABLE room_master_table (id INTEGER PRIMARY KEY, identity_hash TEXT);
        INSERT INTO room_master_table VALUES (42, 'f00d');
        INSERT INTO task VALUES (1, 'sweep');
        """)
      try lab.baseline(0)
      try lab.migration("0001_a.sql", sqlFile(sql, "irreversible"))
      let error = failure { try lab.migrate() }
      if error.code != nil { #expect(try lab.history()?.version == 0) }
      return error
    }
  }

  @Test func aChangeOfTheSchemaIsRefused() throws {
    let error = try migrate("ALTER TABLE task ADD COLUMN done INTEGER;")
    #expect(error.code == .foreignSchema)
    #expect(error.text.hasPrefix("0001_a.sql:4:1: the database is Room's"), "\(error.text)")
    #expect(error.text.contains("room_master_table.identity_hash"))
  }

  @Test func rowsAndTheNewHashAreFine() throws {
    #expect(try migrate("UPDATE task SET title = 'x' WHERE id = 1;").code == nil)
    let sql = """
      ALTER TABLE task ADD COLUMN done INTEGER;
      UPDATE room_master_table SET identity_hash = 'beef' WHERE id = 42;
      """
    #expect(try migrate(sql).text == "no error")
  }
}
