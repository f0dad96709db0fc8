import AppContainer
import MigrationEngine

/// No table loses rows that nothing announced: a step that does says `destructive:`, or `expect` counts them.
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
        .lostRows,
        "rows are gone after the step \(loss.step.operation): say `destructive: \"why\"` there, or `lost-rows` in the "
          + "fixture's `expect`", place: "\(loss.database): \(loss.table)")
      finding.expected = "\(loss.before) rows"
      finding.found = loss.after.map { "\($0) rows" } ?? "no such table"
      finding.migration = catalog.migration(loss.step.migration)?.identifier
      (finding.file, finding.line) = (loss.step.position.file, loss.step.position.line)
      return finding
    }
  }
}
