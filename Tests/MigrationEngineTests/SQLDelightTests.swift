import AppContainer
import AppFrameworks
import TestSupport
import Testing

@testable import MigrationEngine

/// SQLDelight's migrations against a database built from its `.sq` files.
@Suite struct SQLDelightTests {
  private static let migrations = Samples.sqlDelight + "/migrations"

  private func validate(_ tool: MigrationTool, _ migrations: String = migrations) throws -> [String] {
    try MigrationValidation.run(migrations, tool: tool, Lab.with { $0.configuration }).problems.map {
      $0.message.replacing(/\/[^ :]*\/SQLDelightSamples\//, with: "")
    }
  }

  @Test func oldDatabasesReachTheSchema() throws { #expect(try validate(.sqlDelight) == []) }

  /// Each kind of a definition, changed in the migrations.
  @Test(arguments: [
    (
      "kotlin.Boolean NOT NULL DEFAULT 0", "kotlin.Boolean DEFAULT 0",
      ["table book: column done: INTEGER NOT NULL DEFAULT 0 expected, found INTEGER DEFAULT 0"]
    ),
    ("INDEX book_title ON book(title)", "INDEX book_title ON book(title DESC)", ["index book_title: CREATE"]),
    ("name TEXT NOT NULL UNIQUE", "name TEXT NOT NULL", ["table author: UNIQUE (name): missing, expected"]),
    (
      "REFERENCES author(id)", "REFERENCES author(id) ON DELETE CASCADE",
      ["table book: foreign key (authorId): (id) to author ON DELETE NO ACTION"]
    ),
    (
      "CREATE VIEW unread", "CREATE VIEW unread2",
      ["view unread: missing, expected", "view unread2: only in the migrated database"]
    ),
    ("WHERE id = old.authorId AND NOT", "WHERE id = new.id OR NOT", ["trigger book_gone: "]),
    (
      "CREATE TABLE author (id", "CREATE TABLE log (t TEXT); CREATE TABLE author (id",
      ["table log: only in the migrated database"]
    ),
  ])
  func driftIsNamed(_ old: String, _ new: String, _ expected: [String]) throws {
    try Lab.with { lab in
      var count = 0
      for name in ["1.sqm", "2.sqm"] {
        let text = try Samples.text("\(Self.migrations)/\(name)")
        if text.contains(old) { count += 1 }
        try lab.migration(name, text.replacing(old, with: new.replacing("new.id", with: "old.id")))
      }
      #expect(count == 1)
      let problems = try validate(.sqlDelight, lab.directory("migrations"))
      // Of the second database only what its migrations change.
      let first = problems.filter {
        $0.hasPrefix("sources/1.db: migrated to version 3, the database differs from the .sq files: ")
      }
      #expect(first.count == expected.count, "\(problems)")
      for (problem, text) in zip(first, expected) { #expect(problem.contains(": " + text), "\(problem)") }
    }
  }

  /// A trigger and a column that only migrated users have.
  @Test func driftOfAContainer() throws {
    try Lab.with { lab in
      try lab.sample(Samples.sqlDelight + "/drifted.db")
      let catalog = try lab.catalog(.sqlDelight, in: Self.migrations)
      _ = try lab.migrate(catalog)
      #expect(try lab.column("SELECT title || done FROM book") == ["One0"])
      #expect(
        try lab.drift(catalog, at: 3) == [
          "table book: column shelf: only in the migrated database",
          "trigger book_log: only in the migrated database",
        ])
      // Without the sources, nothing is declared.
      #expect(try lab.drift(lab.catalog(.sqldelight), at: 3) == ["nothing is declared"])
    }
  }

  @Test(arguments: [
    (["A.sq": "CREATE TABLE a (id INTEGER;\n"], "A.sq:1:1: near \";\": syntax error"),
    (["A.sq": "\n\nCREATE TABLE a (id);\nCREATE VIEW v AS SELECT 1;\nATTACH 'x' AS y;\n"], ""),
    (["A.sq": "all:\nSELECT 1;\n"], "no .sq file creates a table"),
    (
      ["A.sq": "CREATE TABLE a (id);\nCREATE TRIGGER t AFTER INSERT ON b BEGIN SELECT 1; END;"],
      "A.sq:2:1: no such table: main.b"
    ),
    (["A.sq": "CREATE TABLE a (id);\ngroup {\n SELECT 1;\n"], ""),
  ])
  func sources(_ files: [String: String], _ message: String) throws {
    try TemporaryDirectory.with { directory in
      for (name, text) in files { try RawFiles.write(Array(text.utf8), to: Array(directory(name).utf8)) }
      let error = failure { try SQLDelightSources(directory("")).fresh(ContainerConfiguration()) }
      if message.isEmpty {
        #expect(error.text == "no error")
      } else {
        #expect(error.text.contains(message), "\(error.text)")
      }
    }
  }

  @Test func damagedSourcesNeverCrash() throws {
    let bytes = try Samples.bytes("\(Samples.sqlDelight)/sources/com/example/Book.sq")
    try TemporaryDirectory.with { directory in
      for count in stride(from: 0, to: bytes.count, by: 7) {
        try RawFiles.write(Array(bytes[..<count]), to: Array(directory("A.sq").utf8))
        _ = try? SQLDelightSources(directory("")).fresh(ContainerConfiguration())
      }
      #expect(failure { try SQLDelightSources(directory("none")) }.code == .catalog)
    }
  }
}

/// GRDB's table of applied migrations, as its `DatabaseMigrator` writes it.
@Suite struct GRDBMarkerTests {
  private func configuration(_ marker: String, _ lab: Lab) throws -> ContainerConfiguration {
    var configuration = try lab.configuration(
      "databases: {notes: [\"\(Lab.newDatabase)\"]}\nversion-markers:\n  - \(marker)\n")
    (configuration.app, configuration.layout) = (lab.configuration.app, lab.configuration.layout)
    return configuration
  }

  private func lab(_ marker: String, _ identifiers: [String], _ body: (Lab) throws -> Void) throws {
    try Lab.with { lab in
      lab.configuration = try configuration(marker, lab)
      try lab.database(
        "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);\n"
          + identifiers.map { "INSERT INTO grdb_migrations VALUES ('\($0)');" }.joined())
      try lab.migrations(5)
      try body(lab)
    }
  }

  @Test func identifiers() throws {
    try lab("{grdb: notes, at: {0: createNotes, 2: addTags, 4: addNotes}}", ["createNotes", "addTags"]) {
      lab in
      let plan = try lab.plan()
      #expect(plan.detected.version == 2)
      #expect(plan.detected.source.description == "the table grdb_migrations of the database notes")
      let identifiers = { try lab.column("SELECT identifier FROM grdb_migrations ORDER BY rowid") }
      _ = try lab.migrate(to: 3)
      #expect(try identifiers() == ["createNotes", "addTags"])
      // The app must not repeat what was done in its place.
      _ = try lab.migrate()
      #expect(try identifiers() == ["createNotes", "addTags", "addNotes"])
      _ = try lab.rollback(to: 3, down: true)
      #expect(try lab.column("SELECT count(*) FROM grdb_migrations") == ["2"])
    }
  }

  @Test func unknownAndOther() throws {
    try lab("{grdb: notes, at: {0: v3}}", ["v1"]) { (lab: Lab) throws in
      expectFailure("is 0, which means no migration") { try lab.plan() }
    }
    try lab("{grdb: notes}", ["v1", "v2", "v3"]) { (lab: Lab) throws in
      try lab.release()
      #expect(try lab.plan().detected.version == 3)
      expectOne(try lab.migrate().notes, "the identifiers are unknown, and none was written")
    }
    try Lab.with { lab in
      for (marker, message) in [
        ("{grdb: notes, at: {1: a, 2: 3}}", "identifiers or numbers"),
        ("{grdb: notes, pragma: notes}", "a version marker has one of"),
        ("{pragma: notes, at: {1: a}}", "the app's number is an integer"),
      ] {
        expectFailure(message) { try configuration(marker, lab) }
      }
    }
  }

  @Test func foundByASearch() throws {
    try lab("{grdb: notes}", ["createNotes", "add \\\"tags\\\""]) { (lab: Lab) throws in
      let found = {
        try lab.look { VersionMarkerSearch($0, databases: [("notes", Lab.newDatabase)]).findings }
      }
      #expect(try found().map(\.place) == [.grdb(database: "notes", identifiers: ["add \\\"tags\\\""])])
      // A table with another meaning is not GRDB's.
      try lab.change("DROP TABLE grdb_migrations; CREATE TABLE grdb_migrations (name)")
      #expect(try found().isEmpty)
    }
  }
}
