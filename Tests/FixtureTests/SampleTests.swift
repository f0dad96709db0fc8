import DrydockErrors
import DrydockTesting
import TestSupport
import Testing

@Suite("The sample app and its fixtures are what the tests need") struct SampleTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  @Test("Its containers have what real ones have")
  func container() throws {
    try run(["create", directory("app")])
    let tree = try TreeListing(directory("app"))
    #expect(tree["Documents/Latest.md"]?.linkTarget == Array("Notes/0001.md".utf8))
    #expect(tree["Documents/Notes/Pinned.md"]?.hardLink == Array("Documents/Notes/0001.md".utf8))
    #expect(tree["Documents/Inbox"]?.kind == .directory)
    #expect(tree["Documents/Gr\u{fc}\u{df}e.txt"] != nil && tree["Documents/Cafe\u{301}.txt"] != nil)
    #expect(tree.paths.contains("Documents/scan-\\xff\\xfe.dat"))
    #expect(tree["Documents/Notes/0001.md"]?.attributes.count == 1)
    #expect(tree["Library/Application Support/Downloads"]?.attributes.values.first?.count == 61)
    #expect(tree["Documents/private.txt"]?.mode == 0o600)
    let times = tree.entries.values.map { $0.modified % 1_000_000_000 }
    #expect(Set(times).count > times.count / 2, "times have nanoseconds")
    try run(["create", directory("again")])
    // Foundation orders the keys of a property list anew in every process.
    let varying = [Sample.defaults.description, ".com.apple.mobile_container_manager.metadata.plist"]
    let again = try TreeListing(directory("again")).without(varying)
    #expect(again.differences(from: tree.without(varying)) == [])
  }

  @Test("Each version has the schema and the settings of the fixture of that version", arguments: 0...7)
  func versions(_ version: Int) throws {
    try run(["create", directory("app"), "--version", String(version)])
    _ = try Sample.build("v\(version)", in: directory("fixture"), deviceKeys: Sample.runner().deviceKeys)
    let place = version >= 3 ? "Library/Application Support" : "Documents"
    let columns = """
      SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_schema m, pragma_table_info(m.name) c
      WHERE m.name <> 'attachment' ORDER BY 1, 2;
      SELECT name, replace(sql, char(10), ' ') FROM sqlite_schema WHERE type = 'index' ORDER BY 1;
      """
    let schemas = try ["app", "fixture/container"].map { name in
      try Command.run(Tools.system("sqlite3"), [directory("\(name)/\(place)/database.sqlite"), columns])
        .output
    }
    #expect(schemas[0] == schemas[1] && schemas[0].contains("task|"))
  }

  @Test("Its check finds a wrong sum")
  func check() throws {
    try run(["create", directory("app")])
    let database = directory("app/Documents/database.sqlite")
    let change = "UPDATE account SET balance = balance + 1 WHERE id = 7"
    #expect(try Command.run(Tools.system("sqlite3"), [database, change]).succeeded)
    let check = try Command.run(Tools.notesApp(), ["check", database])
    #expect(check.exitCode == 1 && check.output.contains("200001"), "\(check)")
  }

  @discardableResult
  private func run(_ arguments: [String]) throws -> CommandResult {
    let result = try Command.run(Tools.notesApp(), arguments)
    #expect(result.succeeded, "\(result)")
    return result
  }

  @Test("Every version and every wreckage is there")
  func names() throws {
    let names = Set(try Fixture.all(in: Sample.fixtures).map(\.name))
    let versions = (0...7).map { "v\($0)" }
    let wreckage = [
      "no-database", "settings-never-written", "marker-before-move", "database-in-both-places",
      "rows-only-in-wal", "2-as-shipped", "font-size-as-text", "group-missing", "reinstalled",
      "widget-before-app",
    ]
    #expect(names.isSuperset(of: versions + wreckage))
    for version in 0...7 { #expect(try Sample.fixture("v\(version)").version == version) }
  }

  @Test("Modes and attributes are set")
  func metadata() throws {
    let tree = try TreeListing(Sample.build("v0", in: directory("work")).root)
    let note = tree["Documents/Notes/First.md"]
    #expect(note?.mode == 0o600)
    #expect(note?.attributes[Array("user.com.example.notes.color".utf8)] == Array("red".utf8))
    #expect(tree["Library/Application Support/Downloads"]?.attributes.values.first?.count == 61)
    #expect(!tree.paths.contains { $0.hasSuffix(".sql") || $0.hasSuffix(".yaml") })
    #expect(throws: DrydockError.self, "what exists is never overwritten") {
      try Sample.build("v0", in: directory("work"))
    }
  }

  @Test("The same fixture gives the same settings file twice")
  func settingsAreStable() throws {
    let path = Sample.defaults.description
    let first = try Sample.build("v1", in: directory("a")).root
    let settings = try TreeListing(first)[path]?.content
    #expect(settings?.starts(with: Array("bplist00".utf8)) == true)
    let second = try Sample.build("v1", in: directory("b")).root
    #expect(settings == (try TreeListing(second)[path]?.content))
  }

  @Test("Rows that are only in the -wal are not in the main file")
  func onlyInWAL() throws {
    let root = try Sample.build("rows-only-in-wal", in: directory("work")).root
    let database = root + "/Documents/database.sqlite"
    let sqlite = try Tools.system("sqlite3")
    // Its main file alone, as a careless copy would take it.
    let main = try Command.run(
      "/bin/sh", ["-c", #"cp "$0" "$1" && "$2" "$1" .tables"#, database, directory("main"), sqlite])
    #expect(main.succeeded && main.output.isEmpty, "\(main)")
    let whole = try Command.run(sqlite, [database, "SELECT count(*) FROM task"])
    #expect(whole.output == "3\n", "\(whole)")
  }
}
