import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine
import TestSupport
import Testing

@testable import DrydockTesting

@Suite("A suite of fixtures is run as it is asked to") struct SuiteRunTests {
  private let sandbox: SuiteSandbox
  init() throws { sandbox = try SuiteSandbox() }

  /// One of two fixtures fails, and three more pass.
  private func makeBroken() throws {
    try sandbox.makeSound()
    try sandbox.migration("0001_start", "  - defaults.set-default: {values: {theme: light, size: 11}}")
    for number in 1...3 { try sandbox.fixture("z\(number)", more: "expect: {settings: {look: dark}}") }
  }

  @Test("Results come by name, whatever the number of jobs", arguments: [1, 4])
  func order(jobs: Int) throws {
    try makeBroken()
    sandbox.options.jobs = jobs
    var told: [String] = []
    let result = try sandbox.suite().run { told.append($0.name) }
    #expect(told == ["new", "one", "z1", "z2", "z3"])
    #expect(result.fixtures.map(\.name) == told)
    #expect(result.fixtures.map(\.state) == [.failed] + Array(repeating: .passed, count: 4))
    #expect(!result.passed)
  }

  @Test("The first failure can be the last")
  func failFast() throws {
    try makeBroken()
    sandbox.options.failsFast = true
    let result = try sandbox.run()
    #expect(result.fixtures.map(\.state) == [.failed] + Array(repeating: .notRun, count: 4))
    #expect(!result.passed && result.notes.count == 1 && result.findings.isEmpty)
  }

  @Test("A filter names fixtures; one that names none is an error")
  func filter() throws {
    try makeBroken()
    sandbox.options.filter = ["z*", "!z2"]
    let result = try sandbox.run()
    #expect(result.fixtures.map(\.name) == ["z1", "z3"] && result.passed)
    #expect(result.notes.first?.hasPrefix("cross-fixture checks skipped") == true)
    sandbox.options.filter = ["q*"]
    #expect(throws: DrydockError.self) { try sandbox.suite() }
  }

