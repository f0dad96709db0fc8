import AppFrameworks
import Testing

/// The statements are those of Room's `AutoMigrationWriter`, in its order, written here by hand.
@Suite struct RoomAutoMigrationTests {
  private func derive(_ from: RoomSchema, _ to: RoomSchema, _ spec: String = "") throws -> RoomAutoMigration {
    try RoomAutoMigration(from: from, to: to, RoomAutoSpec(Array(spec.utf8), file: "1_2.auto.yaml"))
  }

  @Test func simpleChanges() throws {
    let derived = try derive(Samples.schema(1), Samples.schema(2))
    #expect(
      derived.statements == [
        "DROP VIEW titles", "ALTER TABLE `note` ADD COLUMN `pinned` INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE IF NOT EXISTS `tag` (`id` INTEGER NOT NULL, `label` TEXT NOT NULL, PRIMARY KEY(`id`))",
        "CREATE UNIQUE INDEX IF NOT EXISTS `index_tag_label` ON `tag` (`label`)",
        "CREATE VIEW `titles` AS SELECT id, title FROM note WHERE pinned = 0",
      ])
    #expect(derived.tablesWithForeignKeys.isEmpty)
  }

  @Test func recreatedTables() throws {
    let spec = """
      rename-tables: {folder: notebook}
      rename-columns: {note: {body: text}, note_fts: {body: text}}
      """
    let derived = try derive(Samples.schema(2), Samples.schema(3), spec)
    #expect(
      derived.statements == [
        "DROP VIEW titles", "ALTER TABLE `folder` RENAME TO `notebook`",
        "CREATE TABLE IF NOT EXISTS `_new_note` (`id` INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, `title` TEXT NOT NULL, "
          + "`text` TEXT, `pinned` INTEGER NOT NULL DEFAULT 0, `notebook_id` TEXT, FOREIGN KEY(`notebook_id`) REFERENCES "
          + "`notebook`(`id`) ON UPDATE NO ACTION ON DELETE SET NULL )",
        "INSERT INTO `_new_note` (`id`,`title`,`text`,`pinned`) SELECT `id`,`title`,`body`,`pinned` FROM `note`",
        "DROP TABLE `note`", "ALTER TABLE `_new_note` RENAME TO `note`",
        "CREATE INDEX IF NOT EXISTS `index_note_title` ON `note` (`title`)",
        "CREATE INDEX IF NOT EXISTS `index_note_notebook_id` ON `note` (`notebook_id`)",
        "DROP TABLE `note_fts`",
        "CREATE VIRTUAL TABLE IF NOT EXISTS `note_fts` USING FTS4(`title` TEXT, `text` TEXT, tokenize=unicode61, "
          + "content=`note`)",
        "INSERT INTO `note_fts` (`title`,`text`,`docid`) SELECT `title`,`text`,`rowid` FROM `note`",
        "CREATE VIEW `titles` AS SELECT id, title FROM note WHERE pinned = 0",
      ])
    #expect(derived.tablesWithForeignKeys.map(\.text) == ["note"])
  }

  /// What two schemas leave open is an error at the spec that says which entry decides it.
  @Test(arguments: [
    (
      "rename-columns: {note: {body: text}, note_fts: {body: text}}",
      "1_2.auto.yaml:1:1: the table `folder` is in version 2 and not in 3: say whether it was deleted or renamed: "
        + "`delete-tables: [folder]`, or `rename-tables: {folder: NEW}`"
    ),
    (
      "rename-tables: {folder: notebook}",
      "the column `body` of the table `note` is in version 2 and not in 3: say whether it was deleted or renamed: "
        + "`delete-columns: {note: [body]}`, or `rename-columns: {note: {body: NEW}}`"
    ),
    (
      "rename-tables: {folder: shelf}\nrename-columns: {note: {body: text}, note_fts: {body: text}}",
      "1_2.auto.yaml:1:17: version 3 has no table `shelf`"
    ),
    ("rename-columns: {note: {body: txt}}", "the table `note` of version 3 has no column `txt`"),
    ("delete-tables: [nope]", "1_2.auto.yaml:1:17: version 2 has no table `nope`"),
    (
      "delete-tables: [tag]\nrename-tables: {folder: notebook}\nrename-columns: {note: {body: text}, note_fts: {body: text}}",
      "`delete-tables` names `tag`, and version 3 has that table"
    ),
    ("delete-columns: {note: [nope]}", "the table `note` of version 2 has no column `nope`"),
    ("rename-table: {folder: notebook}", "in an auto-migration; did you mean `rename-tables`?"),
    ("delete-tables: folder", "`delete-tables` is a list"),
  ])
  func specErrors(_ spec: String, _ message: String) throws {
    expectFailure(message) { try derive(Samples.schema(2), Samples.schema(3), spec) }
  }

  /// A schema of one table or more, whose statements are not run.
  private func schema(_ version: Int, _ tables: String...) throws -> RoomSchema {
    let text =
      "{\"formatVersion\": 1, \"database\": {\"version\": \(version), \"identityHash\": \"h\", \"entities\": ["
      + tables.joined(separator: ", ") + "]}}"
    return try RoomSchema(Array(text.utf8), file: "\(version).json")
  }

  private func table(_ name: String, _ columns: [String], _ more: String = "") -> String {
    let fields = columns.map { column in
      let words = column.split(separator: " ", maxSplits: 2).map(String.init)
      return
        "{\"columnName\": \"\(words[0])\", \"affinity\": \"\(words[1])\"\(words.count > 2 ? ", " + words[2] : "")}"
    }
    return "{\"tableName\": \"\(name)\", \"createSql\": \"CREATE ${TABLE_NAME}\", \"fields\": ["
      + fields.joined(separator: ", ") + "], \"primaryKey\": {\"columnNames\": [\"a\"]}\(more)}"
  }

  private static let copy = ["DROP TABLE `t`", "ALTER TABLE `_new_t` RENAME TO `t`"]

  @Test func columns() throws {
    let old = try schema(1, table("t", ["a TEXT", "b TEXT"]))
    #expect(try derive(old, schema(2, table("t", ["b TEXT", "a TEXT"]))).statements == [])
    #expect(
      try derive(old, schema(2, table("t", ["a TEXT", "b TEXT", "c REAL"]))).statements
        == ["ALTER TABLE `t` ADD COLUMN `c` REAL DEFAULT NULL"])
    let strict = try schema(2, table("t", ["a TEXT", "b TEXT", "c REAL \"notNull\": true"]))
    expectFailure("the new column `c` of the table `t` is NOT NULL and has no default") {
      try derive(old, strict)
    }
    // Another affinity, NOT NULL or default is a new table.
    for column in ["b INTEGER", "b TEXT \"notNull\": true", #"b TEXT "defaultValue": "'x'""#] {
      #expect(
        try derive(old, schema(2, table("t", ["a TEXT", column]))).statements
          == ["CREATE _new_t", "INSERT INTO `_new_t` (`a`,`b`) SELECT `a`,`b` FROM `t`"] + Self.copy)
    }
    // With a column added and another deleted, Room adds it to the old table first.
    #expect(
      try derive(old, schema(2, table("t", ["a TEXT", "c TEXT"])), "delete-columns: {t: [b]}").statements
        == [
          "ALTER TABLE `t` ADD COLUMN `c` TEXT DEFAULT NULL", "CREATE _new_t",
          "INSERT INTO `_new_t` (`a`) SELECT `a` FROM `t`",
        ] + Self.copy)
    let two = try derive(
      old, schema(2, table("t", ["x TEXT", "y TEXT"])), "rename-columns: {t: {a: x, b: y}}")
    #expect(
      two.statements == ["CREATE _new_t", "INSERT INTO `_new_t` (`x`,`y`) SELECT `a`,`b` FROM `t`"]
        + Self.copy)
  }

  @Test func keysAndIndexes() throws {
    let old = try schema(1, table("t", ["a TEXT"]), table("u", ["a TEXT"]))
    let index = { (name: String, more: String) in
      ", \"indices\": [{\"name\": \"\(name)\", \"columnNames\": [\"a\"], \"createSql\": \"INDEX ON ${TABLE_NAME}\"\(more)}]"
    }
    let indexed = try schema(2, table("t", ["a TEXT"], index("index_t_a", "")), table("u", ["a TEXT"]))
    let recreated = ["CREATE _new_t", "INSERT INTO `_new_t` (`a`) SELECT `a` FROM `t`"] + Self.copy
    #expect(try derive(old, indexed).statements == recreated + ["INDEX ON t"])
    #expect(try derive(indexed, old).statements == recreated)
    // No orders are ascending ones.
    let ordered = try schema(
      3, table("t", ["a TEXT"], index("index_t_a", #", "orders": ["ASC"]"#)), table("u", ["a TEXT"]))
    #expect(try derive(indexed, ordered).statements == [])
    let key = { (other: String) in
      ", \"foreignKeys\": [{\"table\": \"\(other)\", \"onDelete\": \"CASCADE\", \"onUpdate\": \"NO ACTION\", "
        + #""columns": ["a"], "referencedColumns": ["a"]}]"#
    }
    let keyed = try schema(2, table("t", ["a TEXT"], key("u")), table("u", ["a TEXT"]))
    let derived = try derive(old, keyed)
    #expect(derived.statements == recreated && derived.tablesWithForeignKeys.map(\.text) == ["t"])
    // A renamed parent recreates the child.
    let moved = try schema(3, table("t", ["a TEXT"], key("w")), table("w", ["a TEXT"]))
    #expect(
      try derive(keyed, moved, "rename-tables: {u: w}").statements == ["ALTER TABLE `u` RENAME TO `w`"]
        + recreated)
    // A renamed table that changes is created under its new name.
    let renamed = try schema(3, table("t", ["a TEXT"], key("w")), table("w", ["a INTEGER"]))
    #expect(
      try derive(keyed, renamed, "rename-tables: {u: w}").statements == recreated + [
        "CREATE _new_w", "INSERT INTO `_new_w` (`a`) SELECT `a` FROM `u`", "DROP TABLE `u`",
        "ALTER TABLE `_new_w` RENAME TO `w`",
      ])
  }

  @Test func deletedTablesAndTakenNames() throws {
    let old = try schema(1, table("t", ["a TEXT"]), table("u", ["a TEXT"]))
    #expect(
      try derive(old, schema(2, table("t", ["a TEXT"])), "delete-tables: [u]").statements == [
        "DROP TABLE `u`"
      ])
    let taken = try schema(2, table("t", ["a REAL"]), table("u", ["a TEXT"]), table("_new_t", ["a TEXT"]))
    expectFailure("has a table `_new_t`, and Room needs that name") { try derive(old, taken) }
  }

  /// A full-text table with its own content is copied, and comes last.
  @Test func fullTextWithContent() throws {
    let options = { (tokenizer: String) in
      ", \"ftsVersion\": \"FTS4\", \"ftsOptions\": {\"tokenizer\": \"\(tokenizer)\"}, \"contentSyncTriggers\": []"
    }
    let old = try schema(1, table("f", ["a TEXT"], options("simple")), table("t", ["a TEXT"]))
    let new = try schema(2, table("f", ["a TEXT"], options("porter")), table("t", ["a REAL"]))
    #expect(
      try derive(old, new).statements == [
        "CREATE _new_t", "INSERT INTO `_new_t` (`a`) SELECT `a` FROM `t`", "DROP TABLE `t`",
        "ALTER TABLE `_new_t` RENAME TO `t`", "CREATE _new_f",
        "INSERT INTO `_new_f` (`a`) SELECT `a` FROM `f`",
        "DROP TABLE `f`", "ALTER TABLE `_new_f` RENAME TO `f`",
      ])
  }
}
