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

  @Test("Every fixture builds", arguments: try Fixture.all(in: Sample.fixtures).map(\.name))
  func builds(_ name: String) throws {
    let keys = try Sample.runner().deviceKeys
    let container = try Sample.build(name, in: directory("work"), deviceKeys: keys)
    let tree = try TreeListing(container.root)
    let flag = "user.com.apple.metadata:com_apple_backup_excludeItem"
    if let downloads = tree["Library/Application Support/Downloads"] {
      #expect(downloads.attributes[Array(flag.utf8)]?.count == 61)
      #expect(tree["tmp"]?.kind == .directory)
    }
    #expect(!tree.paths.contains { $0.hasSuffix(".sql") || $0.hasSuffix(".yaml") })
    #expect(throws: DrydockError.self, "what exists is never overwritten") {
      try Sample.build(name, in: directory("work"), deviceKeys: keys)
    }
  }

  @Test("Modes and attributes are set")
  func metadata() throws {
    let root = try Sample.build("v0", in: directory("work")).root
    let note = try TreeListing(root)["Documents/Notes/First.md"]
    #expect(note?.mode == 0o600)
    #expect(note?.attributes[Array("user.com.example.notes.color".utf8)] == Array("red".utf8))
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
