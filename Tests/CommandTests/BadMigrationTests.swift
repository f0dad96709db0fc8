import Foundation
import TestSupport
import Testing

@Suite("Bad migrations are refused, and nothing changes")
struct BadMigrationTests {
  /// A file to add to the sample app's four migrations, and what is said about it.
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var text: String
    var words: [String]
    var exit: Int32 = 4
    var testDescription: String { "\(name): \(text.prefix(60))" }
  }

  static let files: [Case] = [
    Case(
      name: "0007_x.yaml", text: "steps:\n  - defaults.renam: {keys: {a: b}}\n",
      words: ["0007_x.yaml:2:5", "`defaults.renam`", "did you mean `defaults.rename`?"]),
    Case(
      name: "0007_x.yaml", text: "steps:\n  - files.move: {form: a, to: b}\n",
      words: ["0007_x.yaml:2:18", "`form`", "did you mean `from`?"]),
    Case(
      name: "0007_x.yaml", text: "stpes:\n  - files.move: {from: a, to: b}\n",
      words: ["0007_x.yaml:1:1", "`stpes`", "did you mean `steps`?"]),
    Case(
      name: "0007_x.yaml", text: "steps:\n  - files.move: {from: a}\n", words: ["0007_x.yaml:2:", "`to`"]),
    Case(
      name: "0007_x.yaml",
      text: "steps:\n  - defaults.rename:\n      keys: {a: b}\n      if-exists: replce\n",
      words: ["0007_x.yaml:4:18", "replce", "did you mean `replace`?"]),
    Case(
      name: "0007_x.yaml", text: "steps:\n  - files.delete: {path: [Documents]}\n",
      words: ["0007_x.yaml:2:", "destructive"]),
    Case(name: "0007_x.yaml", text: "steps:\n  - [\n", words: ["0007_x.yaml:"]),
    Case(
      name: "0007_x.yaml", text: "steps:\n  - defaults.set: {values: {a: 1, a: 2}}\n",
      words: ["0007_x.yaml:2:29", "duplicate key `a`"]),
    Case(
      name: "0007_x.yaml", text: "steps:\n  - files.move: {from: ../../etc, to: b}\n",
      words: ["0007_x.yaml:2:24", "not a path below a container"]),
    Case(name: "0007_x.sql", text: "-- migrate:up\nSELECT 1;\n", words: ["0007_x.sql", "drydock: database"]),
    Case(name: "0004_again.yaml", text: "steps: []\n", words: ["number 4", "0004_again", "0004_task_names"]),
    Case(name: "0008_gap.yaml", text: "steps: []\n", words: ["number 7 is missing", "0008_gap"]),
    Case(name: "five.yaml", text: "steps: []\n", words: ["five.yaml", "0001_name.yaml"]),
  ]

  @Test("What is in a file, its name and its number", arguments: files)
  func file(_ item: Case) throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.write("Migrations/" + item.name, item.text)
      try sandbox.expectRefusal(["validate"], exit: item.exit, item.words)
      try sandbox.expectRefusal(["status", "Notes"], exit: item.exit, item.words)
      try sandbox.expectRefusal(["migrate", "Notes", "--dry-run"], exit: item.exit, item.words)
      try sandbox.expectRefusal(["migrate", "Notes"], exit: item.exit, item.words)
    }
  }

  @Test("A missing number")
  func missing() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.remove("Migrations/0002_rename_settings.yaml")
      for arguments in [["validate"], ["migrate", "Notes"]] {
        try sandbox.expectRefusal(arguments, exit: 4, ["number 2 is missing", "0003_move_database"])
      }
    }
  }

  @Test("A migration that was edited, or removed, after it was applied")
  func edited() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.succeed("migrate", "Notes", "--to", "3")
      let file = "Migrations/0002_rename_settings.yaml"
      let text = try sandbox.read(file)
      try sandbox.write(file, bytes: text + Array("# a thought\n".utf8))
      for arguments in [
        ["migrate", "Notes"], ["migrate", "Notes", "--dry-run"], ["migrate", "Notes", "--to", "3"],
      ] {
        try sandbox.expectRefusal(
          arguments, exit: 4, ["0002_rename_settings", "was modified after it was applied"])
      }
      #expect(try sandbox.drydock("status", "Notes").exitCode == 4)
      try sandbox.write(file, bytes: text)
      try sandbox.remove("Migrations/0006_repair_theme.yaml")
      try sandbox.remove("Migrations/0005_token_to_vault.yaml")
      try sandbox.remove("Migrations/0004_task_names")
      try sandbox.remove("Migrations/0003_move_database.yaml")
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 4, ["3", "move_database"])
    }
  }

  @Test("A version that nothing knows, and one that the migrations do not have")
  func unknownVersion() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.run(sandbox.app, "touch-settings", sandbox("Notes"), "dataSchemaVersion", "9")
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 4, ["9", "6"])
      try sandbox.remove("Notes/Documents/Notes/About dataSchemaVersion.md")
      try sandbox.run(sandbox.app, "touch-settings", sandbox("Notes"), "dataSchemaVersion", "soon")
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 4, ["dataSchemaVersion"])
      let text = String(decoding: try sandbox.read("drydock.yaml"), as: UTF8.self)
      try sandbox.write("drydock.yaml", text.replacing(/version-markers:.*/, with: ""))
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"], ["status", "Notes"]] {
        try sandbox.expectRefusal(arguments, exit: 4, ["version", "baseline CONTAINER --to N"])
      }
    }
  }

  @Test("SQL that fails in the middle leaves nothing of what came before it")
  func sql() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.write(
        "Migrations/0007_sql.sql",
        """
        -- drydock: database notes
        -- migrate:up
        UPDATE account SET balance = 0 WHERE id > 0;
        CREATE TABLE half (id INTEGER PRIMARY KEY);
        INSERT INTO nowhere VALUES (1);
        """)
      for arguments in [["migrate", "Notes"], ["migrate", "Notes", "--dry-run"]] {
        try sandbox.expectRefusal(arguments, exit: 1, ["0007_sql.sql:5:1", "nowhere"])
      }
      let check = try sandbox.run(sandbox.app, "check", sandbox("Notes/" + Sandbox.oldDatabase))
      #expect(check.contains("all accounts together 200000"))
      #expect(try sandbox.settings().contains("user_name = Ada Lovelace"))
      // The four before it run without it.
      try sandbox.succeed("migrate", "Notes", "--to", "4")
    }
  }

  @Test("What would break the database's own rules is refused")
  func integrity() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 6)
      try sandbox.write(
        "Migrations/0007_sql.sql",
        "-- drydock: database notes\n-- migrate:up\nUPDATE task SET projectId = 99 WHERE id = 1;\n")
      try sandbox.expectRefusal(
        ["migrate", "Notes"], exit: 1, ["0007_sql.sql:3:1", "missing rows of project"])
      try sandbox.write(
        "Migrations/0007_sql.sql", "-- drydock: database notes\n-- migrate:up\nDELETE FROM task;\n")
      try sandbox.expectRefusal(
        ["migrate", "Notes"], exit: 1, ["0007_sql.sql:3:1", "DELETE without WHERE", "destructive"])
    }
  }

  @Test("A check that does not hold, before and after")
  func checks() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 6)
      try sandbox.write(
        "Migrations/0007_x.yaml",
        """
        steps:
          - defaults.set: {values: {theme: purple}, if-exists: replace}
        verify:
          - defaults: {key: theme, one-of: [dark, light]}

        """)
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 1, ["0007_x.yaml:4:5", "theme", "purple"])
      try sandbox.write(
        "Migrations/0007_x.yaml",
        """
        check:
          - sql: {database: notes, query: SELECT count(*) FROM task, equals: 7}
        steps:
          - defaults.set: {values: {theme: dark}, if-exists: replace}

        """)
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 1, ["0007_x.yaml:2:5", "5", "7"])
    }
  }

  @Test("`no` and `12:30` are text, and it is said")
  func yamlSurprises() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 6)
      try sandbox.write(
        "Migrations/0007_x.yaml",
        "steps:\n  - defaults.set: {values: {answer: no, alarm: 12:30, country: NO, really: true, octal: 0777}}\n"
      )
      let result = try sandbox.drydock("migrate", "Notes")
      #expect(result.succeeded, "\(result)")
      for (place, text) in [("2:37", "no"), ("2:48", "12:30"), ("2:64", "NO")] {
        let note = result.errors.split(separator: "\n").first { $0.contains("0007_x.yaml:\(place)") }
        #expect(note?.contains(text) == true && note?.contains("text") == true, "\(place) \(result.errors)")
      }
      let keys = ["answer", "alarm", "country", "really", "octal"]
      let plist = try sandbox.run(
        Tools.system("python3"), "-c",
        "import plistlib,sys; p=plistlib.load(open(sys.argv[1],'rb')); print([p[k] for k in sys.argv[2:]])",
        sandbox("Notes/" + Sandbox.settings), keys[0], keys[1], keys[2], keys[3], keys[4])
      #expect(plist == "['no', '12:30', 'NO', True, 777]\n")
    }
  }

  @Test("A map with `yes` and `no` does not fit a Bool, and the message says how to write it")
  func boolMap() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 6)
      try sandbox.run(sandbox.app, "touch-settings", sandbox("Notes"), "sync", "true")
      try sandbox.write(
        "Migrations/0007_x.yaml",
        "steps:\n  - defaults.convert: {key: sync, map: {yes: always, no: never}}\n")
      try sandbox.expectRefusal(["migrate", "Notes"], exit: 1, ["0007_x.yaml:2:5", "sync", "true", "yes"])
      try sandbox.write(
        "Migrations/0007_x.yaml",
        "steps:\n  - defaults.convert: {key: sync, map: {true: always, false: never}}\n")
      try sandbox.succeed("migrate", "Notes")
      #expect(try sandbox.settings().contains("sync = always"))
    }
  }
}
