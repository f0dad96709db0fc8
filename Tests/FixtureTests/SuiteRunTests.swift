import AppContainer
import DrydockErrors
import DrydockTesting
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite("A suite of fixtures is run as it is asked to")
struct SuiteRunTests {
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
}
