import DrydockTesting
import Foundation
import TestSupport
import Testing

@Suite("The sample app does what the tests need of it")
struct NotesAppTests {
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
}
