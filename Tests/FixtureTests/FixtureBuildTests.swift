import DrydockErrors
import DrydockTesting
import TestSupport
import Testing

@Suite("Fixtures are built from text")
struct FixtureBuildTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

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
