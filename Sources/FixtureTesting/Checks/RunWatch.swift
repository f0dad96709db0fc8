import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import GRDB
import MigrationEngine

/// Watches a run of migrations on a fixture: which steps change anything, and where rows go.
struct RunWatch {
  /// The steps that changed something.
  private(set) var effective: Set<StepOutline> = []
  /// Rows that went in a step that does not say that it destroys them.
  private(set) var losses: [RowLoss] = []
  /// The last step that was done.
  private(set) var last: StepOutline?
  private var changes: StageWatch?
  private var rows: [ContainerPath: TableRows] = [:]

  /// Looks at the stage after a step.
  mutating func did(_ step: StepOutline, on stage: StagedContainer) throws {
    last = step
    let changed = try changes?.changes(on: stage) ?? []
    if changed.isEmpty { return }
    effective.insert(step)
    var before: [ContainerPath: TableRows] = [:]
    var after: [ContainerPath: TableRows] = [:]
    for path in changed {
      before[path] = rows[path]
      after[path] = try TableRows(of: path, on: stage)
      rows[path] = after[path]
    }
    losses += RowLoss.between(before, after, step)
  }

  /// Begins to watch, before the first step.
  mutating func begin(on stage: StagedContainer) throws {
    changes = try StageWatch(stage)
    for path in try stage.descendants(of: .root) { rows[path] = try TableRows(of: path, on: stage) }
  }

  /// The losses that were not made good until the end of the run.
  var finalLosses: [RowLoss] {
    losses.filter { loss in rows[loss.database]?.counts[loss.table].map { $0 < loss.before } ?? true }
  }
}

/// How many rows the tables of a database have.
struct TableRows {
  private(set) var counts: [String: Int] = [:]

  /// Counts; nil for what is no database, or one that SQLite cannot open.
  init?(of path: ContainerPath, on stage: StagedContainer) throws {
    guard try stage.status(of: path)?.type == .file, try stage.isDatabase(path) else { return nil }
    do {
      counts = try stage.readDatabase(at: path) { try $0.rowCounts() }
    } catch let error as DrydockError where error.code == .malformed {
      return nil
    } catch is DatabaseError {
      return nil
    }
  }
}
