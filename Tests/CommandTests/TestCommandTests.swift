import Foundation
import TestSupport
import Testing

/// What `drydock test` tells pipelines; what it checks is tested in `FixtureTests`.
@Suite("drydock test")
struct TestCommandTests {
  /// One fixture that passes and one that fails, told apart by what is expected.
  private func withFixtures(_ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      for name in ["v5", "v6"] { try sandbox.addFixture(name) }
      let file = "Fixtures/v5/fixture.yaml"
      let text = String(decoding: try sandbox.read(file), as: UTF8.self)
      let wrong = text.replacing(/theme: \w+\n/, with: "theme: sepia\n")
      #expect(text != wrong)
      try sandbox.write(file, wrong)
      try body(sandbox)
    }
  }

  @Test("A failure is exit code 1 and one document, which names the fixture and what is wrong")
  func json() throws {
    try withFixtures { sandbox in
      let result = try sandbox.drydock("test", "v5", "v6", "--json", "--jobs", "2")
      #expect(result.exitCode == 1 && result.errors.isEmpty, "\(result)")
      let document = try JSONTests.document(result)
      #expect(JSONTests.oddKeys(document) == [])
      #expect(document["passed"] as? Bool == false && document["error"] == nil)
      let fixtures = try #require(document["fixtures"] as? [[String: Any]])
      #expect(fixtures.map { $0["name"] as? String } == ["v5", "v6"])
      #expect(fixtures.map { $0["state"] as? String } == ["failed", "passed"])
      let finding = try #require((fixtures[0]["findings"] as? [[String: Any]])?.first)
      #expect(finding["check"] as? String == "expectation" && finding["count"] as? Int == 1)
      let groups = try #require(document["groups"] as? [[String: Any]])
      #expect(groups.count == 1 && groups.first?["checks"] as? [String] == ["expectation"], "\(groups)")
      #expect((groups.first?["fixtures"] as? [[String: Any]])?.map { $0["name"] as? String } == ["v5"])
      #expect((try sandbox.drydock("test", "v6", "--json")).exitCode == 0)
    }
  }

  @Test("The JUnit file is valid, its directory is made, and it is written when all pass, too")
  func junit() throws {
    try withFixtures { sandbox in
      for (name, exit, failures) in [("v5", Int32(1), 1), ("v6", 0, 0)] {
        let file = "reports/\(name)/drydock.xml"
        let result = try sandbox.drydock("test", name, "--junit", file)
        #expect(result.exitCode == exit, "\(result)")
        let schema = Sandbox.repository + "/Tests/ReportsTests/Schemas/junit-10.xsd"
        let checked = try Command.run(
          Tools.system("xmllint"), ["--noout", "--schema", schema, sandbox(file)])
        #expect(checked.succeeded, "\(checked)")
        let text = String(decoding: try sandbox.read(file), as: UTF8.self)
        #expect(text.contains("failures=\"\(failures)\"") && text.contains("<testcase name=\"\(name)\""))
      }
      // Before minutes of checks, not after.
      let directory = try sandbox.drydock("test", "v5", "--junit", "reports")
      #expect(directory.exitCode == 64 && directory.output.isEmpty, "\(directory)")
      let keep = try sandbox.drydock("test", "v5", "--save-failures", "drydock.yaml")
      #expect(keep.exitCode == 64 && keep.output.isEmpty, "\(keep)")
      let file = try sandbox.drydock("test", "v5", "--junit", "drydock.yaml/report.xml")
      #expect(file.exitCode == 1 && file.output.isEmpty, "\(file)")
      #expect(file.errors.hasPrefix("drydock: error: drydock.yaml/report.xml: the report cannot be written"))
    }
  }

  @Test("Markdown and SARIF are written, too: of the fixtures, and of migrations that are invalid")
  func documents() throws {
    try withFixtures { sandbox in
      let result = try sandbox.drydock("test", "v5", "v6", "--markdown", "out/a.md", "--sarif", "out/a.sarif")
      #expect(result.exitCode == 1, "\(result)")
      let text = String(decoding: try sandbox.read("out/a.md"), as: UTF8.self)
      #expect(text.hasPrefix("### ❌ Migration tests\n\n2 fixtures: 1 passed, 1 failed: FAILED\n"))
      #expect(try Self.places(sandbox, "out/a.sarif") == ["test/expectation Fixtures/v5/fixture.yaml"])
      try sandbox.write("Migrations/0003_move_database.yaml", "steps:\n  - files.mve: {}\n  - sql: {}\n")
      for words in [["validate"], ["test", "v6"]] {
        let invalid = try sandbox.drydock(
          words + ["--sarif", "out/b.sarif"], environment: ["GITHUB_ACTIONS": "true"])
        #expect(invalid.exitCode == 4, "\(invalid)")
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
      let document = try JSONTests.document(try sandbox.drydock("validate", "--json"))
      let problems = try #require(document["problems"] as? [[String: Any]])
      #expect(
        problems.map { $0["line"] as? Int } == [2, 3] && problems.map { $0["column"] as? Int } == [5, 10])
      #expect((problems.first?["file"] as? String)?.hasSuffix("Migrations/0003_move_database.yaml") == true)
      // The first problem is the error of a command that needs valid migrations.
      let failed = try JSONTests.document(try sandbox.drydock("test", "v6", "--json"))
      let error = try #require(failed["error"] as? [String: Any])
      #expect((error["message"] as? String)?.contains("unknown operation `files.mve`") == true, "\(error)")
    }
  }

  /// The rule and the file of each result.
  private static func places(_ sandbox: Sandbox, _ file: String) throws -> [String] {
    let log = try JSONSerialization.jsonObject(with: Data(try sandbox.read(file))) as? [String: Any]
    let run = try #require((log?["runs"] as? [[String: Any]])?.first)
    return (run["results"] as? [[String: Any]] ?? []).map { result in
      let location = (result["locations"] as? [[String: Any]])?.first?["physicalLocation"] as? [String: Any]
      let uri = (location?["artifactLocation"] as? [String: Any])?["uri"] as? String
      return "\(result["ruleId"] ?? "") \(uri ?? "")"
    }
  }

  @Test("In GitHub Actions failures are shown at their files, and the summary is added to what is there")
  func gitHub() throws {
    try withFixtures { sandbox in
      try sandbox.write("summary.md", "before\n")
      let result = try sandbox.drydock(
        ["test", "v5", "v6"],
        environment: [
          "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": sandbox.directory.path,
          "GITHUB_STEP_SUMMARY": sandbox("summary.md"),
        ])
      #expect(result.exitCode == 1)
      let lines = result.errors.split(separator: "\n")
      #expect(lines.count == 1, "\(result)")
      #expect(lines.first?.hasPrefix("::error file=Fixtures/v5/fixture.yaml,") == true, "\(result)")
      #expect(lines.first?.contains("title=fixture v5%3A expectation::expectation: ") == true, "\(result)")
      let summary = String(decoding: try sandbox.read("summary.md"), as: UTF8.self)
      #expect(summary.hasPrefix("before\n### ❌ Migration tests\n\n2 fixtures: 1 passed, 1 failed: FAILED\n"))
      #expect(summary.contains("| ❌ | v5 |") && summary.contains("sepia"))
    }
  }

  @Test("Fixtures are named, or given as directories; one directory of fixtures means all of it")
  func choice() throws {
    try withFixtures { sandbox in
      let elsewhere = sandbox("elsewhere")
      try sandbox.run(Tools.system("cp"), "-a", sandbox("Fixtures"), elsewhere)
      let whole = try sandbox.drydock("test", "elsewhere", "--filter", "v6")
      #expect(whole.output.contains("1 fixture: 1 passed"), "\(whole)")
      // Twice the same, once by its directory.
      let twice = try sandbox.drydock("test", "v6", "Fixtures/v6")
      #expect(twice.exitCode == 0 && twice.output.contains("1 fixture: 1 passed"), "\(twice)")
      let two = try sandbox.drydock("test", "v6", "elsewhere/v6")
      #expect(two.exitCode == 64 && two.errors.contains("two fixtures are called v6, "), "\(two)")
      let variable = try sandbox.drydock(["test", "v6"], environment: ["DRYDOCK_FIXTURES": elsewhere])
      #expect(variable.exitCode == 0, "\(variable)")
    }
  }

  @Test("The pipelines of the guide run commands that there are, and their report is where they look for it")
  func guide() throws {
    let guide = try String(
      contentsOfFile: "\(Sandbox.repository)/Sources/Drydock/Drydock.docc/Pipelines.md", encoding: .utf8)
    let commands = Set(guide.matches(of: /(?m)^ +(?:run:|-) (drydock .*)$/).map { String($0.output.1) })
    #expect(commands.count == 2)
    try withFixtures { sandbox in
      let path = (sandbox.program as NSString).deletingLastPathComponent
      for command in commands.sorted(by: >) {
        let result = try Command.run(
          "/bin/sh", ["-c", command], environment: sandbox.environment.merging(["PATH": path]) { $1 },
          directory: sandbox.directory.path)
        let isTest = command.hasPrefix("drydock test ")
        #expect(result.exitCode == (isTest ? 1 : 0), "\(result)")
        if isTest { #expect(sandbox.exists("reports/drydock.xml") && sandbox.exists("failed/v5")) }
      }
    }
  }

  @Test("A program with a plan in Swift tests it")
  func plan() throws {
    try Sandbox.with { sandbox in
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
        try Command.run(
          Tools.built("NotesTool"), ["test"] + words, environment: sandbox.environment,
          directory: sandbox.directory.path)
      }
      let result = try test("v0")
      #expect(result.exitCode == 0 && result.output.contains("v0  passed         version 0 → 4"), "\(result)")
      let refused = try test("v0", "-m", "Migrations")
      #expect(refused.exitCode == 64, "\(refused)")
    }
  }
}
