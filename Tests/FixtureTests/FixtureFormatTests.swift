import DrydockErrors
import DrydockTesting
import Foundation
import TestSupport
import Testing

@Suite("What a fixture says is read with care") struct FixtureFormatTests {
  private let sandbox: FixtureSandbox
  init() throws { sandbox = try FixtureSandbox() }

  @Test(
    "A fixture that is written wrongly says where",
    arguments: [
      ("versoin: 0\nexpect: {files: [a]}\n", "fixture.yaml:1:1: unknown key `versoin`"),
      ("version: -1\nexpect: {files: [a]}\n", "fixture.yaml:1:10: `version` is 0 or more"),
      ("version: 99999999999999999999\n", "does not fit 64 bits"),
      ("version: 0\nexpect: {}\n", "names nothing that must be there"),
      ("version: 0\nexpect: {absent: [a]}\n", "names nothing that must be there"),
      ("version: 0\nexpect: {error: [x], files: [a]}\n", "is alone"),
      ("version: 0\nexpect: {error: x, lost-rows: {a: {b: 1}}}\n", "is alone"),
      ("version: 0\nexpect: {files: [../a]}\n", "fixture.yaml:2:18:"),
      ("version: 0\nexpect: {files: [/a]}\n", "fixture.yaml:2:18:"),
      ("version: 0\nexpect: {files: ['../*']}\n", "a pattern is relative to the container"),
      ("version: 0\nexpect: {files: [{path: a, count: -1}]}\n", "`count` is 0 or more"),
      ("version: 0\nexpect: {files: [{path: a, matches: '('}]}\n", "not a regular expression"),
      ("version: 0\nexpect: {settings: {a: null}}\n", "a setting cannot be null"),
      ("version: 0\nexpect: {settings: {a: 1}, absent-settings: [a]}\n", "both there and absent"),
      ("version: 0\nexpect: {suites: {x: {}}}\n", "nothing is expected of this suite"),
      ("version: 0\nexpect: {queries: [{database: a, sql: x, rows: [[true]]}]}\n", "has no Bool: write 1"),
      ("version: 0\nexpect: {queries: [{database: a, sql: x, rows: [[[1]]]}]}\n", "a query gives null"),
      ("version: 0\nexpect: {queries: [{database: /a, sql: x, rows: []}]}\n", "nor a path in a container"),
      ("version: 0\nexpect: {files: a, lost-rows: {a: {b: 0}}}\n", "is 1 or more"),
      ("version: 0\nexpect: {protection: {a: complet}}\n", "did you mean `complete`?"),
      ("version: 0\ncontainer: {modes: {a: 0o77777}}\n", "a mode is written like"),
      ("version: 0\ncontainer: {modes: {../a: 0o777}}\n", "fixture.yaml:2:21:"),
      ("version: 0\ncontainer: {attributes: {a: {b: 1}}}\n", "text or !data"),
      ("version: 0\ncontainer: {vault: [{service: a, value: b}]}\n", "needs the key `accessible`"),
      ("version: 0\ncontainer: {vault: [{service: a, accessible: always, value: 7}]}\n", "quote it"),
      (
        """
        version: 0
        container:
          vault:
            - {service: a, accessible: always, value: b}
            - {service: a, accessible: whenUnlocked, value: c}
        """, "fixture.yaml:5:7: the vault item a is there twice"
      ),
      ("version: 0\ncontainer: {directories: [a]}\nvolatile: {columns: [a]}\n", "not TABLE.COLUMN"),
      ("version: 0\n", "the fixture has no content"),
      (
        "version: 0\ncontainer: {directories: [a]}\nknown-failure: ' '\n",
        "fixture.yaml:3:16: `known-failure`"
      ),
      ("version: 0\nfresh: true\nreinstalled: true\n", "fixture.yaml:3:14: a fixture is `fresh` or"),
      ("version: 0\nfresh: yes\n", "fixture.yaml:2:8: `fresh` is true or false"),
      ("", "the file is empty"), ("- 1\n", "fixture.yaml:1:1:"),
      ("version: 0\nversion: 1\n", "duplicate key"),
    ])
  func mistakes(text: String, message: String) throws {
    try sandbox.write("fixture.yaml", text)
    let said = FixtureSandbox.message(sandbox.load)
    #expect(said.contains(message), "\(said)")
    #expect(!said.contains("made-up"))
  }

