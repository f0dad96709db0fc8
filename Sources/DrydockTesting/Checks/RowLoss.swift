import FileSystem
import MigrationEngine

extension Loss {
  /// The rows that steps removed. A removed table lost nothing when a new one has as many rows: it was renamed, or its
  /// database moved. One that a step rebuilds lost nothing when the new table has all its rows.
  static func ofRows(
    between before: [ContainerPath: RowCounts], and after: [ContainerPath: RowCounts],
    outcomes: (ContainerPath) -> [String: AnnouncedLoss.Tables.Outcome]
  ) -> [Loss] {
    var fresh = after.keys.sorted().flatMap { path in
      (after[path] ?? [:]).sorted { $0.key < $1.key }
        .filter { before[path]?[$0.key] == nil }.map { (path: path, table: $0.key, rows: $0.value) }
    }
    // The rows that tables gained, each counted for one table that they came from.
    var taken: [ContainerPath: [String: Int]] = [:]
    var losses: [Loss] = []
    func add(_ path: ContainerPath, _ table: String, _ rows: Int, left: Int?, in successors: [String] = []) {
      losses.append(
        Loss(
          path: path, name: table, table: table,
          kind: .fewerRows(before: rows, after: left, successors: successors), count: rows - (left ?? 0),
          noun: "row"))
    }
    for path in before.keys.sorted() {
      let outcomes = outcomes(path)
      for (table, rows) in (before[path] ?? [:]).sorted(by: { $0.key < $1.key }) where rows > 0 {
        let now = after[path]?[table]
        switch outcomes[table.lowercased()] {
        case .deleted: continue
        case .dropped(let successors):
          // SQLite knows names without regard to case.
          var names = (after[path]?.keys.filter { successors.contains($0.lowercased()) } ?? []).sorted()
          if now != nil {
            names.removeAll { $0 == table }
            names.insert(table, at: 0)
          }
          var found = 0
          for name in names {
            // A table with the dropped one's name is a new one.
            let old = name == table ? 0 : before[path]?[name] ?? 0
            let gained = (after[path]?[name] ?? 0) - old - (taken[path]?[name] ?? 0)
            let part = max(0, min(rows - found, gained))
            taken[path, default: [:]][name, default: 0] += part
            found += part
          }
          if !names.isEmpty, found < rows {
            add(path, table, rows, left: found, in: names == [table] ? [] : names)
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
          add(path, table, rows, left: now)
        }
      }
    }
    return losses
  }
}

extension ExpectedLoss {
  /// What is wrong when the steps lost another number of rows unannounced.
  func finding(_ losses: [(loss: Loss, step: StepOutline)], _ catalog: MigrationCatalog) -> Finding? {
    let lost = losses.reduce(0) { $0 + $1.loss.count }
    if lost == rows { return nil }
    var finding = Finding(
      .lostRows, "`lost-rows` must be the number of rows that are lost without a reason in `destructive`",
      place: "\(losses.first?.loss.path ?? path): \(table)", expected: "\(rows) lost rows",
      found: "\(lost) lost rows")
    if let last = losses.last { finding.blame(last.step, catalog) }
    (finding.file, finding.line, finding.noun) = (position.file, position.line, "row")
    return finding
  }
}
