import FileSystem
import MigrationEngine

/// Rows of a table that went, and nothing announced it.
struct RowLoss {
  /// The database and the table.
  var database: ContainerPath, table: String
  /// Numbers of rows; nothing afterwards when the table is gone.
  var before: Int, after: Int?
  /// The tables that the rows of a dropped one were copied to.
  var successors: [String] = []
  /// The step that did it.
  var step: StepOutline

  /// What went in a step. A table that is gone lost nothing when another one came that has as many rows: it was renamed,
  /// or its database moved. One that the step rebuilds lost nothing when all its rows are in what came of it.
  static func between(
    _ before: [ContainerPath: TableRows], _ after: [ContainerPath: TableRows], _ step: StepOutline
  ) -> [RowLoss] {
    let announced: AnnouncedLoss.Tables
    switch step.announcedLoss {
    case .everything: return []
    case .nothing: announced = AnnouncedLoss.Tables()
    case .tables(let tables): announced = tables
    }
    var fresh = freshTables(before, after)
    var growth = Growth(before, after)
    var losses: [RowLoss] = []
    for path in before.keys.sorted() {
      for (table, rows) in (before[path]?.counts ?? [:]).sorted(by: { $0.key < $1.key }) where rows > 0 {
        let now = after[path]?.counts[table]
        switch announced.fates[table.lowercased()] {
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
        case nil: break
        }
        if let now, now >= rows { continue }
        let heir =
          now == nil
          ? fresh.firstIndex { $0.table == table && $0.path != path && $0.rows >= rows }
            ?? fresh.firstIndex { $0.path == path && $0.rows >= rows } : nil
        if let heir {
          fresh.remove(at: heir)
        } else {
          losses.append(RowLoss(database: path, table: table, before: rows, after: now, step: step))
        }
      }
    }
    return losses
  }

  private static func freshTables(
    _ before: [ContainerPath: TableRows], _ after: [ContainerPath: TableRows]
  ) -> [(path: ContainerPath, table: String, rows: Int)] {
    after.keys.sorted().flatMap { path in
      (after[path]?.counts ?? [:]).sorted { $0.key < $1.key }
        .filter { before[path]?.counts[$0.key] == nil }.map { (path, $0.key, $0.value) }
    }
  }

  /// The rows that tables gained in a step, each counted for one table that they came from.
  private struct Growth {
    private let before: [ContainerPath: TableRows], after: [ContainerPath: TableRows]
    private var taken: [ContainerPath: [String: Int]] = [:]

    init(_ before: [ContainerPath: TableRows], _ after: [ContainerPath: TableRows]) {
      (self.before, self.after) = (before, after)
    }

    /// The tables of these names that there are afterwards; SQLite knows names without regard to case.
    func names(_ names: Set<String>, in path: ContainerPath) -> [String] {
      (after[path]?.counts.keys.filter { names.contains($0.lowercased()) } ?? []).sorted()
    }

    /// How many of so many rows are found in the tables. One of the dropped table's own name was made anew.
    mutating func take(_ rows: Int, of table: String, from names: [String], in path: ContainerPath) -> Int {
      var found = 0
      for name in names {
        let old = name == table ? 0 : before[path]?.counts[name] ?? 0
        let gained = (after[path]?.counts[name] ?? 0) - old - (taken[path]?[name] ?? 0)
        let part = max(0, min(rows - found, gained))
        taken[path, default: [:]][name, default: 0] += part
        found += part
      }
      return found
    }
  }
}
