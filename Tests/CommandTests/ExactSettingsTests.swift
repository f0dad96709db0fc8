import Formats
import Foundation
import TestSupport
import Testing

/// Settings and databases that only look alike, through the program.
@Suite(.timeLimit(.minutes(2))) struct ExactSettingsTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    try sandbox.create()
  }

  private static let composed = "caf\u{E9}", decomposed = "cafe\u{301}"

  private func change(_ name: String, _ body: (inout PropertyListFile) -> Void) throws {
    let path = "\(name)/\(Sandbox.settings)"
    var file = try PropertyListFile(bytes: sandbox.read(path))
    body(&file)
    try sandbox.write(path, bytes: file.encoded())
  }

  @Test("diff and verify --container find text that differs in its spelling alone")
  func spelling() throws {
    try change("Notes") { $0.root["place"] = .string(Self.composed) }
    let archive = try sandbox.snapshot()
    try sandbox.drydock("verify", archive, "--container", "Notes").expect()
    try sandbox.copy("Notes", to: "Other")
    try change("Other") { $0.root["place"] = .string(Self.decomposed) }
    try sandbox.drydock("diff Notes Other --exit-code").expect(exit: 2, output: "~ place")
    let verified = try sandbox.drydock("verify", archive, "--container", "Other")
    #expect(verified.exitCode != 0, "\(verified)")
  }

  @Test(
    "A migration keeps both spellings of a key, and changes the one it names", arguments: ["binary", "xml"])
  func keys(_ format: String) throws {
    try change("Notes") { file in
      file.format = format == "xml" ? .xml : .binary
      file.root[Self.composed] = "one"
      file.root[Self.decomposed] = "two"
      file.root["zero"] = .real(-0.0)
    }
    try sandbox.remove("Migrations")
    try sandbox.write(
      "Migrations/0001_spelled.yaml",
      """
      description: One of two keys
      steps:
        - defaults.rename:
            keys: {"cafe\\u0301": bar}
        - defaults.set:
            values: {other: 1}
      """)
    try sandbox.succeed("migrate Notes")
    let root = try PropertyListFile(bytes: sandbox.read("Notes/" + Sandbox.settings)).root
    #expect(root[Self.composed] == "one" && root[Self.decomposed] == nil && root["bar"] == "two")
    #expect(root["zero"] == .real(-0.0))
    try sandbox.succeed("rollback Notes")
    let back = try PropertyListFile(bytes: sandbox.read("Notes/" + Sandbox.settings)).root
    #expect(back[Self.composed] == "one" && back[Self.decomposed] == "two" && back["bar"] == nil)
  }

  @Test("A database of an odd size is captured as a database")
  func oddSize() throws {
    let path = "Notes/Documents/odd.db"
    try sandbox.sqlite(path, "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    let whole = try sandbox.read(path)
    try sandbox.write(path, bytes: whole + [1, 2, 3])
    #expect(try sandbox.drydock("inspect Notes").output.contains("Documents/odd.db"))
    let archive = try sandbox.snapshot()
    try sandbox.drydock("show", archive, "--json").expect(output: "odd.db")
    try sandbox.succeed("restore", archive, "Again")
    #expect(try sandbox.read("Again/Documents/odd.db").count == whole.count)
    let rows = try sandbox.sqlite("Again/Documents/odd.db", "SELECT sum(a) FROM t")
    #expect(rows == "6\n")
  }
}
