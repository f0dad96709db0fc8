import Testing

@testable import DrydockTesting

@Suite("SQL as it is written")
struct SQLTextTests {
  @Test("Quotes around names and white space make no difference, all else does")
  func same() {
    let sql = "CREATE INDEX open ON task (dueAt) WHERE isDone = 0"
    for other in [
      "CREATE INDEX open ON task (dueAt) WHERE \"isDone\" = 0",
      "CREATE INDEX [open] ON `task`(dueAt)\n  WHERE isDone = 0",
      "CREATE INDEX open ON task ( dueAt ) WHERE isDone = 0",
    ] { #expect(words(sql) == words(other), "\(other)") }
    for other in [
      "CREATE INDEX open ON task (dueAt) WHERE isDone = 1",
      "CREATE INDEX open ON task (due At) WHERE isDone = 0",
      "CREATE INDEX open ON task (dueAt)",
    ] { #expect(words(sql) != words(other), "\(other)") }
  }

  private func words(_ sql: String) -> String { SQLText.words(SQLText(sql).tokens) }
}
