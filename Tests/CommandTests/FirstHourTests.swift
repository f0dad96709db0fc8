import Foundation
import TestSupport
import Testing

/// What a newcomer meets: no configuration, directories that are not there yet, names that are taken.
@Suite struct FirstHourTests {
  private let sandbox: Sandbox

  /// A sandbox without `drydock.yaml`, and a container of version 0.
  init() throws {
    sandbox = try Sandbox()
    for name in ["drydock.yaml", "Migrations"] { try sandbox.remove(name) }
    try sandbox.shell("mkdir -p Own/Documents Own/Library/Preferences")
    try sandbox.write(
      "Own/" + Self.settings, "<plist version=\"1.0\"><dict><key>a</key><true/></dict></plist>")
  }

  private static let migration = "description: A theme\nsteps: [defaults.set: {values: {theme: light}}]\n"
  private static let settings = "Library/Preferences/com.example.own.plist"

  @Test func `Without drydock.yaml, Migrations and Fixtures are those of the working directory`() throws {
    try sandbox.succeed("new theme")
    try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
    #expect(try sandbox.succeed("validate").hasPrefix("1 migration, in order"))
    try sandbox.succeed("baseline Own --to 0")
    try sandbox.drydock("status Own").expect(output: "pending  theme")
    try sandbox.drydock("inspect Own").expect(output: "pending migrations: 0001_theme")
    try sandbox.succeed("fixture capture Own v0")
    try sandbox.succeed("test --record")
    try sandbox.drydock("test").expect(output: "1 fixture: 1 passed")
    #expect(try sandbox.succeed("migrate Own").hasPrefix("version 0 → 1\n"))
  }

  @Test func `With drydock.yaml, they are those beside it, from any directory below`() throws {
    try sandbox.write("drydock.yaml", "app: com.example.own\n")
    try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
    try sandbox.shell("mkdir -p deep/Migrations; cd deep && '\(sandbox.program)' validate > ../said")
    #expect(try sandbox.text("said").hasPrefix("1 migration, in order"))
  }

  @Test func `A directory that is not there yet: how to make the first one is said`() throws {
    try sandbox.succeed("init Own")
    let inspected = try sandbox.drydock("inspect Own").expect()
    #expect(inspected.errors.isEmpty, "\(inspected)")
    try sandbox.shell("mkdir empty")
    try sandbox.succeed("baseline Own --to 0 -m empty")
    try sandbox.drydock("status Own").expect(errors: "no migrations yet; `drydock new NAME`")
    for arguments in ["validate", "migrate Own", "release 1", "test"] {
      try sandbox.expectRefusal(
        arguments, exit: 4, ["no migrations yet", "`drydock new NAME`"], container: "Own")
    }
    try sandbox.succeed("new theme")
    try sandbox.expectRefusal(
      "test", exit: 1, ["no fixtures yet", "`drydock fixture capture CONTAINER NAME`"], container: "Own")
    #expect(!sandbox.exists("Fixtures"))
  }

  @Test func `A name that is taken is refused, whatever the form of the new migration`() throws {
    try sandbox.write("drydock.yaml", "databases: {notes: Documents/notes.sqlite}\n")
    try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
    try sandbox.write("Migrations/0002_b.up.sql", "-- drydock: database notes\nSELECT 1;\n")
    for arguments in [["theme"], ["theme", "--sql"], ["b", "--directory"], ["b"]] {
      try sandbox.expectRefusal(["new"] + arguments, exit: 1, ["the name is taken by 000"], container: "Own")
    }
    #expect(try sandbox.names("Migrations").count == 2)
    #expect(try sandbox.succeed("new theme2").hasSuffix("/0003_theme2.yaml\n"))
  }

