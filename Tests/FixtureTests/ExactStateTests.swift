import FileSystem
import Foundation
import MigrationEngine
import TestSupport
import Testing

@testable import DrydockTesting

@Suite("A rollback must give back exactly what was")
struct ExactStateTests {
  private let sandbox: SuiteSandbox

  init() throws { sandbox = try SuiteSandbox() }

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
