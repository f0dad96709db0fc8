import AppContainer
import AppStores
import ContainerDiff
import ContainerTransaction
import DrydockErrors
import FileSystem
import GRDB
import MigrationEngine

struct RowLoss {
  var database: ContainerPath, table: String
  /// Numbers of rows; nothing afterwards when the table is gone.
  var before: Int, after: Int?
  /// The tables that the rows of a dropped one were copied to.
  var successors: [String] = []
  var step: StepOutline
  /// Whether it shows only in what all steps of the migration do.
  var isOfMigration = false

  var count: Int { before - (after ?? 0) }

  /// The rows that a step, or the steps up to it, removed. A removed table lost nothing when a new one has as many rows: it was
  /// renamed, or its database moved. One that the step rebuilds lost nothing when the new table has all its rows.
  static func between(
    _ before: [ContainerPath: RowCounts], _ after: [ContainerPath: RowCounts], _ step: StepOutline,
    outcomes: (ContainerPath) -> [String: AnnouncedLoss.Tables.Outcome]
  ) -> [RowLoss] {
    var fresh = freshTables(before, after)
    var growth = Growth(before, after)
    var losses: [RowLoss] = []
    for path in before.keys.sorted() {
      let outcomes = outcomes(path)
      for (table, rows) in (before[path] ?? [:]).sorted(by: { $0.key < $1.key }) where rows > 0 {
        let now = after[path]?[table]
        switch outcomes[table.lowercased()] {
        case .deleted: continue
        case .dropped(let successors):
          var names = growth.names(successors, in: path)
          if now != nil {
            names.removeAll { $0 == table }
            names.insert(table, at: 0)
          }
          let found = growth.take(rows, of: table, from: names, in: path)
          if !names.isEmpty, found < rows {
            losses.append(
              RowLoss(
                database: path, table: table, before: rows, after: found,
                successors: names == [table] ? [] : names, step: step))
          }
          continue
        case .columns, nil: break
        }
        if let now, now >= rows { continue }
        let replacement =
          now == nil
          ? fresh.firstIndex { $0.table == table && $0.path != path && $0.rows >= rows }
            ?? fresh.firstIndex { $0.path == path && $0.rows >= rows } : nil
        if let replacement {
          fresh.remove(at: replacement)
        } else {
          losses.append(RowLoss(database: path, table: table, before: rows, after: now, step: step))
        }
      }
    }
    return losses
  }

  private static func freshTables(
    _ before: [ContainerPath: RowCounts], _ after: [ContainerPath: RowCounts]
  ) -> [(path: ContainerPath, table: String, rows: Int)] {
    after.keys.sorted().flatMap { path in
      (after[path] ?? [:]).sorted { $0.key < $1.key }
        .filter { before[path]?[$0.key] == nil }.map { (path, $0.key, $0.value) }
    }
  }

  /// The rows that tables gained in a step, each counted for one table that they came from.
  private struct Growth {
    private let before: [ContainerPath: RowCounts], after: [ContainerPath: RowCounts]
    private var taken: [ContainerPath: [String: Int]] = [:]

    init(_ before: [ContainerPath: RowCounts], _ after: [ContainerPath: RowCounts]) {
      (self.before, self.after) = (before, after)
    }

    /// The tables of these names that there are afterwards; SQLite knows names without regard to case.
    func names(_ names: Set<String>, in path: ContainerPath) -> [String] {
      (after[path]?.keys.filter { names.contains($0.lowercased()) } ?? []).sorted()
    }

    /// How many of the rows are found in the tables. A table with the dropped one's name is a new one.
    mutating func take(_ rows: Int, of table: String, from names: [String], in path: ContainerPath) -> Int {
      var found = 0
      for name in names {
        let old = name == table ? 0 : before[path]?[name] ?? 0
        let gained = (after[path]?[name] ?? 0) - old - (taken[path]?[name] ?? 0)
        let part = max(0, min(rows - found, gained))
        taken[path, default: [:]][name, default: 0] += part
        found += part
      }
      return found
    }
  }
}

