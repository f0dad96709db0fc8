import AppContainer
import MigrationEngine
import Testing

@Suite("What must be true over all fixtures is checked")
struct SuiteTogetherTests {
  private let sandbox: SuiteSandbox

  init() throws { sandbox = try SuiteSandbox() }

  @Test("Every release has a fresh fixture, and one is reinstalled where there is a vault")
  func releases() throws {
    try sandbox.makeSound(released: 2)
    #expect(
      try sandbox.found().map { $0.prefix(70) } == [
        "all: release: no fixture with `fresh: true` has version 1, that of the",
        "all: release: no fixture with `fresh: true` has version 2, that of the",
      ])
    try sandbox.write("Fixtures/one/fixture.yaml", "version: 1\nfresh: true\n")
    let left = try sandbox.found()
    #expect(left.count == 1 && left[0].hasSuffix("Migrations/releases.yaml:4"), "\(left)")
    try sandbox.fixture(
      "secret",
      more: "expect: {settings: {look: dark}}\n"
        + "container: {vault: [{service: a, accessible: always, value: made-up}]}")
    #expect(try sandbox.found().contains { $0.contains("no fixture says `reinstalled: true`") })
    try sandbox.write(
      "Fixtures/again/fixture.yaml",
      "version: 0\nreinstalled: true\nexpect: {settings: {size: 10}}\n"
        + "container: {vault: [{service: a, accessible: always, value: made-up}]}\n")
    let found = try sandbox.found()
    #expect(!found.contains { $0.contains("reinstalled") }, "\(found)")
  }

  @Test("A migration without a statement needs no fixture that shows it")
  func empty() throws {
    sandbox.configuration.versionMarkers = []
    try sandbox.write("Migrations/1_start.up.sql", "CREATE TABLE item (id INTEGER PRIMARY KEY);\n")
    try sandbox.write("Migrations/2_nothing.up.sql", "-- for another edition only\n")
    try sandbox.write(
      "Migrations/3_again.up.sql", "CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY);\n")
    try sandbox.write(
      "Fixtures/new/fixture.yaml",
      "version: 0\ncontainer: {directories: [tmp]}\n"
        + "expect: {queries: [{database: notes, sql: SELECT count(*) FROM item, rows: [[0]]}]}\n")
    let found = try sandbox.found(
      MigrationCatalog.load(
        sandbox.directory("Migrations"), tool: MigrationTool(.golangMigrate, database: "notes")))
    #expect(found.count == 1 && found[0].contains("(0003_again)"), "\(found)")
  }

  @Test("A migrated container must be like a fresh one")
  func fresh() throws {
    try sandbox.makeSound()
    for name in ["new", "one"] {
      let text = "version: \(name == "one" ? 1 : 0)\nfresh: true\n"
      try sandbox.write("Fixtures/\(name)/fixture.yaml", text)
    }
    let flag = "container: {excluded: [Documents/Notes]}\n"
    let sql = "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, done INTEGER, note TEXT);\n"
    func write(_ more: String, settings: String = "look: a\nsize: 1\n", sql: String) throws {
      try sandbox.write(
        "Fixtures/three/fixture.yaml", "version: 3\nfresh: true\nexpect: {settings: {size: 1}}\n" + more)
      try sandbox.write("Fixtures/three/container/\(SuiteSandbox.settings).yaml", "schema: 3\n\(settings)")
      try sandbox.write("Fixtures/three/container/\(SuiteSandbox.database).sql", sql)
      try sandbox.write("Fixtures/three/container/Documents/Notes/note.md", "Another note.\n")
    }
    try write("", sql: sql)
    #expect(try sandbox.found() == [])
    try write(
      flag, settings: "size: 1\nzoom: 2\n",
      sql: sql.replacing("note TEXT", with: "note TEXT NOT NULL DEFAULT ''")
        + "CREATE INDEX task_done ON task (done);\n")
    let found = try sandbox.found()
    for parts in [
      ["table task, column note", "TEXT NOT NULL DEFAULT '' / TEXT", "(0002_names or 0003_notes)"],
      ["index task_done", "CREATE INDEX"], ["fresh \(SuiteSandbox.settings): look", "- / a setting"],
      ["fresh \(SuiteSandbox.settings): zoom", "a setting / -"],
      ["fresh Documents/Notes", "excluded / no flag", "Fixtures/three/fixture.yaml"],
    ] {
      #expect(found.contains { line in parts.allSatisfy(line.contains) }, "\(parts)\n\(found)")
    }
    #expect(found.count == 5, "\(found)")
    try write("optional-settings: [zoom, lo*]\n", settings: "size: 1\nzoom: 2\n", sql: sql)
    #expect(try sandbox.found() == [])
  }

  @Test("The accessibility of secrets must be that of a fresh container")
  func accessibility() throws {
    try sandbox.migration(
      "0001_vault",
      "  - vault.move-from-defaults: {key: token, service: app, account: token, accessible: whenUnlocked}")
    try sandbox.fixture(
      "old", version: 0, more: "fresh: true\nexpect: {absent-settings: [token], settings: {size: 12}}",
      settings: "theme: dark\nsize: 12\ntoken: made-up\n")
    try sandbox.fixture(
      "now",
      more:
        "fresh: true\nexpect: {settings: {size: 12}}\ncontainer: {vault: [{service: app, account: token, "
        + "accessible: afterFirstUnlock, value: made-up-2}]}")
    let found = try sandbox.found()
    #expect(found.count == 1, "\(found)")
    #expect(
      found.first?.contains("app/token: accessible") == true
        && found.first?.contains("afterFirstUnlock / whenUnlocked (0001_vault)") == true, "\(found)")
  }
}
