import Drydock
import Foundation
import TestSupport
import Testing

/// The example of the guide on migrations in Swift, as a program of its own.
@Suite struct NotesToolTests {
  private func tool(_ sandbox: Sandbox, _ line: String) throws -> CommandResult {
    try sandbox.execute(Tools.built("NotesTool"), line.words)
  }

  private func succeed(_ sandbox: Sandbox, _ line: String) throws -> String {
    try tool(sandbox, line).expect().output
  }

  @Test(arguments: ["Plan", "Tool"])
  func `The guide's example is this program's text, and its program has five lines`(_ part: String) throws {
    let root = Sandbox.repository
    let source = try String(contentsOfFile: "\(root)/Tests/NotesTool/Notes\(part).swift", encoding: .utf8)
    let guide = try String(contentsOfFile: "\(root)/Sources/Drydock/Drydock.docc/Library.md", encoding: .utf8)
    #expect(guide.contains("\n```swift\n\(source)```\n"))
    if part == "Tool" { #expect(source.split(separator: "\n").count == 5) }
  }

  @Test func `Status, validate, dry run, migrate and rollback work over the plan`() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let before = try sandbox.tree()
      let status = try succeed(sandbox, "status Notes")
      #expect(status.hasPrefix("version 0 of 4, by the setting `dataSchemaVersion`\n"), "\(status)")
      #expect(status.contains(/4  pending  token_to_vault +needs the device key/))
      let dry = try tool(sandbox, "migrate Notes --dry-run --exit-code").expect(
        exit: 2, output: "+ theme: \"dark\"", "+ column isCompleted")
      #expect(!dry.output.contains(Sandbox.token))
      #expect(try sandbox.tree().differences(from: before, comparing: TreeListing.untouched) == [])

      let migrated = try succeed(sandbox, "migrate Notes")
      #expect(migrated.contains("ran tidy_tasks: isDone becomes isCompleted"))
      #expect(migrated.contains("`NotesTool rollback Notes` undoes it"))
      let settings = try sandbox.settings()
      #expect(settings.contains("theme = dark") && settings.contains("window = 21 bytes"), "\(settings)")
      #expect(!settings.contains { $0.hasPrefix("auth_token") })
      #expect(try sandbox.filesWithToken() == [])
      #expect(try succeed(sandbox, "status Notes --exit-code").contains("4  applied  token_to_vault"))
      #expect(try succeed(sandbox, "vault list Notes").contains("com.example.notes/auth"))

      // By steps: the closures' own down steps, and the inverses of operations.
      let down = try succeed(sandbox, "rollback Notes --down --to 2")
      #expect(down.contains("token_to_vault") && down.contains("tidy_tasks"), "\(down)")
      let back = try sandbox.settings()
      #expect(
        back.contains("auth_token = \(Sandbox.token)") && !back.contains { $0.hasPrefix("window =") },
        "\(back)")
      _ = try succeed(sandbox, "rollback Notes --down --to 0")
      #expect(try sandbox.settings().contains("dark_mode = true"))
      #expect(
        sandbox.exists("Notes/\(Sandbox.oldDatabase)") && !sandbox.exists("Notes/\(Sandbox.newDatabase)"))
    }
  }

  @Test func `Help and messages have the program's own name, and no directory of migrations`() throws {
    try Sandbox.with { sandbox in
      for command in ["", "migrate", "status", "validate", "rollback"] {
        let help = try succeed(sandbox, command + " --help")
        #expect(help.contains("USAGE: NotesTool \(command)"), "\(help)")
        #expect(help.contains("  NotesTool ") || help.contains("Example: NotesTool "), "\(help)")
        let others = help.matches(of: /(?m)(^ *|`|: )drydock [a-z]/).map { String($0.output.0) }
        #expect(others == [], "\(help)")
        #expect(!help.contains(" -m "), "\(help)")
      }
      try sandbox.drydock("--help").expect(output: "  drydock migrate Notes -m Migrations --dry-run\n")
      let refused: [([String], String)] = [
        (["migrate", "Notes", "-m", "Migrations"], "NotesTool has built-in migrations: leave -m out"),
        (["new", "name"], "the migrations of NotesTool are in Swift, in NotesPlan, not in files"),
        (["release", "1.0"], "the migrations of NotesTool are in Swift, in NotesPlan, not in files"),
        (["stauts", "Notes"], "unknown command stauts; did you mean `status`?"),
      ]
      try sandbox.create()
      for (arguments, message) in refused {
        let result = try sandbox.execute(Tools.built("NotesTool"), arguments).expect(exit: 64)
        #expect(result.errors.hasPrefix("NotesTool: error: \(message)"), "\(result)")
      }
    }
  }

  private func container(_ sandbox: Sandbox) throws -> Container {
    try Container(at: sandbox("Notes"), configuration: ContainerConfiguration(file: sandbox("drydock.yaml")))
  }

  /// What a dry run returns; it shows the history as changed, and changes nothing.
  private func dryRun(
    _ change: ContainerChange<[String]>, _ sandbox: Sandbox
  ) throws -> DryRunOutcome<[String]> {
    let before = try sandbox.tree()
    let outcome = try container(sandbox).plan(change).dryRun()
    let files = outcome.difference.files.map(\.path.description)
    #expect(files.contains { $0.hasSuffix(".drydock/history.json") }, "\(outcome.difference)")
    #expect(files.allSatisfy { $0.contains("/.drydock") } && outcome.difference.settings.isEmpty)
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
    return outcome
  }

  @Test func `A dry run of a baseline and of a repair shows the history, and changes nothing`() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      // Nothing says the version.
      try sandbox.edit("drydock.yaml") { $0.replacing(/(?m)^version-markers.*\n/, with: "") }
      let catalog = try MigrationCatalog.load(sandbox("Migrations"))
      let baseline = ContainerChange.baseline(catalog, version: 1)
      let planned = try dryRun(baseline, sandbox)
      #expect(try container(sandbox).apply(baseline).value == planned.value)
      #expect(try container(sandbox).status(catalog).version == 1)
    }
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.succeed("migrate Notes --to 1 --no-snapshot")
      try sandbox.edit("Migrations/0001_default_settings.yaml") { $0 + "# Edited.\n" }
      let catalog = try MigrationCatalog.load(sandbox("Migrations"))
      #expect(try container(sandbox).status(catalog).problems.map(\.code) == [.edited])
      let repair = ContainerChange.repair(catalog, accept: [1])
      let repaired = try dryRun(repair, sandbox)
      #expect(try container(sandbox).status(catalog).problems.map(\.code) == [.edited])
      #expect(throws: DrydockError.self) {
        try container(sandbox).plan(.repair(catalog, remove: [1])).dryRun()
      }
      #expect(try container(sandbox).apply(repair).value == repaired.value)
      #expect(try container(sandbox).status(catalog).problems.isEmpty)
    }
  }
}
