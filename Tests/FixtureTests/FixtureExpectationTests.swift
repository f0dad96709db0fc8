import AppContainer
import FixtureTesting
import TestSupport
import Testing

@Suite("Expectations of fixtures are really checked")
struct FixtureExpectationTests {
  @Test("The latest version is as expected without a migration")
  func latest() throws {
    #expect(try findings("v6", asExpectedBy: "v6") == [])
  }

  @Test("A container that was not migrated is not as expected")
  func notMigrated() throws {
    let lines = try findings("v0", asExpectedBy: "v0")
    for wanted in [
      "the setting `username` is absent, expected the string \"Ada Lovelace\"",
      "the setting `user_name` is \"Ada Lovelace\", expected none",
      "the database Library/Application Support/database.sqlite is absent",
      "Documents/database.sqlite exists, expected none",
    ] {
      #expect(lines.contains { $0.hasPrefix(wanted) || $0 == wanted }, "\(wanted)\n\(lines)")
    }
  }

  @Test("Rows, types and flags count")
  func details() throws {
    try TemporaryDirectory.with { directory in
      let lines = try findings("v6", asExpectedBy: "v3")
      #expect(lines.count == 1 && lines[0].contains("the text `Oat, not cow`"), "\(lines)")
      let keys = try Sample.runner().deviceKeys
      try Sample.fixture("v6").build(into: directory("container"), deviceKeys: keys)
      let flag = "user.com.apple.metadata:com_apple_backup_excludeItem"
      try ExtendedAttributes.remove(
        flag, of: Array(directory("container/Library/Application Support/Downloads").utf8))
      #expect(
        try #require(Sample.fixture("v6").expectation).findings(
          in: directory("container"), defaults: Sample.defaults, deviceKeys: keys)
          == ["Library/Application Support/Downloads is not flagged as excluded from backups"])
    }
  }

  @Test("Vault items count, by name, class and value, and no value is shown")
  func vault() throws {
    let name = "the vault item com.example.notes/auth"
    #expect(try findings("v6", asExpectedBy: "v5").contains("\(name) has another value (19 bytes)"))
    #expect(try findings("v4", asExpectedBy: "v5").contains("\(name) is absent"))
    try TemporaryDirectory.with { directory in
      let keys = try Sample.runner().deviceKeys
      let items = """
        - {service: com.example.notes, account: auth, accessible: whenUnlocked, value: made-up-token-ada-6}
        - {service: com.example.notes, account: more, accessible: whenUnlocked, value: made-up}
        """
      let text = "version: 6\ncontainer:\n  vault:\n\(items.indented)\nexpect: {files: [a]}\n"
      try RawFiles.write(Array(text.utf8), to: Array(directory("fixture.yaml").utf8))
      #expect(try Command.run(Tools.system("mkdir"), [directory("container")]).succeeded)
      try Fixture.load(directory.path).build(into: directory("built"), deviceKeys: keys)
      let lines = try #require(Sample.fixture("v6").expectation).findings(
        in: directory("built"), defaults: Sample.defaults, deviceKeys: keys)
      #expect(lines.contains("\(name) is accessible whenUnlocked, expected afterFirstUnlock"), "\(lines)")
      #expect(lines.contains("the vault item com.example.notes/more exists, expected none"), "\(lines)")
      #expect(!lines.contains { $0.contains("made-up") })
    }
  }

  @Test("Looking changes nothing")
  func looksOnly() throws {
    try TemporaryDirectory.with { directory in
      let fixture = try Sample.fixture("rows-only-in-wal")
      try fixture.build(into: directory("container"))
      let before = try TreeListing(directory("container"))
      _ = try #require(fixture.expectation).findings(in: directory("container"), defaults: Sample.defaults)
      let after = try TreeListing(directory("container"))
      #expect(after.differences(from: before, comparing: TreeListing.untouched) == [])
    }
  }

  @Test(
    "A fixture that is written wrongly says where",
    arguments: [
      ("versoin: 0\nexpect: {files: [a]}\n", "fixture.yaml:1:1: unknown key `versoin`"),
      ("version: -1\nexpect: {files: [a]}\n", "fixture.yaml:1:10: `version` is 0 or more"),
      ("version: 0\nexpect: {}\n", "names nothing that must be there"),
      ("version: 0\nexpect: {error: [x], files: [a]}\n", "stands alone"),
      ("version: 0\nexpect: {files: [../a]}\n", "fixture.yaml:2:"),
      ("version: 0\nexpect: {files: [a]}\ncontainer: {modes: {a: 0o77777}}\n", "a mode is written like"),
      ("", "the file is empty"),
    ])
  func mistakes(text: String, message: String) throws {
    try TemporaryDirectory.with { directory in
      try RawFiles.write(Array(text.utf8), to: Array(directory("fixture.yaml").utf8))
      do {
        _ = try Fixture.load(directory.path)
        Issue.record("it was accepted")
      } catch {
        #expect("\(error)".contains(message), "\(error)")
      }
    }
  }

  @Test("A directory without fixtures is an error")
  func none() throws {
    try TemporaryDirectory.with { directory in
      #expect(throws: FixtureError.self) { try Fixture.all(in: directory.path) }
    }
  }

  private func findings(_ built: String, asExpectedBy other: String) throws -> [String] {
    try TemporaryDirectory.with { directory in
      let keys = try Sample.runner().deviceKeys
      try Sample.fixture(built).build(into: directory("container"), deviceKeys: keys)
      return try #require(Sample.fixture(other).expectation).findings(
        in: directory("container"), defaults: Sample.defaults, deviceKeys: keys)
    }
  }
}

extension String {
  fileprivate var indented: String {
    split(separator: "\n").map { "    " + $0 }.joined(separator: "\n")
  }
}
