import AppContainer
import FileSystem
import MigrationEngine

/// What a step takes from a container for good: rows of a table, or values, from a database although its tables have as
/// many rows as before, or from other files.
///
/// Rows are followed by their keys. What can be told from the values alone counts: a row that is nowhere any more,
/// different values that became one, a text that was cut, a value that became empty, a number that was rounded, a column
/// whose values are nowhere else. A renamed column, a mapping that keeps values apart, spaces and capitals do not.
struct Loss {
  enum Kind: Equatable {
    /// A table has fewer rows, or is gone: then with the tables that its rows were copied to.
    case fewerRows(before: Int, after: Int?, successors: [String])
    case rows, column, gone, fields, emptied, shortened, merged, rounded, replaced

    /// What happened to a number of values.
    func sentence(_ count: Int, _ noun: String) -> String {
      func was(_ one: String, _ many: String) -> String {
        count == 1 ? "1 \(noun) \(one)" : "\(count) \(noun)s \(many)"
      }
      let values = count == 1 ? "1 value" : "\(count) values"
      return switch self {
      case .fewerRows: "rows are lost"
      case .rows: was("is gone", "are gone")
      case .column: "the column is gone with \(values)"
      case .gone: count == 1 ? "the \(noun) is gone" : "\(count) \(noun)s are gone"
      case .fields: "fields are gone in the documents of \(values)"
      case .emptied: was("became empty", "became empty")
      case .shortened: was("was cut", "were cut")
      case .merged: "different values became \(values)"
      case .rounded: was("was rounded", "were rounded")
      case .replaced:
        was("was replaced", "were replaced") + (noun == "value" ? " by those of another column" : "")
      }
    }
  }

  /// The database or other file.
  var path: ContainerPath
  /// What it is there, as a migration names it: `TABLE`, `TABLE.COLUMN`, a setting, an item; empty for a file.
  var name: String
  /// The table; empty outside of databases.
  var table = ""
  var kind: Kind
  var count: Int
  /// What is counted: `row`, `value`, or what it is outside of databases.
  var noun = "value"
  /// Whether it shows only in what all steps of the migration do.
  var isOfMigration = false

  /// What a migration may name, to give a reason for it.
  var names: [String] {
    if !table.isEmpty { return [name, table] }
    let above = name.indices.filter { ".[".contains(name[$0]) }.map { String(name[..<$0]) }
    return [name] + above + [path.description]
  }

  var isOfRowCount: Bool {
    if case .fewerRows = kind { true } else { false }
  }
}

extension FixtureWork {
  /// No step loses anything unannounced: a step names the table in `destructive:`, `expect` counts the rows, or the
  /// migration names the table, column, setting, item or file in `loses`.
  func findings(of losses: [(loss: Loss, step: StepOutline)], in container: Container) -> [Finding] {
    let unannounced = losses.filter { loss, step in
      let announced = catalog.migration(step.migration)?.losses
      return !loss.names.contains { announced?[$0.lowercased()] != nil }
    }
    let expected = fixture.expectation?.losses ?? []
    func isOf(_ expected: ExpectedLoss, _ loss: Loss) -> Bool {
      loss.isOfRowCount && expected.isOf(loss.table, in: loss.path, of: container)
    }
    let rows = unannounced.filter { loss, _ in
      loss.isOfRowCount && !expected.contains { isOf($0, loss) }
    }
    return rows.map(finding)
      + expected.compactMap { expected in
        expected.finding(losses.filter { isOf(expected, $0.loss) }, catalog)
      } + unannounced.filter { !$0.loss.isOfRowCount }.map(finding)
  }

  private func finding(_ loss: Loss, _ step: StepOutline) -> Finding {
    let what = loss.kind.sentence(loss.count, loss.noun)
    var finding: Finding
    if case .fewerRows(let before, let after, let successors) = loss.kind {
      finding = Finding(
        .lostRows, "\(what) after \(loss.place(in: step)): \(loss.advice(successors, step))",
        place: "\(loss.path): \(loss.table)", expected: "\(before) rows",
        found: after.map { "\($0) rows" } ?? "no such table")
    } else {
      let name = loss.table.isEmpty ? runner.redactor.shown(name: loss.name) : loss.name
      let place = loss.name.isEmpty ? loss.path.description : name
      let isPlain = place.allSatisfy { $0.isLetter || $0.isNumber || "._-/".contains($0) }
      finding = Finding(
        .lostValues,
        "\(what) in \(loss.place(in: step)): correct it, or give the reason in the migration: "
          + "`loses: {\(isPlain ? place : "\"\(place)\""): \"why\"}`",
        place: loss.name.isEmpty ? place : "\(loss.path): \(place)")
    }
    finding.blame(step, catalog)
    (finding.count, finding.noun) = (loss.count, loss.noun)
    return finding
  }
}

extension Loss {
  fileprivate func place(in step: StepOutline) -> String {
    isOfMigration ? "the migration's steps together" : "the step \(step.operation)"
  }

  /// How a loss of rows is fixed, or announced.
  fileprivate func advice(_ successors: [String], _ step: StepOutline) -> String {
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

extension FixtureResult.Finding {
  /// Names the step that made the difference.
  mutating func blame(_ step: StepOutline, _ catalog: MigrationCatalog) {
    migration = catalog.migration(step.migration)?.identifier
    (file, line) = (step.position.file, step.position.line)
    cause = Cause(step.position)
  }
}
