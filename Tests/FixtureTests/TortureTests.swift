import FixtureTesting
import Foundation
import TestSupport
import Testing

@Suite("A migration that is killed leaves a container that is whole")
struct TortureTests {
  /// A suite whose migration takes two stores, tortured by a program.
  private func with(
    _ count: Int, _ program: (SuiteLab) throws -> [String], _ check: (FixtureResult) throws -> Void
  ) throws {
    try SuiteLab.with { lab in
      try lab.fixture("one", more: "expect: {settings: {look: dark}}")
      try lab.write("Fixtures/one/container/Library/Application Support/state", "s")
      try lab.migration("0001_first", "  - defaults.set-default: {values: {theme: dark}}")
      try lab.migration(
        "0002_look",
        """
          - defaults.rename: {keys: {theme: look}}
          - sql: {database: notes, up: UPDATE task SET done = 5 WHERE id > 1, down: UPDATE task SET done = 1 WHERE id > 1}
        """)
      try lab.write(
        "drydock.yaml",
        """
        app: app.notes
        layout: ios
        databases: {notes: Documents/notes.sqlite}
        version-markers: [{defaults: schema, at: {1: 1, 2: 2}}]
        """)
      lab.options.torture = count
      lab.options.tortured = try program(lab)
      let result = try lab.run()
      try check(try #require(result.fixtures.first))
    }
  }

  private func migrate(_ lab: SuiteLab) throws -> [String] {
    let folder = lab.directory
    return [
      try Tools.drydock(), "migrate", "--config", folder("drydock.yaml"), "-m", folder("Migrations"),
    ]
  }

  @Test("Drydock's own migration is whole after every kill")
  func whole() throws {
    try with(8, migrate) { fixture in
      #expect(fixture.findings == [] && fixture.state == .passed, "\(fixture)")
      // Every kill at a step comes; one at a moment may be too late on a busy machine.
      let note = try #require(fixture.notes.first { $0.contains("killed") })
      let numbers = note.matches(of: /([0-9]+) times|once/).map { $0.output.1.flatMap { Int($0) } ?? 1 }
      try #require(numbers.count >= 3, "\(note)")
      #expect(numbers[0] >= 4 && numbers[1] + numbers[2] == numbers[0], "\(note)")
    }
  }

  @Test("A program that writes before it migrates is caught, with the moment and the place")
  func half() throws {
    try with(4) { lab in
      let words = try migrate(lab).map { "'\($0)'" }.joined(separator: " ")
      return ["/bin/sh", "-c", "echo half > \"$0/Documents/half\"; exec \(words) \"$0\""]
    } _: { fixture in
      let finding = try #require(fixture.findings.first)
      #expect(fixture.state == .failed && finding.check == .torture, "\(fixture)")
      #expect(finding.message.contains("neither as it was (") && finding.message.contains("killed "))
      #expect(finding.message.contains("Documents") && finding.place != nil, "\(finding)")
    }
  }

  @Test("A program that cannot migrate, or cannot be started, is told of")
  func fails() throws {
    try with(1, { _ in ["/bin/sh", "-c", "echo no way >&2; exit 3"] }) { fixture in
      #expect(
        fixture.findings.map(\.message) == ["run as a program, the migration fails: exit code 3: no way"])
    }
    try with(1, { _ in ["/nowhere/drydock"] }) { fixture in
      #expect(
        fixture.findings.first?.message.contains("/nowhere/drydock: the program to kill cannot") == true)
    }
  }
}
