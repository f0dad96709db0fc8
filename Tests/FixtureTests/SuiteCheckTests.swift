import FixtureTesting
import Testing

@Suite("Each check of fixtures fails on what is broken in its way")
struct SuiteCheckTests {
  /// Two migrations and a fixture that pass all checks.
  private func sound(_ lab: SuiteLab) throws {
    try lab.migration(
      "0001_start",
      "  - defaults.set: {values: {theme: light}, if-exists: keep}\n  - defaults.set: {values: {size: 10}, if-exists: keep}"
    )
    try lab.migration(
      "0002_rename",
      "  - defaults.rename: {keys: {theme: look}}\n  - sql: {database: notes, up: ALTER TABLE task ADD COLUMN note TEXT, down: ALTER TABLE task DROP COLUMN note}"
    )
    try lab.fixture(
      "new", version: 0, more: "unmarked: false\nexpect: {settings: {look: light, size: 10}}", settings: "")
    try lab.fixture("one", more: "expect: {settings: {look: dark, size: 12}}")
  }

  @Test func whatIsRightPasses() throws {
    try SuiteLab.with { lab in
      try sound(lab)
      let found = try lab.found()
      #expect(found == [])
    }
  }
}
