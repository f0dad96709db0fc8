import Foundation
import TestSupport
import Testing

/// What a newcomer meets: no configuration, directories that are not there yet, names that are taken.
@Suite("The first hour")
struct FirstHourTests {
  private static let migration = "description: A theme\nsteps: [defaults.set: {values: {theme: light}}]\n"
  private static let settings = "Library/Preferences/com.example.own.plist"

  /// A sandbox without `drydock.yaml`, and a container of version 0.
  private func bare(_ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      for name in ["drydock.yaml", "Migrations"] { try sandbox.remove(name) }
      try sandbox.shell("mkdir -p Own/Documents Own/Library/Preferences")
      try sandbox.write(
        "Own/" + Self.settings, "<plist version=\"1.0\"><dict><key>a</key><true/></dict></plist>")
      try body(sandbox)
    }
  }

  @Test("Without drydock.yaml, Migrations and Fixtures are those of the working directory")
  func defaults() throws {
    try bare { sandbox in
      try sandbox.succeed("new", "theme")
      try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
      #expect(try sandbox.succeed("validate").hasPrefix("1 migration, in order"))
      try sandbox.succeed("baseline", "Own", "--to", "0")
      #expect(try sandbox.succeed("status", "Own").contains("pending  theme"))
      #expect(try sandbox.succeed("inspect", "Own").contains("pending migrations: 0001_theme"))
      try sandbox.succeed("fixture", "capture", "Own", "v0")
      try sandbox.succeed("test", "--record")
      #expect(try sandbox.succeed("test").contains("1 fixture: 1 passed"))
      #expect(try sandbox.succeed("migrate", "Own").hasPrefix("version 0 → 1\n"))
    }
  }

  @Test("With drydock.yaml, they are those beside it, from any directory below")
  func besideConfiguration() throws {
    try bare { sandbox in
      try sandbox.write("drydock.yaml", "app: com.example.own\n")
      try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
      try sandbox.shell("mkdir -p deep/Migrations; cd deep && '\(sandbox.program)' validate > ../said")
      #expect(String(decoding: try sandbox.read("said"), as: UTF8.self).hasPrefix("1 migration, in order"))
    }
  }

  @Test("A directory that is not there yet means that there is nothing yet, and how to make the first one")
  func nothingYet() throws {
    try bare { sandbox in
      try sandbox.succeed("init", "Own")
      let inspected = try sandbox.drydock("inspect", "Own")
      #expect(inspected.succeeded && inspected.errors.isEmpty, "\(inspected)")
      try sandbox.succeed("baseline", "Own", "--to", "0", "-m", sandbox.emptyDirectory())
      let status = try sandbox.drydock("status", "Own")
      #expect(
        status.succeeded && status.errors.contains("no migrations yet; `drydock new NAME`"), "\(status)")
      for arguments in [["validate"], ["migrate", "Own"], ["release", "1"], ["test"]] {
        try sandbox.expectRefusal(
          arguments, exit: 4, ["no migrations yet", "`drydock new NAME`"], container: "Own")
      }
      try sandbox.succeed("new", "theme")
      try sandbox.expectRefusal(
        ["test"], exit: 1, ["no fixtures yet", "`drydock fixture capture CONTAINER NAME`"], container: "Own")
      #expect(!sandbox.exists("Fixtures"))
    }
  }

  @Test("A name that is taken is refused, whatever the form of the new migration")
  func taken() throws {
    try bare { sandbox in
      try sandbox.write("drydock.yaml", "databases: {notes: Documents/notes.sqlite}\n")
      try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
      try sandbox.write("Migrations/0002_b.up.sql", "-- drydock: database notes\nSELECT 1;\n")
      for arguments in [["theme"], ["theme", "--sql"], ["b", "--directory"], ["b"]] {
        try sandbox.expectRefusal(
          ["new"] + arguments, exit: 1, ["the name is taken by 000"], container: "Own")
      }
      #expect(try sandbox.names("Migrations").count == 2)
      #expect(try sandbox.succeed("new", "theme2").hasSuffix("/0003_theme2.yaml\n"))
    }
  }

  @Test(
    "init writes what a database's own library recorded",
    arguments: [
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
      ("CREATE TABLE own (id)", "\ndatabases:\n  own: [\"Documents/own.sqlite\"]\n"),
    ])
  func records(sql: String, words: String) throws {
    try bare { sandbox in
      try sandbox.shell("sqlite3 Own/Documents/own.sqlite \"\(sql.replacing("\"", with: "\\\""))\"")
      try sandbox.succeed("init", "Own")
      let written = String(decoding: try sandbox.read("drydock.yaml"), as: UTF8.self)
      #expect(written.contains(words), "\(written)")
      // It is valid as it is.
      try sandbox.succeed("inspect", "Own")
    }
  }

  @Test("init makes the first fixture, or neither file")
  func firstFixture() throws {
    try bare { sandbox in
      try sandbox.expectRefusal(
        ["init", "--fixture", "v0"], exit: 64, ["--fixture needs a container"], container: "Own")
      try sandbox.expectRefusal(
        ["init", "Own", "--fixture", "a/b"], exit: 1, ["name of one directory"], container: "Own")
      #expect(!sandbox.exists("drydock.yaml") && !sandbox.exists("Fixtures"))
      let output = try sandbox.succeed("init", "Own", "--fixture", "v0")
      #expect(output.contains("schema version: 0") && sandbox.exists("Fixtures/v0/fixture.yaml"), "\(output)")
    }
  }

  @Test("A command that is refused leaves nothing in the log")
  func refusedIsNotLogged() throws {
    try bare { sandbox in
      try sandbox.write("Migrations/0001_theme.yaml", Self.migration)
      try sandbox.write(
        "Migrations/0002_wrong.yaml", "steps: [defaults.rename: {keys: {nothing: x}, if-missing: fail}]\n")
      try sandbox.succeed("baseline", "Own", "--to", "0")
      let log = try sandbox.succeed("log", "Own")
      #expect(try sandbox.drydock("migrate", "Own").exitCode == 1)
      #expect(try sandbox.succeed("log", "Own") == log && !log.contains("(0 paths"))
    }
  }
}

extension Sandbox {
  /// A new directory without files.
  fileprivate func emptyDirectory() throws -> String {
    try shell("mkdir -p empty")
    return "empty"
  }
}
