import DrydockErrors
import MigrationEngine
import Testing

/// Databases of Android's Room, which refuses a schema that it does not know.
@Suite struct RoomTests {
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
