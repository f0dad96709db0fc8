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

  @Test(
    "The app's own number does not stand for migrations that nobody released: exit 4, and the two ways on")
  func firstContact() throws {
    try prepare(sandbox, number: 2)
    for arguments in ["migrate Notes", "migrate Notes --dry-run"] {
      try sandbox.expectRefusal(arguments, exit: 4, ["`schemaVersion` is 2", "never released (up to 2)"])
    }
    let status = try sandbox.drydock("status Notes").expect(exit: 4)
    for way in ["at: {0: 2}", "set the version to 2"] {
      #expect(status.errors.contains(way), "\(status)")
    }
    try sandbox.write("drydock.yaml", Self.configuration.replacing("Version}", with: "Version, at: {0: 2}}"))
    let output = try sandbox.succeed("migrate Notes")
    #expect(output.hasPrefix("version 0 (the app's 2) → 2\n"), "\(output)")
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

  @Test("A container without the number is of the version that `absent` says")
  func absent() throws {
    try prepare(sandbox, number: nil)
    try sandbox.expectRefusal("migrate Notes", exit: 4, ["absent: 0"])
    try sandbox.write("drydock.yaml", Self.configuration.replacing("Version}", with: "Version, absent: 0}"))
    #expect(try sandbox.succeed("migrate Notes").hasPrefix("version 0 → 2\n"))
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

  @Test("A late number runs with --allow-out-of-order, also each by itself")
  func lateNumbers() throws {
    try sandbox.write(
      "drydock.yaml",
      """
      layout: ios
      databases: {notes: Documents/notes.sqlite}
      migrations: {path: Own, format: golang-migrate, database: notes}

      """)
    try sandbox.shell("mkdir -p Notes/Documents Notes/Library")
    for number in [1, 20] { try sandbox.write("Own/\(number)_m.up.sql", "CREATE TABLE t\(number) (x);\n") }
    try sandbox.succeed("migrate Notes")
    for number in [5, 6, 21] {
      try sandbox.write("Own/\(number)_m.up.sql", "CREATE TABLE t\(number) (x);\n")
    }
    for arguments in ["migrate Notes", "migrate Notes --dry-run", "migrate Notes --each"] {
      try sandbox.expectRefusal(arguments, exit: 4, ["0005_m", "--allow-out-of-order"])
    }
    try sandbox.drydock("status Notes").expect(exit: 4)
    try sandbox.succeed("migrate Notes --each --allow-out-of-order")
    let tables = try sandbox.sqlite(
      "Notes/Documents/notes.sqlite",
      "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE name LIKE 't%' ORDER BY rowid)")
    #expect(tables == "t1,t20,t5,t6,t21\n")
    try sandbox.drydock("status Notes").expect()
  }
}
