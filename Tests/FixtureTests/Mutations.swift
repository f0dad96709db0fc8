extension Mutation {
  /// All that are tried: for each migration, what can be wrong with what it does.
  static let all: [Mutation] = settings + database + vault + widget

  private static let settings = [
    Mutation("0001_default_settings", "a step skipped", [(", fontSize: 14", "")], finds: "fontSize"),
    Mutation("0001_default_settings", "another value", [("fontSize: 14", "fontSize: 41")], finds: "fontSize"),
    Mutation(
      "0001_default_settings", "another type", [("fontSize: 14", "fontSize: \"14\"")], finds: "fontSize"),
    Mutation(
      "0001_default_settings", "overwrites where it should keep",
      [("set-default:\n      values:", "set:\n      if-exists: replace\n      values:")], finds: "fontSize"),
    Mutation("0002_rename_settings", "a step skipped", [(", user_email: email", "")], finds: "email"),
    Mutation(
      "0002_rename_settings", "two names swapped",
      [("{user_name: username, user_email: email}", "{user_name: email, user_email: username}")],
      finds: "username"),
    Mutation(
      "0002_rename_settings", "two values swapped",
      [("{true: dark, false: light}", "{true: light, false: dark}")], finds: "theme"),
    Mutation(
      "0002_rename_settings", "keeps where it should overwrite",
      [("if-exists: replace ", "if-exists: keep ")], finds: "theme"),
    Mutation(
      "0006_repair_theme", "two values swapped",
      [("{true: dark, false: light,", "{true: light, false: dark,")], finds: "theme"),
    Mutation(
      "0006_repair_theme", "what it does not know is deleted", [("unmapped: keep", "unmapped: delete")],
      finds: "theme"),
  ]

  private static let database = [
    Mutation(
      "0003_move_database", "a step skipped",
      [
        ("to: Library/Application Support/database.sqlite", "to: Documents/database.sqlite, if-missing: skip")
      ],
      finds: "Documents/database.sqlite"),
    Mutation(
      "0003_move_database", "another place",
      [("to: Library/Application Support/", "to: Library/Application Support/Data/")],
      finds: "Library/Application Support"),
    Mutation(
      "0003_move_database", "the sidecar forgotten",
      [
        (
          "steps:\n",
          "steps:\n  - files.delete: {paths: Documents/database.sqlite-wal, destructive: it looks like a leftover}\n"
        )
      ], finds: "database.sqlite"),
    Mutation(
      "0004_task_names", "a step skipped",
      [
        (
          "  - files.move: {from: Documents/database.sqlite, to: Library/Application Support/database.sqlite}\n",
          ""
        )
      ], in: "migration.yaml", finds: "Documents/database.sqlite"),
    Mutation(
      "0004_task_names", "the values of a column lost",
      [
        (
          "ALTER TABLE task RENAME COLUMN isDone TO isCompleted;\nALTER TABLE task ADD COLUMN notes",
          "DROP INDEX task_open;\nALTER TABLE task DROP COLUMN isDone;\n"
            + "ALTER TABLE task ADD COLUMN isCompleted INTEGER NOT NULL DEFAULT 0;\n"
            + "CREATE INDEX task_open ON task (dueAt) WHERE isCompleted = 0;\nALTER TABLE task ADD COLUMN notes"
        )
      ], in: "names.sql", finds: "isCompleted"),
    Mutation(
      "0004_task_names", "a column truncated",
      [("notes TEXT;", "notes TEXT;\nUPDATE task SET title = substr(title, 1, 8) WHERE title LIKE '%';")],
      in: "names.sql", finds: "title"),
    Mutation(
      "0004_task_names", "another default", [("notes TEXT;", "notes TEXT DEFAULT '';")], in: "names.sql",
      finds: "notes"),
    Mutation(
      "0004_task_names", "rows lost, and nobody counts them",
      [("notes TEXT;", "notes TEXT;\nDELETE FROM project WHERE id = 2;")],
      in: "names.sql", finds: "project"),
  ]

  private static let vault = [
    Mutation(
      "0005_token_to_vault", "a step skipped",
      [
        ("key: auth_token\n", "key: auth_tokem\n"), ("  - defaults: {key: auth_token, exists: false}\n", ""),
        ("verify:\n", ""),
      ], finds: "auth"),
    Mutation(
      "0005_token_to_vault", "another accessibility", [("afterFirstUnlock ", "whenUnlocked ")],
      finds: "com.example.notes/auth"),
    Mutation(
      "0005_token_to_vault", "another name", [("account: auth\n", "account: token\n")],
      finds: "com.example.notes/"),
  ]

  private static let widget = [
    Mutation(
      "0007_widget", "a step skipped", [("keys: [theme, fontSize]", "keys: [theme]")], in: "migration.yaml",
      finds: "fontSize"),
    Mutation(
      "0007_widget", "overwrites where it should keep", [("if-exists: keep", "if-exists: replace")],
      in: "migration.yaml", finds: "theme"),
    Mutation(
      "0007_widget", "a flag lost",
      [("Thumbnails, excluded: true}", "Thumbnails, excluded: false}")], in: "migration.yaml",
      finds: "Thumbnails"),
    Mutation(
      "0007_widget", "another protection", [("completeUntilFirstUserAuthentication", "complete")],
      in: "migration.yaml", finds: "Thumbnails"),
    // One that is not there at all is refused before anything runs.
    Mutation(
      "0007_widget", "a WHERE dropped", [("WHERE ZMOOD = 'ok'", "WHERE TRUE")], in: "moods.sql",
      finds: "ZMOOD"),
    Mutation(
      "0007_widget", "two values swapped",
      [
        (
          "SET ZMOOD = 'content', Z_OPT = Z_OPT + 1 WHERE ZMOOD = 'ok'",
          "SET ZMOOD = 'ok', Z_OPT = Z_OPT + 1 WHERE ZMOOD = 'content'"
        )
      ],
      in: "moods.sql", finds: "ZMOOD"),
    Mutation(
      "0007_widget", "Core Data's counter forgotten", [(", Z_OPT = Z_OPT + 1", "")], in: "moods.sql",
      finds: "Z_OPT"),
    Mutation(
      "0007_widget", "the way back forgets something", [(", Z_OPT = Z_OPT - 1", "")], in: "moods.sql",
      finds: "Z_OPT"),
  ]
}