extension FixtureWork {
  /// No table loses rows unannounced: a step names the table in `destructive:`, or `expect` counts the rows.
  func findings(of losses: [RowLoss], in container: Container) -> [FixtureResult.Finding] {
    let expected = fixture.expectation?.losses ?? []
    let unexpected = losses.filter { loss in
      if catalog.migration(loss.step.migration)?.losses[loss.table.lowercased()] != nil { return false }
      return !expected.contains { $0.isOf(loss.table, in: loss.database, of: container) }
    }.map { loss in
      var finding = FixtureResult.Finding(
        .lostRows,
        "rows are lost after \(loss.step.place(loss.isOfMigration)): \(loss.advice)",
        place: "\(loss.database): \(loss.table)", expected: "\(loss.before) rows",
        found: loss.after.map { "\($0) rows" } ?? "no such table")
      finding.blame(loss.step, catalog)
      (finding.count, finding.noun) = (loss.count, "row")
      return finding
    }
    return unexpected
      + expected.compactMap { expected in
        expected.finding(losses.filter { expected.isOf($0.table, in: $0.database, of: container) }, catalog)
      }
  }

  /// No step loses values unannounced: the migration names the column, setting, item or file in `loses`.
  func findings(of losses: [(loss: ValueLoss, step: StepOutline)]) -> [FixtureResult.Finding] {
    losses.compactMap { loss, step in
      let migration = catalog.migration(step.migration)
      if loss.names.contains(where: { migration?.losses[$0.lowercased()] != nil }) { return nil }
      let name = loss.table.isEmpty ? runner.redactor.shown(name: loss.name) : loss.name
      let place = loss.name.isEmpty ? loss.path.description : name
      let isPlain = place.allSatisfy { $0.isLetter || $0.isNumber || "._-/".contains($0) }
      var finding = FixtureResult.Finding(
        .lostValues,
        "\(loss.kind.sentence(loss.count, loss.noun)) in \(step.place(loss.isOfMigration)): correct it, or give the reason in the "
          + "migration: `loses: {\(isPlain ? place : "\"\(place)\""): \"why\"}`",
        place: loss.name.isEmpty ? place : "\(loss.path): \(place)")
      finding.blame(step, catalog)
      (finding.count, finding.noun) = (loss.count, loss.noun)
      return finding
    }
  }
}

extension RowLoss {
  /// How the loss is fixed, or announced.
  fileprivate var advice: String {
    let expect = "`lost-rows` in the fixture's `expect`"
    if isOfMigration { return "correct the copies between them, or announce them with \(expect)" }
    switch step.announcedLoss {
    case .tables(let tables):
      if case .dropped = tables.outcomes[table.lowercased()] {
        let successors = successors.isEmpty ? "" : " in \(successors.joined(separator: ", "))"
        return
          "the table was rebuilt without all of them\(successors): correct the copy, or announce them with \(expect)"
      }
      let names = tables.unclear.isEmpty ? [table] : tables.unclear
      let reasons = names.map { "\($0): \"why\"" }.joined(separator: ", ")
      return "its `destructive` does not name the table: say `destructive: {\(reasons)}`, or \(expect)"
    default: return "say `destructive: \"why\"` there, or \(expect)"
    }
  }
}

extension ExpectedLoss {
  /// What is wrong when the steps lost another number of rows unannounced.
  fileprivate func finding(_ losses: [RowLoss], _ catalog: MigrationCatalog) -> FixtureResult.Finding? {
    let lost = losses.reduce(0) { $0 + $1.count }
    if lost == rows { return nil }
    var finding = FixtureResult.Finding(
      .lostRows, "`lost-rows` must be the number of rows that are lost without a reason in `destructive`",
      place: "\(losses.first?.database ?? path): \(table)", expected: "\(rows) lost rows",
      found: "\(lost) lost rows")
    if let last = losses.last { finding.blame(last.step, catalog) }
    (finding.file, finding.line, finding.noun) = (position.file, position.line, "row")
    return finding
  }
}

extension StepOutline {
  fileprivate func place(_ isOfMigration: Bool) -> String {
    isOfMigration ? "the migration's steps together" : "the step \(operation)"
  }
}

extension FixtureResult.Finding {
  /// Names the step that made the difference.
  mutating func blame(_ step: StepOutline, _ catalog: MigrationCatalog) {
    migration = catalog.migration(step.migration)?.identifier
    (file, line) = (step.position.file, step.position.line)
    cause = Cause(step.position)
  }
}
