import AppContainer
import MigrationEngine

/// No table loses rows that nothing announced: a step that does names them in `destructive:`, or `expect` counts them.
enum LostRows {
  /// What went unannounced.
  static func findings(
    _ losses: [RowLoss], in container: Container, _ fixture: Fixture, _ catalog: MigrationCatalog
  ) -> [FixtureFinding] {
    losses.filter { loss in
      let announced = fixture.expectation?.announcedLoss(of: loss.table, in: loss.database, of: container)
      return loss.before - (loss.after ?? 0) > announced ?? 0
    }.map { loss in
      var finding = FixtureFinding(
        .lostRows, "rows are gone after the step \(loss.step.operation): \(advice(loss))",
        place: "\(loss.database): \(loss.table)")
      finding.expected = "\(loss.before) rows"
      finding.found = loss.after.map { "\($0) rows" } ?? "no such table"
      finding.migration = catalog.migration(loss.step.migration)?.identifier
      (finding.file, finding.line) = (loss.step.position.file, loss.step.position.line)
      return finding
    }
  }

  private static func advice(_ loss: RowLoss) -> String {
    let expect = "`lost-rows` in the fixture's `expect`"
    switch loss.step.announcedLoss {
    case .tables(let tables):
      if case .dropped = tables.fates[loss.table.lowercased()] {
        let successors = loss.successors.isEmpty ? "" : " in \(loss.successors.joined(separator: ", "))"
        return
          "the table was rebuilt without all of them\(successors): correct the copy, or announce them with \(expect)"
      }
      let names = tables.unclear.isEmpty ? [loss.table] : tables.unclear
      let reasons = names.map { "\($0): \"why\"" }.joined(separator: ", ")
      return "its `destructive` does not name the table: say `destructive: {\(reasons)}`, or \(expect)"
    default: return "say `destructive: \"why\"` there, or \(expect)"
    }
  }
}
