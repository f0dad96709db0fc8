import Testing

@Suite("Each check of a fixture fails on what is broken in its way") struct SuiteCheckTests {
  private let sandbox: SuiteSandbox
  init() throws { sandbox = try SuiteSandbox() }

  @Test("What is right passes", arguments: [nil, 2])
  func sound(released: Int?) throws {
    try sandbox.makeSound(released: released)
    let found = try sandbox.found().filter { !$0.contains("release: ") }
    #expect(found == [])
  }

  /// A way to break the sound sandbox: a migration that is written anew, and what must be found then, by its beginning
  /// and its end.
  struct Break: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var migration: String, steps: String
    var more = ""
    /// What must be among the findings, as parts of one line.
    var finds: [[String]]
  }

  static let names = """
      - defaults.rename: {keys: {theme: look}}
      - sql: {database: notes, up: "UPDATE task SET title = upper(title) WHERE id = 1", down: "UPDATE task SET title = lower(title) WHERE id = 1"}
    """

  static let breaks = [
    Break(
      testDescription: "a step fails", migration: "0002_names",
      steps: "  - defaults.rename: {keys: {nothing: look}, if-missing: fail}",
      finds: [["new: migration: ", "(0002_names)", "Migrations/0002_names.yaml:2"], ["one: migration: "]]),
    Break(
      testDescription: "a verification fails", migration: "0002_names", steps: names,
      more: "verify:\n  - defaults: {key: look, one-of: [light]}",
      finds: [["one: migration: ", "(0002_names)", "Migrations/0002_names.yaml:5"]]),
    Break(
      testDescription: "a WHERE is wider", migration: "0002_names",
      steps: names.replacing("upper(title) WHERE id = 1", with: "upper(title) WHERE id > 0"),
      finds: [
        [
          "one: golden Documents/notes.sqlite: task, id 2: title", #""b" / "B""#, "(0002_names)",
          "expected/3/notes.sqlite.sql:",
        ]
      ]),
    Break(
      testDescription: "a value is another one", migration: "0001_start",
      steps: "  - defaults.set-default: {values: {theme: light, size: 11}}",
      finds: [["new: golden \(SuiteSandbox.settings): size", "10 / 11", "(0001_start)"]]),
    Break(
      testDescription: "a step is missing", migration: "0002_names",
      steps: names.split(separator: "\n").dropFirst().joined(separator: "\n"),
      finds: [
        ["one: golden \(SuiteSandbox.settings): look", "absent", "(0002_names or 0003_notes)"],
        ["one: golden \(SuiteSandbox.settings): theme", "(0002_names or 0003_notes)"],
      ]),
    Break(
      testDescription: "the way down is wrong", migration: "0002_names",
      steps: names.replacing("lower(title)", with: "'x'"),
      finds: [["one: down Documents/notes.sqlite: task, id 1: title", #""a" / "x""#, "(0002_names)"]]),
    Break(
      testDescription: "the way down fails", migration: "0002_names",
      steps: names.replacing("UPDATE task SET title = lower(title)", with: "UPDATE missing SET title = 1"),
      finds: [["one: down: ", "no such table", "(0002_names)", "Migrations/0002_names.yaml:"]]),
    Break(
      testDescription: "rows are lost", migration: "0003_notes",
      steps: "  - sql: {database: notes, up: DELETE FROM task WHERE done = 1, down: SELECT 1}",
      finds: [
        [
          "one: lost-rows Documents/notes.sqlite: task", "3 rows / 1 rows", "(0003_notes)",
          "0003_notes.yaml:2",
        ]
      ]),
    Break(
      testDescription: "a step has no effect", migration: "0003_notes",
      steps: "  - files.delete: {path: [Documents/nothing], destructive: x}",
      finds: [["all: coverage: ", "files.delete", "(0003_notes)", "Migrations/0003_notes.yaml:2"]]),
    Break(
      testDescription: "a step's database is in no fixture", migration: "0003_notes",
      steps: "  - sql: {database: absent, up: ALTER TABLE a ADD COLUMN b, down: ALTER TABLE a DROP COLUMN b}",
      finds: [["all: coverage: ", "the step sql", "(0003_notes)", "Migrations/0003_notes.yaml:2"]]),
  ]

  @Test("It names place and migration", arguments: breaks)
  func broken(_ broken: Break) throws {
    try sandbox.makeSound(recorded: broken.finds.joined().contains { $0.contains("golden") })
    try sandbox.migration(broken.migration, broken.steps, more: broken.more)
    let found = try sandbox.found()
    for parts in broken.finds {
      #expect(found.contains { line in parts.allSatisfy(line.contains) }, "\(parts)\n\(found)")
    }
  }

  @Test("The goldens of released versions say in which migration it went wrong, and are frozen")
  func frozen() throws {
    try sandbox.makeSound(released: 2)
    // The step is missing: nothing took a wrong value, but the golden of version 1 was right and that of 2 is not.
    try sandbox.migration("0002_names", "  - defaults.rename: {keys: {size: points}}")
    let found = try sandbox.found()
    for place in ["look", "points", "size", "theme"] {
      #expect(
        found.contains {
          $0.hasPrefix("one: golden \(SuiteSandbox.settings): \(place): ")
            && $0.contains("(0002_names) Fixtures/one/expected/2/defaults.yaml")
        }, "\(place)\n\(found)")
      #expect(found.count { $0.hasPrefix("one: golden \(SuiteSandbox.settings): \(place): ") } == 1)
    }
  }

  @Test("Rows may go where that is announced, and tables may be renamed")
  func announced() throws {
    try sandbox.makeSound(recorded: false)
    func losses() throws -> [String] { try sandbox.found().filter { $0.contains("lost-rows") } }
    try sandbox.migration(
      "0003_notes",
      "  - sql: {database: notes, up: DELETE FROM task WHERE done = 1, destructive: they are done}")
    #expect(try losses() == [])
    try sandbox.migration("0003_notes", "  - sql: {database: notes, up: ALTER TABLE task RENAME TO item}")
    #expect(try losses() == [])
    try sandbox.migration("0003_notes", "  - sql: {database: notes, up: DELETE FROM task WHERE done = 1}")
    #expect(try losses().count == 2)
    for name in ["new", "one"] {
      try sandbox.write(
        "Fixtures/\(name)/fixture.yaml",
        "version: \(name == "one" ? 1 : 0)\nexpect: {lost-rows: {notes: {task: 2}}}\n")
    }
    #expect(try losses() == [])
    // The number is exact, and counts only what no reason announces.
    for (number, reason) in [(1, ""), (99, ""), (2, ", destructive: they are done")] {
      try sandbox.migration(
        "0003_notes", "  - sql: {database: notes, up: DELETE FROM task WHERE done = 1\(reason)}")
      try sandbox.write(
        "Fixtures/one/fixture.yaml", "version: 1\nexpect:\n  lost-rows: {notes: {task: \(number)}}\n")
      let found = try losses().filter { $0.hasPrefix("one:") }
      #expect(
        found.count == 1 && found[0].contains("task: `lost-rows` must be")
          && found[0].contains("\(number) lost rows / \(reason.isEmpty ? 2 : 0) lost rows")
          && found[0].hasSuffix("Fixtures/one/fixture.yaml:3"), "\(found)")
    }
    // Several steps are one number.
    try sandbox.migration(
      "0003_notes",
      [2, 3].map { "  - sql: {database: notes, up: DELETE FROM task WHERE id = \($0), down: SELECT 1}" }
        .joined(separator: "\n"))
    try sandbox.write("Fixtures/one/fixture.yaml", "version: 1\nexpect: {lost-rows: {notes: {task: 2}}}\n")
    #expect(try losses().filter { $0.hasPrefix("one:") } == [])
  }

  /// A task table that is made anew, with the statement that copies its rows.
  static func rebuild(
    _ copy: String, reason: String = "{task: rebuilt}", after: String = "ALTER TABLE task_new RENAME TO task"
  ) -> String {
    """
      - sql:
          database: notes
          up: |
            CREATE TABLE task_new (id INTEGER PRIMARY KEY, title TEXT, done INTEGER, note TEXT);
            \(copy);
            DROP TABLE task;
            \(after);
          down: SELECT 1
          destructive: \(reason)
    """
  }

  static let copy = "INSERT INTO task_new (id, title, done) SELECT id, title, done FROM task"

  @Test(
    "A rebuild that loses rows is found, whatever its reason says",
    arguments: [
      // That all other forms are found or harmless, `LossyMigrationTests` shows.
      (rebuild(copy, reason: "rebuilt"), nil),
      (rebuild(copy + " WHERE done = 1", reason: "rebuilt"), "3 rows / 2 rows"),
      (rebuild(copy + " WHERE done = 1", after: "ALTER TABLE task_new RENAME TO item"), "3 rows / 2 rows"),
      (rebuild(copy, after: "ALTER TABLE task_new RENAME TO item"), nil),
    ])
  func rebuilt(_ steps: String, _ expected: String?) throws {
    try sandbox.makeSound(recorded: false)
    try sandbox.migration("0003_notes", steps)
    let found = try sandbox.found().filter { $0.contains("lost-rows") }
    #expect(found.count == (expected == nil ? 0 : 2), "\(found)")
    if let expected { #expect(found.allSatisfy { $0.contains(expected) && $0.contains("rebuilt") }) }
  }

  @Test("A reason is for the tables that it names, and the rows of all others are counted")
  func named() throws {
    let up = "DROP TABLE tag; DELETE FROM task WHERE done = 1"
    try sandbox.makeSound(recorded: false)
    let tag = "CREATE TABLE tag (name TEXT); INSERT INTO tag VALUES ('x');"
    let task = "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, done INTEGER);"
    try sandbox.fixture("one", sql: "\(tag)\(task) INSERT INTO task VALUES (1, 'a', 0), (2, 'b', 1);")
    func losses(_ reason: String, _ up: String) throws -> [String] {
      try sandbox.migration("0003_notes", "  - sql: {database: notes, up: \(up), destructive: \(reason)}")
      return try sandbox.found().filter { $0.hasPrefix("one: lost-rows") }
    }
    var found = try losses("tags are gone", up)
    #expect(
      found.count == 1 && found[0].contains("notes.sqlite: task") && found[0].contains("{task: \"why\"}"))
    found = try losses("{tag: gone}", up)
    #expect(found.count == 1 && found[0].contains("notes.sqlite: task"))
    #expect(try losses("{tag: gone, task: \"done ones, too\"}", up) == [])
    found = try losses("all of it", "DROP TABLE tag; DELETE FROM task")
    #expect(found.count == 2 && found.allSatisfy { $0.contains(#"{tag: "why", task: "why"}"#) }, "\(found)")
    #expect(throws: (any Error).self) { try losses("{tag: gone}", "DROP TABLE tag; DELETE FROM task") }
  }

  @Test("What `loses` names and no fixture loses is a note, where steps do not announce losses themselves")
  func unusedLosses() throws {
    try sandbox.makeSound(recorded: false)
    try sandbox.fixture(
      "one",
      sql:
        "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO task VALUES (1, 'abcdef'), (2, 'ghijkl');"
    )
    func notes(_ up: String, _ reason: String = "") throws -> [String] {
      try sandbox.migration(
        "0003_notes", "  - sql: {database: notes, up: \"\(up)\", down: SELECT 1\(reason)}",
        more: "loses: {Task.Title: short, task.titel: wrong, tag: none}")
      return try sandbox.run().notes.filter { $0.contains("loses") }
    }
    let cut = "UPDATE task SET title = substr(title, 1, 2) WHERE id > 0"
    #expect(
      try notes(cut)
        == ["tag", "task.titel"].map {
          "migration 0003_notes: `loses` names `\($0)`, which no step loses in any fixture: correct or remove it"
        })
    #expect(try notes(cut, ", destructive: {task: why}") == [])
    #expect(try notes("DELETE FROM task WHERE id > 9") == [], "no fixture runs the step with an effect")
  }

  @Test("Fixtures and goldens may have tables in an order that only the app knows, if it is declared")
  func collations() throws {
    try sandbox.makeSound(recorded: false)
    let sql = """
      CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT COLLATE LOCALIZED UNIQUE, done INTEGER);
      CREATE TABLE word (w TEXT COLLATE LOCALIZED PRIMARY KEY, n) WITHOUT ROWID;
      INSERT INTO task VALUES (1, 'b', 0), (2, 'A', 1), (3, 'C', 1); INSERT INTO word VALUES ('b', 1), ('A', 2), ('C', 3);
      """
    try sandbox.fixture("new", version: 0, settings: "", sql: sql)
    try sandbox.fixture("one", sql: sql)
    let word = "UPDATE word SET w = 'D' WHERE w = 'B'; UPDATE task SET title = 'x' WHERE title = 'c'"
    try sandbox.migration(
      "0003_notes",
      "  - sql: {database: notes, up: \"\(word)\", down: \"UPDATE word SET w = 'b' WHERE w = 'd'; UPDATE task SET title = 'C' WHERE title = 'X'\"}"
    )
    let unknown = try sandbox.found()
    #expect(
      unknown.contains { $0.contains("no such collation sequence: LOCALIZED; if the app defines it") },
      "\(unknown)")
    sandbox.configuration.sql.collations = ["LOCALIZED": .nocase]
    try sandbox.record()
    #expect(try sandbox.found() == [])
    try sandbox.migration(
      "0003_notes",
      "  - sql: {database: notes, up: \"UPDATE word SET w = 'Q'||length(w) WHERE w = 'a'; \(word)\", down: SELECT 1}"
    )
    #expect(try sandbox.found().contains { $0.contains("word") })
  }

  @Test("Sums that a fixture declares are compared with those before migrating")
  func sums() throws {
    let expect = """
      expect:
        queries:
          - {database: notes, sql: "SELECT sum(done * id) FROM item", before: "SELECT sum(done * id) FROM task", rows: before}
      """
    try sandbox.makeSound(recorded: false)
    try sandbox.fixture("sum", more: expect)
    func found(_ value: String) throws -> [String] {
      let copy = "INSERT INTO task_new (id, title, done) SELECT id, title, \(value) FROM task"
      try sandbox.migration("0003_notes", Self.rebuild(copy, after: "ALTER TABLE task_new RENAME TO item"))
      return try sandbox.found().filter { $0.hasPrefix("sum: expectation") }
    }
    #expect(try found("done") == [])
    let wrong = try found("0")
    #expect(
      wrong.count == 1 && wrong[0].contains("[5] / [0]") && wrong[0].contains("(0003_notes)"), "\(wrong)")
  }

  @Test(
    "A damaged index for full text is one finding",
    arguments: [
      ("", "DELETE FROM f_config"), ("", "DELETE FROM f_data"),
      (", content='note', content_rowid='id'", "ALTER TABLE note RENAME TO memo"),
    ])
  func damagedIndex(content: String, damage: String) throws {
    let sql = """
      CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, done INTEGER);
      INSERT INTO task VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 1);
      CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, 'one'), (2, 'two');
      CREATE VIRTUAL TABLE f USING fts5(body\(content)); INSERT INTO f(rowid, body) SELECT id, body FROM note;

      """
    try sandbox.makeSound(recorded: false)
    try sandbox.fixture("one", sql: sql)
    try sandbox.record()
    try sandbox.fixture("one", sql: sql + damage + ";\n")
    let found = try sandbox.found().filter {
      $0.hasPrefix("one:") && !$0.contains(": table memo") && !$0.contains(": table note")
    }
    #expect(found.count == 1 && found[0].contains("table f: the rows cannot be read"), "\(found)")
  }

  @Test("A fixture with expectations alone is told to record a golden")
  func withoutGolden() throws {
    try sandbox.makeSound()
    try sandbox.fixture("plain", more: "expect: {settings: {look: dark}}")
    let notes = try sandbox.run().fixtures.flatMap(\.notes).filter { $0.contains("record") }
    #expect(notes == ["only what `expect` names is compared: record a golden of version 3"])
  }

  @Test("The order of columns makes no difference, unless the fixture says so")
  func columnOrder() throws {
    try sandbox.makeSound()
    try sandbox.migration(
      "0003_notes",
      Self.rebuild(Self.copy)
        .replacing("title TEXT, done INTEGER, note TEXT", with: "title TEXT, note TEXT, done INTEGER")
        + "\n  - files.move: {from: Documents/note.md, to: Documents/Notes/note.md}")
    func found() throws -> [String] { try sandbox.found().filter { $0.contains("golden") } }
    #expect(try found() == [])
    try sandbox.write("Fixtures/fixtures.yaml", "volatile: {column-order: false}\n")
    let told = try found()
    #expect(told.count == 2 && told.allSatisfy { $0.contains("table task: the table definition") }, "\(told)")
  }

  @Test("A volatile name that matches at no version is found; one of an old or a new version is right")
  func volatileNames() throws {
    try sandbox.makeSound(recorded: false)
    try sandbox.fixture(
      "one",
      more: "volatile: {settings: [theme, look, sizes], columns: [task.note, TASK.title, task.titel], "
        + "files: [Documents/note.md, '*.tmp']}")
    try sandbox.record()
    let found = try sandbox.found().filter { $0.contains("volatile") }
    #expect(
      found.count == 3
        && ["setting `sizes`", "column `task.titel`", "file `*.tmp`"].allSatisfy { name in
          found.contains { $0.contains(name) }
        }, "\(found)")
  }

  @Test("Many migrations go down one by one, each by what it wrote down")
  func longWayDown() throws {
    try sandbox.makeSound(recorded: false)
    for number in 4...16 {
      let name = (number < 10 ? "000" : "00") + "\(number)_more"
      try sandbox.migration(name, "  - defaults.set: {values: {more\(number): 1}}")
    }
    try sandbox.record()
    let found = try sandbox.found()
    #expect(found == [])
  }

  @Test("A way down that the next one hides is found")
  func hiddenWayDown() throws {
    try sandbox.makeSound(recorded: false)
    let set = "UPDATE task SET title = '"
    // Back from 3 to 2 leaves another title, and back from 2 to 1 writes the right one over it.
    try sandbox.migration(
      "0002_names",
      "  - sql: {database: notes, up: \"\(set)A' WHERE id = 1\", down: \"\(set)a' WHERE id = 1\"}")
    try sandbox.migration(
      "0003_notes",
      "  - sql: {database: notes, up: \"\(set)B' WHERE id = 1\", down: \"\(set)wrong' WHERE id = 1\"}")
    let found = try sandbox.found().filter { $0.hasPrefix("one: down") }
    #expect(found.count == 1 && found[0].contains(#""A" / "wrong" (0003_notes)"#), "\(found)")
  }

  @Test("What a fixture claims must be so")
  func claims() throws {
    try sandbox.makeSound()
    try sandbox.fixture("silent")
    try sandbox.fixture("old", version: 1, more: "expect: {settings: {look: dark}}")
    try sandbox.write("Fixtures/old/expected/0/files.txt", "# drydock golden 1\n")
    try sandbox.fixture("wrong", version: 2)
    try sandbox.write("Fixtures/wrong/container/\(SuiteSandbox.settings).yaml", "schema: 1\n")
    try sandbox.fixture("full", version: 0, more: "reinstalled: true\nexpect: {settings: {look: dark}}")
    let found = try sandbox.found()
    for line in [
      "silent: golden: the fixture expects nothing",
      "old: golden: no golden of the latest version, 3",
      "old: golden: the golden is of version 0, the fixture of 1: remove the golden Fixtures/old/expected/0:0",
      "wrong: build: Fixtures/wrong: fixture.yaml says that it has version 2, but the container has version 1",
      "full: build: a fixture with `reinstalled: true`",
    ] {
      #expect(found.contains { $0.hasPrefix(line) }, "\(line)\n\(found)")
    }
  }

  @Test("What must fail fails with the words that are expected")
  func refusals() throws {
    try sandbox.makeSound(recorded: false)
    try sandbox.fixture("bad", more: "expect: {error: the disk is full}")
    var found = try sandbox.found().filter { $0.hasPrefix("bad") }
    #expect(found == ["bad: migration: migrating succeeded, and `expect` says that it fails"])
    try sandbox.migration("0003_notes", "  - sql: {database: notes, up: SELECT missing}")
    found = try sandbox.found().filter { $0.hasPrefix("bad") }
    #expect(found.count == 1 && found[0].hasPrefix("bad: expectation: the error does not say"), "\(found)")
    #expect(found.first?.contains("the disk is full / ") == true && found[0].contains("no such column"))
    try sandbox.write("Fixtures/bad/fixture.yaml", "version: 1\nexpect: {error: no such column}\n")
    #expect(try sandbox.found().filter { $0.hasPrefix("bad") } == [])
  }

  @Test("What new migrations change is shown when their golden is recorded, and in a run for a reviewer")
  func shownToReviewers() throws {
    try sandbox.makeSound(released: 3)
    try sandbox.migration(
      "0004_titles",
      """
        - sql: {database: notes, up: "UPDATE task SET title = NULL WHERE id > 1", down: SELECT 1}
        - files.move: {from: Documents/notes.sqlite, to: Library/notes.sqlite}
      """, more: "loses: {task.title: why}")
    sandbox.configuration.databases["notes"] = ["Documents/notes.sqlite", "Library/notes.sqlite"]
    let recorded = try sandbox.suite().record().filter { $0.change == .written }
    sandbox.options.showsDifference = true
    let result = try sandbox.run()
    #expect(recorded.map(\.base) == [3, 3] && result.fixtures.map(\.base) == [3, 3])
    for difference in recorded.map(\.difference) + result.fixtures.map(\.difference) {
      let database = try #require(difference?.databases.first)
      #expect(database.movedFrom?.description == "Documents/notes.sqlite" && difference?.databases.count == 1)
      let column = try #require(database.tables.first?.columns.first)
      #expect(column.name == "title" && column.changed == 2)
      #expect(column.before?.distinct == 3 && column.after?.distinct == 1 && column.after?.nulls == 2)
    }
    sandbox.options.showsDifference = false
    #expect(try sandbox.run().fixtures.allSatisfy { $0.difference == nil && $0.base == nil })
  }
}
