extension Mutation {
  /// All that are tried: for each migration, what can be wrong with what it does.
  static let all: [Mutation] = settings + database + vault + widget

  private static let settings = [
    Mutation(
      "0001_default_settings", "a step skipped", [(", fontSize: 14", "")], finds: "fontSize",
      by: "reinstalled"),
    Mutation(
      "0001_default_settings", "another value", [("fontSize: 14", "fontSize: 41")], finds: "fontSize",
      by: "reinstalled"),
    Mutation(
      "0001_default_settings", "another type", [("fontSize: 14", "fontSize: \"14\"")], finds: "fontSize",
      by: "reinstalled"),
    Mutation(
      "0001_default_settings", "overwrites where it should keep",
      [("set-default:\n      values:", "set:\n      if-exists: replace\n      values:")], finds: "fontSize",
      by: "font-size-of-a-beta"),
    Mutation(
      "0002_rename_settings", "a step skipped", [(", user_email: email", "")], finds: "email",
      by: "no-database"),
    Mutation(
      "0002_rename_settings", "two names swapped",
      [("{user_name: username, user_email: email}", "{user_name: email, user_email: username}")],
      finds: "username", by: "no-database"),
    Mutation(
      "0002_rename_settings", "two values swapped",
      [("{true: dark, false: light}", "{true: light, false: dark}")], finds: "theme", by: "no-database"),
    Mutation(
      "0002_rename_settings", "keeps where it should overwrite",
      [("if-exists: replace ", "if-exists: keep ")], finds: "theme", by: "no-database"),
    Mutation(
      "0006_repair_theme", "two values swapped",
      [("{true: dark, false: light,", "{true: light, false: dark,")], finds: "theme", by: "2-as-shipped"),
    Mutation(
      "0006_repair_theme", "what it does not know is deleted", [("unmapped: keep", "unmapped: delete")],
      finds: "theme", by: "own-theme"),
  ]

  private static let database = [
    Mutation(
      "0003_move_database", "a step skipped",
      [("from: Documents/database.sqlite", "from: Documents/database.sqlit")],
      finds: "Documents/database.sqlite", by: "2-as-shipped"),
    Mutation(
      "0003_move_database", "another place",
      [("to: Library/Application Support/", "to: Library/Application Support/Data/")],
      finds: "the database notes was there before, and is gone now", by: "2-as-shipped"),
    Mutation(
      "0004_task_names", "a step skipped",
      [
        (
          "  - files.move: {from: Documents/database.sqlite, to: Library/Application Support/database.sqlite}\n",
          ""
        )
      ],
      in: "migration.yaml", finds: "Documents/database.sqlite", by: "marker-before-move"),
    Mutation(
      "0004_task_names", "the values of a column lost",
      [("notes TEXT;", "notes TEXT;\nUPDATE task SET isCompleted = 0 WHERE id > 0;")], in: "names.sql",
      finds: "isCompleted", by: "v3"),
    Mutation(
      "0004_task_names", "a column truncated",
      [("notes TEXT;", "notes TEXT;\nUPDATE task SET title = substr(title, 1, 8) WHERE id > 0;")],
      in: "names.sql", finds: "title", by: "v3"),
    Mutation(
      "0004_task_names", "another default", [("notes TEXT;", "notes TEXT DEFAULT '';")], in: "names.sql",
      finds: "notes", by: "v3"),
    Mutation(
      "0004_task_names", "rows lost that no check of the migration counts",
      [("notes TEXT;", "notes TEXT;\nDELETE FROM project WHERE id = 2;")], in: "names.sql", finds: "project",
      by: "v3"),
  ]

  private static let vault = [
    Mutation(
      "0005_token_to_vault", "a step skipped",
      [
        ("key: auth_token\n", "key: auth_tokem\n"),
        ("verify:\n  - defaults: {key: auth_token, exists: false}\n", ""),
      ], finds: "auth", by: "2-as-shipped"),
    Mutation(
      "0005_token_to_vault", "another accessibility", [("afterFirstUnlock ", "whenUnlocked ")],
      finds: "com.example.notes/auth", by: "2-as-shipped"),
    Mutation(
      "0005_token_to_vault", "another name", [("account: auth\n", "account: token\n")],
      finds: "com.example.notes/", by: "2-as-shipped"),
  ]

  private static let widget = [
    Mutation(
      "0007_widget", "a step skipped", [("keys: [theme, fontSize]", "keys: [theme]")], in: "migration.yaml",
      finds: "fontSize", by: "own-theme"),
    Mutation(
      "0007_widget", "overwrites where it should keep", [("if-exists: keep", "if-exists: replace")],
      in: "migration.yaml", finds: "theme", by: "widget-before-app"),
    Mutation(
      "0007_widget", "a flag lost", [("Thumbnails, excluded: true}", "Thumbnails, excluded: false}")],
      in: "migration.yaml", finds: "Thumbnails", by: "widget-before-app"),
    Mutation(
      "0007_widget", "another protection", [("completeUntilFirstUserAuthentication", "complete")],
      in: "migration.yaml", finds: "Thumbnails", by: "widget-before-app"),
    // A statement without one is refused before anything runs.
    Mutation(
      "0007_widget", "a WHERE too wide", [("WHERE ZMOOD = 'ok'", "WHERE Z_PK > 0")], in: "moods.sql",
      finds: "ZMOOD", by: "v6"),
    Mutation(
      "0007_widget", "another value", [("'content', Z_OPT = Z_OPT + 1", "'great', Z_OPT = Z_OPT + 1")],
      in: "moods.sql", finds: "ZMOOD", by: "v6"),
    Mutation(
      "0007_widget", "Core Data's counter forgotten", [(", Z_OPT = Z_OPT + 1", "")], in: "moods.sql",
      finds: "Z_OPT", by: "v6"),
    Mutation(
      "0007_widget", "the down step forgets something", [(", Z_OPT = Z_OPT - 1", "")], in: "moods.sql",
      finds: "Z_OPT", by: "v6"),
  ]
}
