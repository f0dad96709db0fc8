import Foundation
import TestSupport
import Testing

/// An app that was there before Drydock: its containers have version numbers of its own, or none.
@Suite("Adopting an app")
struct AdoptionTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox() }

  private static let configuration =
    "layout: ios\nmigrations: Own\nversion-markers: [{defaults: schemaVersion}]\n"

  /// A container of the app's version, and two migrations that are new.
  private func prepare(_ sandbox: Sandbox, _ name: String = "Notes", number: Int? = 7) throws {
    let key = number.map { "<key>schemaVersion</key><integer>\($0)</integer>" } ?? ""
    try sandbox.write("drydock.yaml", Self.configuration)
    for number in 1...2 {
      try sandbox.write("Own/000\(number)_m.yaml", "steps: [defaults.set: {values: {m\(number): true}}]\n")
    }
    try sandbox.shell("mkdir -p \(name)/Documents \(name)/Library/Preferences")
    try sandbox.write(
      "\(name)/Library/Preferences/com.example.own.plist",
      "<plist version=\"1.0\"><dict><key>theme</key><string>sepia</string>\(key)</dict></plist>\n")
  }

  @Test("`init` writes the number that it found as the one before the first migration")
  func initWritesAt() throws {
    try prepare(sandbox)
    try sandbox.succeed("release 1 -m Own")
    func written() throws -> String {
      try sandbox.remove("drydock.yaml")
      try sandbox.succeed("init Notes")
      return try sandbox.text("drydock.yaml")
    }
    #expect(try written().contains("version-markers:\n  - {defaults: \"schemaVersion\", at: {0: 7}}\n"))
    #expect(
      try sandbox.succeed("status Notes -m Own").hasPrefix("version 0 (the app's 7) of 2, by the setting"))
    let settings = "Notes/Library/Preferences/com.example.own.plist"
    try sandbox.shell("sed -i 's/>7</>0</' \(settings)")
    #expect(try written().contains("\n  - {defaults: \"schemaVersion\", absent: 0}\n"))
    // Without a number it is a proposal only.
    try sandbox.shell("sed -i 's/schemaVersion/other/' \(settings)")
    #expect(try written().contains("\n#   - {defaults: dataSchemaVersion, absent: 0}\n"))
    try sandbox.sqlite("Notes/Documents/notes.sqlite", "CREATE TABLE t(x); PRAGMA user_version = 4")
    #expect(try written().contains("version-markers:\n  - {pragma: notes, at: {0: 4}}\n"))
  }

  @Test(
    "`baseline --all` says it of those only of which nothing else does; `repair --all` repairs who needs it")
  func many() throws {
    for (name, number) in [("anna", nil), ("ben", 2), ("carl", 0)] as [(String, Int?)] {
      try prepare(sandbox, "All/" + name, number: number)
    }
    try sandbox.succeed("migrate All/carl --to 1")
    let result = try sandbox.drydock("baseline --all All --to 2").expect()
    let rows = result.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    #expect(
      rows.dropLast() == [
        "anna changed version 2", "ben changed version 2",
        "carl unchanged version 1 already, by the history", "3 containers: 2 changed, 1 unchanged",
      ], "\(result)")
    #expect(rows.last?.hasPrefix("run ") == true, "\(result)")
    try sandbox.write("Own/0001_m.yaml", "steps: []\n")
    try sandbox.drydock("migrate --all All").expect(exit: 3)
    let repaired = try sandbox.drydock("repair --all All --accept 1 --json").expect()
    let states = repaired.output.matches(of: #/"state":"(\w+)"/#).map { String($0.1) }
    #expect(states == ["unchanged", "unchanged", "changed"], "\(repaired)")
    try sandbox.drydock("repair --all All --accept 9").expect(
      exit: 64, errors: "no migration has that number")
    try sandbox.drydock("migrate --all All").expect()
  }

  @Test(
    "drydock's own working directory is no use of the container, and what is named from it is found afterwards"
  )
  func ownDirectory() throws {
    try prepare(sandbox, number: 0)
    func drydock(_ arguments: String..., in directory: String) throws -> CommandResult {
      try Command.run(
        sandbox.program, arguments, environment: sandbox.environment, directory: sandbox(directory))
    }
    try drydock("migrate", ".", "--each", "-m", "../Own", in: "Notes").expect()
    #expect(try sandbox.succeed("status Notes").hasPrefix("version 2 of 2"))
    try drydock("rollback", "..", "--to", "0", "-m", "../../Own", in: "Notes/Documents").expect()
    // A shell would be left in a directory that is gone.
    let shell = try Command.spawn("/bin/sh", ["-c", "echo ready; read x"], directory: sandbox("Notes"))
    try shell.waitForLine("ready")
    try sandbox.expectRefusal(
      "migrate Notes", exit: 5, ["process \(shell.process)", "leave that directory and run it again"])
    try shell.finish()
  }
}