  @Test func `The marker that the app trusts itself comes first, and the app's number is shown`() throws {
    try sandbox.expectRefusal(
      "status Own", exit: 4, ["no drydock.yaml", "`drydock init CONTAINER`"], container: "Own")
    try sandbox.succeed("defaults write Own dataSchemaVersion 4")
    try sandbox.succeed("init Own")
    #expect(try sandbox.text("drydock.yaml").contains("- {defaults: \"dataSchemaVersion\", at: {0: 4}}\n"))
    try sandbox.drydock("inspect Own").expect(output: "schema version: 0 (the app's 4), by the setting")
    try sandbox.succeed("new theme")
    #expect(try sandbox.succeed("status Own").hasPrefix("version 0 (the app's 4) of 1, by the setting"))
    try sandbox.shell(
      "rm drydock.yaml; sqlite3 Own/Documents/own.sqlite \"CREATE TABLE grdb_migrations (identifier TEXT PRIMARY KEY); INSERT INTO grdb_migrations VALUES ('v1')\""
    )
    try sandbox.succeed("init Own")
    let written = try sandbox.text("drydock.yaml")
    #expect(
      written.contains(
        "version-markers:\n  - {grdb: own, at: {0: \"v1\"}}\n  # - {defaults: \"dataSchemaVersion\""),
      "\(written)")
  }

  @Test(arguments: [
    (
      "CREATE TABLE grdb_migrations (identifier TEXT PRIMARY KEY); INSERT INTO grdb_migrations VALUES ('v1'), ('v2')",
      "GRDB applied 2 migrations, the last one is \"v2\""
    ),
    ("CREATE TABLE room_master_table (id, identity_hash); PRAGMA user_version = 4", "Room's, version 4"),
    (
      "CREATE TABLE Z_METADATA (Z_PLIST); CREATE TABLE Z_PRIMARYKEY (Z_ENT); INSERT INTO Z_PRIMARYKEY VALUES (1)",
      "a Core Data or SwiftData store with 1 entities"
    ),
    ("CREATE TABLE schema_migrations (version, dirty)", "format: golang-migrate, database: own"),
    ("CREATE TABLE schema_migrations (version)", "format: dbmate, database: own"),
    ("CREATE TABLE goose_db_version (id)", "format: goose, database: own"),
    ("CREATE TABLE own (id); PRAGMA user_version = 4", "version-markers:\n  - {pragma: own, at: {0: 4}}\n"),
    ("CREATE TABLE own (id)", "\ndatabases:\n  own: [\"Documents/own.sqlite\"]\n"),
  ])
  func `init writes what a database's own library recorded`(sql: String, words: String) throws {
    try sandbox.shell("sqlite3 Own/Documents/own.sqlite \"\(sql.replacing("\"", with: "\\\""))\"")
    try sandbox.succeed("init Own")
    let written = try sandbox.text("drydock.yaml")
    #expect(written.contains(words), "\(written)")
    // It is valid as it is.
    try sandbox.succeed("inspect Own")
  }

  @Test func `init makes the first fixture, or neither file`() throws {
    try sandbox.expectRefusal(
      "init --fixture v0", exit: 64, ["--fixture needs a container"], container: "Own")
    try sandbox.expectRefusal("init Own --fixture a/b", exit: 1, ["name of one directory"], container: "Own")
    #expect(!sandbox.exists("drydock.yaml") && !sandbox.exists("Fixtures"))
    let output = try sandbox.succeed("init Own --fixture v0")
    #expect(output.contains("schema version: 0") && sandbox.exists("Fixtures/v0/fixture.yaml"), "\(output)")
    let attributes = try sandbox.text("Fixtures/.gitattributes")
    #expect(attributes.contains("\n* -text\n"))
  }

  @Test func `A batch's baseline leaves a container with a history unchanged`() throws {
    try sandbox.shell(
      "mkdir All; mv Own All/old; cp -r All/old All/new; sqlite3 All/old/Documents/a.db 'CREATE TABLE t (x)'"
    )
    try sandbox.shell(
      "cp All/old/Documents/a.db All/new/Documents/a.db; sqlite3 All/old/Documents/a.db 'PRAGMA user_version = 11'"
    )
    try sandbox.write(
      "drydock.yaml",
      "databases: {a: Documents/a.db}\nversion-markers: [{pragma: a, at: {0: 11}}]\n")
    try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
    try sandbox.succeed("migrate All/old")
    // The app has gone on without Drydock.
    try sandbox.shell("sqlite3 All/old/Documents/a.db 'PRAGMA user_version = 12'")
    let before = try sandbox.tree("All/old")
    try sandbox.drydock("baseline --all All --to 0").expect(
      exit: 3, output: "old  failed     exit 4: ", "new  changed    version 0")
    try sandbox.tree("All/old").expectSame(as: before, comparing: TreeListing.untouched)
  }

  @Test func `A snapshot warns when it holds nothing, and when it is plain among encrypted ones`() throws {
    try sandbox.shell("mkdir Unmounted")
    let bare = try sandbox.drydock("snapshot Unmounted -r Backups -q").expect()
    #expect(
      bare.output.isEmpty && bare.errors.hasPrefix("drydock: warning: the archive holds nothing"), "\(bare)"
    )
    let recipient = try sandbox.succeed("keygen -y device.key").trimmingCharacters(in: .newlines)
    let first = try sandbox.drydock("snapshot", "Own", "-r", "Backups", "--recipient", recipient).expect()
    #expect(!first.errors.contains("not encrypted"), "\(first)")
    try sandbox.drydock("snapshot Own -r Backups -q").expect(
      errors: "warning: the archive is not encrypted, and others")
    let other = try sandbox.drydock("snapshot Own -r Backups -q --instance other").expect()
    #expect(other.errors.isEmpty, "\(other)")
  }

  @Test func `A downloaded bundle that was renamed is not an empty container`() throws {
    try sandbox.shell("mkdir renamed; mv Own renamed/AppData")
    try sandbox.drydock("snapshot renamed -r Backups").expect(exit: 1, errors: "renamed .xcappdata bundle")
    try sandbox.succeed("inspect renamed/AppData")
  }

  @Test func `A report replaces an earlier one, and nothing else: no database, archive or fixture`() throws {
    try sandbox.shell("sqlite3 Own/Documents/own.sqlite 'CREATE TABLE t (x)'")
    let archive = try sandbox.succeed("snapshot Own -r Backups").trimmingCharacters(in: .newlines)
    try sandbox.shell("ln -s Own/Documents/own.sqlite page.html")
    let before = try sandbox.tree("Own")
    for arguments in [
      ["audit", "Own", "--html", "Own/Documents/own.sqlite"], ["inspect", "Own", "--html", "page.html"],
      ["audit", "Own", "--sarif", "Own/" + Self.settings], ["diff", "Own", "Own", "--html", archive],
      ["audit", "Own", "--html", "-"], ["audit", "Own", "--sarif", ""],
    ] {
      try sandbox.drydock(arguments).expect(exit: 64, errors: "drydock: error: --")
    }
    try sandbox.tree("Own").expectSame(as: before, comparing: TreeListing.untouched)
    try sandbox.succeed("verify", archive, "--data")
    for _ in 1...2 { try sandbox.succeed("audit Own --html x.html --sarif y.sarif") }
    // A name of one character.
    try sandbox.succeed("inspect Own --html x")
  }

  @Test func `An audit examines tables with hostile names, and names a damaged database`() throws {
    try sandbox.write(
      "hostile.sql",
      """
      CREATE TABLE "a""b" (token TEXT);
      INSERT INTO "a""b" VALUES ('ghp_16C7e42F292c6912E7710c838347Ae178B4a');
      CREATE TABLE "c"" WHERE (SELECT count(*) FROM ""d" ("e""f" TEXT);
      INSERT INTO "c"" WHERE (SELECT count(*) FROM ""d" VALUES ('x');
      """)
    try sandbox.shell("sqlite3 Own/Documents/own.sqlite < hostile.sql")
    let audit = try sandbox.drydock("audit Own").expect(output: "a\"b.token")
    #expect(!audit.output.contains("not examined: Documents") && !audit.output.contains("ghp_"), "\(audit)")
    try sandbox.shell(
      "sqlite3 Own/Documents/own.sqlite \"PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('view', 'bad', 'bad', 0, 'CREATE VIEW bad AS SELEC')\""
    )
    let damaged = try sandbox.drydock("audit Own --fail-on error")
    #expect(damaged.exitCode == 3 || damaged.exitCode == 4, "\(damaged)")
    #expect(damaged.output.contains("Documents/own.sqlite"), "\(damaged)")
  }

  @Test func `A command that is refused leaves nothing in the log`() throws {
    try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
    try sandbox.write(
      "Migrations/0002_wrong.yaml", "steps: [defaults.rename: {keys: {nothing: x}, if-missing: fail}]\n")
    try sandbox.succeed("baseline Own --to 0")
    let log = try sandbox.succeed("log Own")
    try sandbox.drydock("migrate Own").expect(exit: 1)
    #expect(try sandbox.succeed("log Own") == log && !log.contains("(0 paths"))
  }
}