  @Test("The containers of failures are kept, migrated, with the key of their vault")
  func keep() throws {
    try makeBroken()
    sandbox.options.keep = sandbox.directory("kept")
    try RawFiles.createDirectories(sandbox.directory("kept/new"))
    let result = try sandbox.run()
    #expect(
      result.fixtures.map(\.kept) == [sandbox.directory("kept/new-2")] + Array(repeating: nil, count: 4))
    let names = try FileManager.default.subpathsOfDirectory(atPath: sandbox.directory("kept/new-2"))
    #expect(names.contains("container/Documents/Notes/note.md") && names.contains("device-key.txt"))
    #expect(!names.contains { $0.contains("expected") })
  }

  @Test("A known failure fails nothing, until it passes")
  func known() throws {
    try makeBroken()
    try sandbox.write(
      "Fixtures/new/fixture.yaml", "version: 0\nknown-failure: The size is another one since 4.2.\n")
    var result = try sandbox.run()
    #expect(result.fixtures[0].state == .knownFailure && result.fixtures[0].findings.count == 1)
    #expect(result.passed)
    try sandbox.write(
      "Fixtures/z1/fixture.yaml", "version: 1\nknown-failure: Why.\nexpect: {settings: {look: dark}}\n")
    result = try sandbox.run()
    #expect(result.fixtures[2].state == .failed && result.fixtures[2].findings.map(\.check) == [.known])
    #expect(!result.passed)
  }

  @Test("Scripts of one fixture do not disturb the locks of another")
  func scripts() throws {
    try sandbox.write(
      "Migrations/0001_script/migration.yaml", "steps:\n  - script: {run: run.sh}\nirreversible: true\n")
    try sandbox.write("Migrations/0001_script/run.sh", "#!/bin/sh\necho done > Documents/done\n")
    try #require(chmod(sandbox.directory("Migrations/0001_script/run.sh"), 0o755) == 0)
    for number in 1...8 {
      try sandbox.fixture("f\(number)", version: 0, more: "expect: {files: [Documents/done]}")
    }
    sandbox.options.jobs = 4
    let found = try sandbox.found()
    #expect(found == [])
  }

  @Test("Migrations of other tools go up and down, and their record is theirs")
  func tools() throws {
    try sandbox.write(
      "Migrations/00001_projects.sql",
      "-- +goose Up\nCREATE TABLE project (id INTEGER PRIMARY KEY);\n-- +goose Down\nDROP TABLE project;\n")
    sandbox.configuration.versionMarkers = []
    let tool = MigrationTool(.goose, database: "notes")
    let expect = "expect: {files: [\(SuiteSandbox.database)]}"
    try sandbox.fixture("there", version: 0, more: "unmarked: true\n\(expect)")
    try sandbox.write("Fixtures/none/fixture.yaml", "version: 0\n\(expect)\n")
    try sandbox.write("Fixtures/none/container/\(SuiteSandbox.settings).yaml", "size: 12\n")
    let found = try sandbox.found(MigrationCatalog.load(sandbox.directory("Migrations"), tool: tool))
    #expect(found == [])
  }

  @Test("What another tool's statements lose is announced beside them")
  func toolLosses() throws {
    try sandbox.write(
      "Migrations/00001_done.sql",
      "-- +goose Up\nALTER TABLE task DROP COLUMN done;\n-- +goose Down\nALTER TABLE task ADD COLUMN done INTEGER;\n"
    )
    sandbox.configuration.versionMarkers = []
    let tool = MigrationTool(.goose, database: "notes")
    try sandbox.fixture(
      "there", version: 0, more: "unmarked: true\nexpect: {files: [\(SuiteSandbox.database)]}")
    func found() throws -> [String] {
      try sandbox.found(MigrationCatalog.load(sandbox.directory("Migrations"), tool: tool))
    }
    let lost = try found()
    #expect(lost.contains { $0.contains("`loses: {task.done: \"why\"}`") }, "\(lost)")
    try sandbox.write(
      "Migrations/00001_losses.yaml",
      "steps: []\nloses: {task.done: nobody reads it}\ndown-loses: {task.done: it is gone}\n")
    #expect(try found() == [])
  }

  @Test("A suite sees the goldens that it has recorded")
  func recorded() throws {
    try sandbox.makeSound(released: 3)
    try FileManager.default.removeItem(atPath: sandbox.directory("Fixtures/one/expected/1"))
    try FileManager.default.removeItem(atPath: sandbox.directory("Fixtures/one/expected/3"))
    let suite = try sandbox.suite()
    #expect(try suite.releaseDemands.contains { $0.message.contains("no golden of version 3") })
    #expect(try !suite.run().passed)
    #expect(try suite.record().count { $0.change == .written } == 2)
    #expect(try suite.record().allSatisfy { $0.change == .unchanged })
    #expect(try suite.run().fixtures.flatMap(\.findings).isEmpty)
    #expect(try !suite.releaseDemands.contains { $0.message.contains("no golden") })
  }

  @Test("A fixture that cannot be built says why, and nothing of it is kept")
  func malformed() throws {
    try makeBroken()
    sandbox.options.keep = sandbox.directory("kept")
    try RawFiles.createDirectories(sandbox.directory("kept"))
    try sandbox.fixture("bad", more: "expect: {settings: {look: dark}}", sql: "CREATE TABEL task;\n")
    let result = try sandbox.run()
    #expect(result.fixtures[0].findings.map(\.check) == [.build], "\(result.fixtures[0].findings)")
    #expect(result.fixtures[0].kept == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.directory("kept")) == ["new"])
    #expect(result.notes.contains { $0.contains("bad could not be migrated") }, "\(result.notes)")
  }

  @Test("Nothing is left behind, and fixtures are only read")
  func traces() throws {
    try makeBroken()
    let before = try TreeListing(sandbox.directory.path)
    _ = try sandbox.run()
    #expect(try TreeListing(sandbox.directory.path).differences(from: before) == [])
  }

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

  @Test(
    "Every difference of a path is found",
    arguments: [
      ("printf xx > note", "the bytes differ"), ("chmod 640 note", "the mode differs: 600 / 640"),
      ("touch -d @7 note", "the modification time differs"),
      ("touch -h -d @7 link", "the modification time differs"),
      ("rm note; rm -f hard", "the path is gone"),
      ("ln -sfn other link; touch -h -d @5 link", "the link points elsewhere: note / other"),
      ("touch new", "the path is new"),
      ("rm hard && cp -p note hard", "the path is a hard link of another path: hard / note"),
      ("rm link && mkdir link", "the path has another type: symbolicLink / directory"),
      ("chmod 700 .", "the mode differs: 755 / 700"),
    ])
  func differences(_ change: String, _ message: String) throws {
    try TemporaryDirectory.with { directory in
      func run(_ script: String) throws {
        #expect(try Command.run("/bin/sh", ["-c", "cd \"$0\" && \(script)", directory.path]).succeeded)
      }
      try run(
        "chmod 755 . && printf x > note && chmod 600 note && ln note hard && ln -s note link && touch -h -d @5 note link"
      )
      let before = try ExactState(of: Directory(directory.path))
      #expect(try ExactState(of: Directory(directory.path)).findings(since: before, .rollback) == [])
      try run(change)
      let found = try ExactState(of: Directory(directory.path)).findings(since: before, .rollback)
      let lines = found.map { finding in
        finding.message + (finding.expected.map { ": \($0) / \(finding.found ?? "-")" } ?? "")
      }
      #expect(lines.contains { $0.hasPrefix(message) }, "\(message)\n\(found)")
    }
  }

  @Test("What another program changes beside the transaction does not go unnoticed")
  func tampered() throws {
    try sandbox.makeSound(recorded: false)
    // Its name is this test's alone: others run at the same time.
    try sandbox.write("Fixtures/new/container/Documents/tampered.md", "x")
    // A closure reaches beside the stage, as no operation can: the attribute is no part of what is undone.
    let catalog = try MigrationCatalog(migrations: [
      .custom(version: 1, "tamper") { context in
        try context.settings.set(7, for: SettingKey<Int>("seven"))
        let scratch = NSTemporaryDirectory()
        // The name is this test's alone: others run beside it, with scratch directories in the same place.
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch)
        where name.hasPrefix("drydock-scratch-") {
          let note = scratch + "/" + name + "/1/container-main/container/Documents/tampered.md"
          if FileManager.default.fileExists(atPath: note) {
            try ExtendedAttributes.set("user.tampered", Array("x".utf8), of: Array(note.utf8))
          }
        }
      }
    ])
    try sandbox.write("Fixtures/new/container/Documents/tampered.md", "A note.\n")
    sandbox.options.filter = ["new"]
    let found = try sandbox.found(catalog)
    #expect(
      found.contains { $0.hasPrefix("new: rollback Documents/tampered.md: the attributes differ") },
      "\(found)")
  }

  @Test("Migrating again must change nothing")
  func again() throws {
    try sandbox.makeSound(recorded: false)
    let runner = try FixtureRunner(catalog: sandbox.catalog(), configuration: sandbox.configuration)
    let fixture = try Fixture.load(sandbox.directory("Fixtures/one"))
    let work = FixtureWork(fixture: fixture, runner: runner, scratch: try Directory(sandbox.directory.path))
    var checks = FixtureChecks(work, freshVersions: [])
    let container = try work.container("again")
    // Not migrated yet: there is everything to do.
    try checks.checkAgain(container)
    #expect(
      checks.checked.result.findings.contains { $0.check == .again && $0.place == "Documents/notes.sqlite" },
      "\(checks.checked.result.findings)")
    checks = FixtureChecks(work, freshVersions: [])
    try checks.checkAgain(container)
    #expect(checks.checked.result.findings == [])
  }
}
