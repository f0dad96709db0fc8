import Foundation
import TestSupport
import Testing

/// What `drydock test` tells pipelines; what it checks is tested in `FixtureTests`.
@Suite struct TestCommandTests {
  private let sandbox: Sandbox

  /// One fixture that passes and one that fails, told apart by what is expected.
  init() throws {
    sandbox = try Sandbox()
    for name in ["v5", "v6"] { try sandbox.addFixture(name) }
    let file = "Fixtures/v5/fixture.yaml"
    let text = try sandbox.text(file)
    let wrong = text.replacing(/theme: \w+\n/, with: "theme: sepia\n")
    #expect(text != wrong)
    try sandbox.write(file, wrong)
  }

  @Test func `A failure is exit code 1 and one document, which names the fixture and what is wrong`() throws {
    let result = try sandbox.drydock("test v5 v6 --json --jobs 2").expect(exit: 1)
    #expect(result.errors.isEmpty, "\(result)")
    let document = try result.json()
    #expect(document.oddKeys == [])
    #expect(document["passed"].flag == false && !document["error"].exists)
    let fixtures = document["fixtures"].list.map { [$0["name"].text, $0["state"].text] }
    #expect(fixtures == [["v5", "failed"], ["v6", "passed"]])
    let finding = document["fixtures"][0]["findings"][0]
    #expect(finding["check"].text == "expectation" && finding["count"].number == 1)
    let groups = document["groups"]
    #expect(groups.list.count == 1 && groups[0]["checks"].texts == ["expectation"], "\(groups)")
    #expect(groups[0]["fixtures"].list.map { $0["name"].text } == ["v5"])
    try sandbox.drydock("test v6 --json").expect()
  }

  /// That it is valid is checked by `JUnitReportTests`.
  @Test func `The JUnit file's directory is made, and it is written when all pass, too`() throws {
    try sandbox.succeed("test v6 --junit reports/v6/drydock.xml")
    let text = try sandbox.text("reports/v6/drydock.xml")
    #expect(text.contains("failures=\"0\"") && text.contains("<testcase name=\"v6\""))
    // Before minutes of checks, not after.
    for options in [["--junit", "reports"], ["--save-failures", "drydock.yaml"]] {
      let refused = try sandbox.drydock(["test", "v5"] + options).expect(exit: 64)
      #expect(refused.output.isEmpty, "\(refused)")
    }
    let file = try sandbox.drydock("test v5 --junit drydock.yaml/report.xml").expect(exit: 1)
    #expect(file.output.isEmpty, "\(file)")
    #expect(file.errors.hasPrefix("drydock: error: drydock.yaml/report.xml: the report cannot be written"))
  }

  @Test func `Markdown and SARIF are of the fixtures, and of migrations that are invalid`() throws {
    try sandbox.drydock("test v5 v6 --markdown out/a.md --sarif out/a.sarif").expect(exit: 1)
    let text = try sandbox.text("out/a.md")
    #expect(text.hasPrefix("### ❌ Migration tests\n\n2 fixtures: 1 passed, 1 failed: FAILED\n"))
    #expect(try Self.places(sandbox, "out/a.sarif") == ["test/expectation Fixtures/v5/fixture.yaml"])
    try sandbox.write("Migrations/0003_move_database.yaml", "steps:\n  - files.mve: {}\n  - sql: {}\n")
    for words in [["validate"], ["test", "v6"]] {
      let invalid = try sandbox.drydock(
        words + ["--sarif", "out/b.sarif"], environment: ["GITHUB_ACTIONS": "true"]
      ).expect(exit: 4)
      #expect(
        try Self.places(sandbox, "out/b.sarif")
          == Array(repeating: "validate/catalog Migrations/0003_move_database.yaml", count: 2))
      let commands = invalid.errors.split(separator: "\n").filter { $0.hasPrefix("::error") }
      #expect(
        commands.map { $0.prefix { $0 != "%" } } == [
          "::error file=Migrations/0003_move_database.yaml,line=2,col=5,title=migrations",
          "::error file=Migrations/0003_move_database.yaml,line=3,col=10,title=migrations",
        ], "\(invalid)")
      try sandbox.remove("out/b.sarif")
    }
  }

  /// The rule and the file of each result.
  private static func places(_ sandbox: Sandbox, _ file: String) throws -> [String] {
    try JSONNode(sandbox.text(file))["runs"][0]["results"].list.map { result in
      "\(result["ruleId"]) \(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])"
    }
  }

  /// What is added is in the session `test.txt`.
  @Test func `In GitHub Actions the summary is added to what is there`() throws {
    try sandbox.write("summary.md", "before\n")
    try sandbox.drydock(
      "test v5", environment: ["GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": sandbox("summary.md")]
    ).expect(exit: 1)
    #expect(try sandbox.text("summary.md").hasPrefix("before\n### ❌ Migration tests\n"))
  }

  @Test func `The pipelines of the guide run commands that exist, and find their reports`() throws {
    let guide = try String(
      contentsOfFile: "\(Sandbox.repository)/Sources/Drydock/Drydock.docc/Fixtures.md", encoding: .utf8)
    let commands = Set(guide.matches(of: /(?m)^ +(?:run:|-) (drydock .*)$/).map { String($0.output.1) })
    #expect(commands.count == 2)
    let path = (sandbox.program as NSString).deletingLastPathComponent
    for command in commands.sorted(by: >) {
      let result = try sandbox.execute("/bin/sh", ["-c", command], environment: ["PATH": path])
      let isTest = command.hasPrefix("drydock test ")
      #expect(result.exitCode == (isTest ? 1 : 0), "\(result)")
      if isTest { #expect(sandbox.exists("reports/drydock.xml") && sandbox.exists("failed/v5")) }
    }
  }

  @Test func `A program with a plan in Swift tests it`() throws {
    let sandbox = try Sandbox()
    try sandbox.addFixture("v0")
    // Of the plan's own versions there are none.
    if sandbox.exists("Fixtures/v0/expected") { try sandbox.remove("Fixtures/v0/expected") }
    try sandbox.write(
      "Fixtures/v0/fixture.yaml",
      """
      version: 0
      expect:
        settings: {theme: dark}
        absent-settings: [auth_token, dark_mode]
        files: [Library/Application Support/database.sqlite]

      """)
    func test(_ words: String...) throws -> CommandResult {
      try sandbox.execute(Tools.built("NotesTool"), ["test"] + words)
    }
    try test("v0").expect(output: "v0  passed         version 0 → 4")
    try test("v0", "-m", "Migrations").expect(exit: 64)
  }
}