  @Test("What looks like a part of a fixture and is none is an error")
  func strayParts() throws {
    try sandbox.describe("container: {directories: [a]}\n")
    try sandbox.write("README.md", "why")
    try sandbox.write(".DS_Store", "x")
    try sandbox.write("expected/.DS_Store", "x")
    try sandbox.write("expected/6/files.txt", "x")
    #expect(try sandbox.load().goldens.keys.sorted() == [6])
    for (path, message) in [
      ("containr/a", "did you mean `container`?"), ("group/x/a", "did you mean `groups`?"),
      ("container.tar.zst.age", "must not be encrypted"), ("container.zip", "not a part of a fixture"),
      ("expected/latest/files.txt", "named after its schema version"), ("expected/07/x", "expected/6"),
      ("expected/7", "expected/6"),
    ] {
      try sandbox.write(path, "x")
      let said = FixtureSandbox.message(sandbox.load)
      #expect(said.contains(message), "\(path): \(said)")
      let top =
        path.hasPrefix("expected/")
        ? path.split(separator: "/").prefix(2) : path.split(separator: "/").prefix(1)
      let made = sandbox.directory(FixtureSandbox.fixture + "/" + top.joined(separator: "/"))
      try FileManager.default.removeItem(atPath: made)
    }
    try sandbox.write("container.tar.zst", "x")
    #expect(FixtureSandbox.message(sandbox.build).contains("container.tar.zst"))
    try sandbox.write("container/a", "x")
    #expect(FixtureSandbox.message(sandbox.load).contains("an archive is the whole container"))
  }

  @Test("What fixtures.yaml says holds for every fixture beside it")
  func common() throws {
    let common = """
      volatile: {settings: [installed], columns: [task.at], files: ["*.log"], patterns: ["[0-9]+"]}
      optional-settings: [fontSize]
      """
    try sandbox.write("../fixtures.yaml", common)
    try sandbox.describe("volatile: {settings: [other], files: ['!a.log']}\noptional-settings: [zoom]\n")
    let names = [FixtureSandbox.fixture, "./\(FixtureSandbox.fixture)/", "\(FixtureSandbox.fixture)/../one"]
    for name in names {
      let fixture = try Fixture.load(sandbox.directory(name))
      #expect(fixture.name == "one" && fixture.volatile.settings == ["installed", "other"])
      #expect(fixture.optionalSettings == ["fontSize", "zoom"] && fixture.volatile.patterns == ["[0-9]+"])
      let files = fixture.volatile.files
      #expect(files.decisive(for: "b.log", isDirectory: false)?.description == "*.log")
      #expect(files.decisive(for: "a.log", isDirectory: false)?.description == "!a.log")
      #expect(files.contains("b.log", isDirectory: false) && !files.contains("a.log", isDirectory: false))
    }
    #expect(try Fixture.all(in: sandbox.directory("Fixtures"))[0].optionalSettings == ["fontSize", "zoom"])
    try sandbox.write("../fixtures.yaml", "volatil: {}\n")
    #expect(FixtureSandbox.message(sandbox.load).contains("fixtures.yaml:1:1: unknown key `volatil`"))
  }

  @Test("Rows that may be lost say nothing of what it must be like")
  func says() throws {
    for (yaml, says) in [
      ("", false), ("expect: {lost-rows: {notes: {task: 1}}, absent: [a]}", false),
      ("expect: {excluded: Documents}", true), ("expect: {vault: [{accessible: always, value: x}]}", true),
      ("expect: {error: x}", true),
      ("expect: {files: [{path: a, count: 0}], absent-settings: [b], settings: {c: 1}}", true),
    ] {
      try sandbox.describe(yaml)
      #expect(try sandbox.load().saysWhatItMustBe == says, "\(yaml)")
    }
    try sandbox.describe("")
    try sandbox.write("expected/3/files.txt", "")
    #expect(try sandbox.load().saysWhatItMustBe)
  }

  @Test("A directory without fixtures is an error, and so is one that is none")
  func none() throws {
    try TemporaryDirectory.with { directory in
      #expect(throws: DrydockError.self) { try Fixture.all(in: directory.path) }
      #expect(FixtureSandbox.message { try Fixture.load(directory.path) }.contains("has no fixture.yaml"))
    }
  }
}
