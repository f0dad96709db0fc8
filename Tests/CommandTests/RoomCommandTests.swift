import Foundation
import TestSupport
import Testing

/// The samples of Room and SQLDelight, written by Python's SQLite, through the commands.
@Suite struct RoomCommandTests {
  private let sandbox: Sandbox

  /// A project with a container that an app of the first version wrote.
  init() throws {
    sandbox = try Sandbox()
    try sandbox.shell(
      """
      mkdir -p app Notes/databases Notes/shared_prefs
      cp -r \(Self.samples)/RoomSamples/migrations migrations
      mkdir -p app/schemas && cp -r \(Self.samples)/RoomSamples/schemas app/schemas/com.example.Notes
      cp \(Self.samples)/RoomSamples/notes-1.db \(Self.place)
      """)
    try sandbox.write(
      "drydock.yaml",
      """
      app: com.example.notes
      layout: android
      databases: {notes: databases/notes.db}
      migrations: {path: migrations, format: room, database: notes, schemas: app/schemas/com.example.Notes}
      """)
  }

  private static let samples = Sandbox.repository + "/Tests/MigrationEngineTests"
  private static let place = "Notes/databases/notes.db"

  @Test func `A Room container from the first look to the newest version, and back`() throws {
    let validated = try sandbox.succeed("validate")
    #expect(validated.hasPrefix("3 migrations, in order\n"), "\(validated)")
    var inspected = try sandbox.succeed("inspect Notes")
    for words in [
      "Room database, version 1", "matches 1.json", "identity hash", "version 1, by", "note_fts",
    ] {
      #expect(
        inspected.contains(words.replacing("version 1, by", with: "schema version: 1, by")), "\(inspected)")
    }
    try sandbox.drydock("status Notes").expect(output: "version 1 of 4")
    try sandbox.succeed("migrate Notes")
    #expect(
      try sandbox.sqlite(Self.place, "PRAGMA user_version; SELECT title FROM note;") == "4\nMilk\nPaint\n")
    inspected = try sandbox.succeed("inspect Notes")
    #expect(inspected.contains("matches 4.json"), "\(inspected)")
    try sandbox.succeed("rollback Notes")
    #expect(
      try sandbox.sqlite(Self.place, "PRAGMA user_version; SELECT body FROM note WHERE id = 1;")
        == "1\ntwo bottles\n")
  }

  @Test func `inspect names what Room would refuse`() throws {
    try sandbox.sqlite(
      Self.place, "DROP INDEX index_note_title; UPDATE room_master_table SET identity_hash = 'x'")
    let inspected = try sandbox.drydock("inspect Notes")
    #expect(inspected.output.contains("differs from 1.json"), "\(inspected)")
    #expect(inspected.errors.contains("table note: index index_note_title (title): missing"), "\(inspected)")
    #expect(inspected.errors.contains("its identity hash is not that of 1.json"), "\(inspected)")
  }

  @Test func `init finds Room's database and the directory of its schemas`() throws {
    try sandbox.remove("drydock.yaml")
    let next = try sandbox.drydock("init Notes --fixture first")
    #expect(next.output.contains("Room's migrations, such as Migrations/1_2.sql"), "\(next)")
    let written = try sandbox.text("drydock.yaml")
    #expect(
      written.contains(
        "\nmigrations: {path: Migrations, format: room, database: notes, schemas: \"app/schemas/com.example.Notes\"}"
      ),
      "\(written)")
    // Room counts its versions itself.
    #expect(!written.contains("\nversion-markers:"), "\(written)")
    let fixture = try sandbox.text("Fixtures/first/fixture.yaml")
    #expect(fixture.contains("version: 1\n"), "\(fixture)")
  }

  @Test func `drydock test compares the databases of fixtures with what the app creates`() throws {
    for name in ["good", "drifted"] {
      try sandbox.shell("mkdir -p Fixtures/\(name) && cp -r Notes Fixtures/\(name)/container")
      try sandbox.write("Fixtures/\(name)/fixture.yaml", "version: 1\n")
    }
    try sandbox.sqlite(
      "Fixtures/drifted/container/databases/notes.db",
      "ALTER TABLE folder ADD COLUMN color TEXT; DROP INDEX index_note_title")
    try sandbox.drydock("test").expect(
      exit: 1, output: "table folder: column color", "table note: index index_note_title (title)")
    try sandbox.succeed("test good --record")
    try sandbox.succeed("test good")
  }

  @Test func `SQLDelight's fixtures are compared with the .sq files`() throws {
    try sandbox.shell(
      """
      rm -r migrations
      mkdir -p Fixtures/old/container/databases Fixtures/drifted/container/databases
      cp -r \(Self.samples)/SQLDelightSamples/sources sources
      cp -r \(Self.samples)/SQLDelightSamples/migrations migrations
      cp sources/1.db Fixtures/old/container/databases/books.db
      cp \(Self.samples)/SQLDelightSamples/drifted.db Fixtures/drifted/container/databases/books.db
      """)
    for name in ["old", "drifted"] { try sandbox.write("Fixtures/\(name)/fixture.yaml", "version: 1\n") }
    try sandbox.write(
      "drydock.yaml",
      """
      app: com.example.books
      layout: android
      databases: {books: databases/books.db}
      migrations: {path: migrations, format: sqldelight, database: books, sources: sources}
      """)
    try sandbox.succeed("validate")
    try sandbox.drydock("test").expect(exit: 1, output: "table book: column shelf", "trigger book_log")
    try sandbox.succeed("test old --record")
    try sandbox.succeed("test old")
  }

  @Test func `Keys that belong to another format are errors with their place`() throws {
    let text = try sandbox.text("drydock.yaml")
    for (old, new, message) in [
      (", schemas: app/schemas/com.example.Notes", "", "needs the key `schemas`"),
      ("schemas:", "sources:", "`sources` is for the format sqldelight, not for room"),
      ("format: room", "format: goose", "`schemas` is for the format room, not for goose"),
    ] {
      try sandbox.write("drydock.yaml", text.replacing(old, with: new))
      try sandbox.drydock("validate").expect(exit: 4, errors: message, "drydock.yaml:4:")
    }
    try sandbox.write("drydock.yaml", text.replacing(/migrations: \{.*\n?/, with: ""))
    try sandbox.drydock("validate -m migrations --format room --database notes").expect(
      exit: 64, errors: "needs the exported schemas")
  }
}
