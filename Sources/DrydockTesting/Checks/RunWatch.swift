import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import GRDB
import MigrationEngine

/// Watches a run of migrations on a fixture: which steps have an effect, and what they lose.
struct RunWatch {
  private(set) var effective: Set<StepOutline> = []
  /// The paths that each of these steps changed, in their order.
  private(set) var touched: [(step: StepOutline, paths: [ContainerPath])] = []
  /// What was lost in a step that does not announce it.
  private var losses: [(loss: Loss, step: StepOutline)] = []
  private var last: StepOutline?
  private var changes: StageWatch?
  private var now = Content()
  /// What there was before the first step of the migration, and what its steps have done.
  private var start = Content(), done: [(step: StepOutline, paths: [ContainerPath])] = []
  /// The settings, items and files that its steps removed as their purpose, and the databases.
  private var removed: [ContainerPath: Set<String>] = [:]
  /// The settings that its steps set to values which the migration has.
  private var given: [ContainerPath: Set<String>] = [:]
  /// The number of losses before it.
  private var counted = 0
  private let copies: Directory, catalog: MigrationCatalog
  private var number = 0

  /// What the paths of a container have.
  private struct Content {
    var rows: [ContainerPath: RowCounts] = [:]
    /// Copies of databases.
    var files: [ContainerPath: String] = [:]
    /// What the other paths have.
    var stored: [ContainerPath: StoredValues] = [:]

    /// The names of the settings, items or fields that a path has.
    func names(at path: ContainerPath) -> Set<String> { Set((stored[path]?.values ?? [:]).keys) }

    /// The database that a path has, or had before it moved.
    func file(before now: Content, at path: ContainerPath) -> String? {
      if let file = files[path] { return file }
      let gone = files.filter { now.files[$0.key] == nil }
      return gone.count == 1 ? gone.first?.value : nil
    }
  }

  init(copies: Directory, _ catalog: MigrationCatalog) { (self.copies, self.catalog) = (copies, catalog) }

  /// Looks at the stage after a step.
  mutating func did(_ step: StepOutline, on stage: StagedContainer) throws {
    if step.migration != last?.migration { try endMigration(on: stage) }
    last = step
    let changed = try changes?.changes(on: stage) ?? []
    if changed.isEmpty { return }
    effective.insert(step)
    touched.append((step, changed))
    done.append((step, changed))
    let before = now
    for path in changed { try look(at: path, on: stage) }
    if step.writing == .given {
      for path in changed {
        given[path, default: []].formUnion(now.names(at: path).subtracting(before.names(at: path)))
      }
    }
    guard let outcomes = step.announcedLoss.followed?.outcomes else {
      for path in changed {
        removed[path, default: []].formUnion(before.names(at: path).subtracting(now.names(at: path)))
        guard before.files[path] != nil, now.files[path] == nil else { continue }
        removed[path, default: []].formUnion((before.rows[path] ?? [:]).keys)
        guard step.announcedLoss == .matches else { continue }
        losses.append((Loss(path: path, name: "", kind: .gone, count: 1, noun: "database"), step))
      }
      return
    }
    losses += try losses(from: before, in: changed, [step]) { _ in outcomes }.map { ($0, step) }
  }

  /// What is lost between two moments, for certain.
  private func losses(
    from before: Content, in changed: [ContainerPath], _ steps: [StepOutline],
    outcomes: @escaping (ContainerPath) -> [String: AnnouncedLoss.Tables.Outcome]
  ) throws -> [Loss] {
    let stores = StoreComparison(before.stored, now.stored, changed: changed)
    var losses = Loss.ofRows(
      between: before.rows.part(changed), and: now.rows.part(changed), outcomes: outcomes)
    losses += try stores.losses(of: steps, given: given) { value in
      try changed.compactMap { now.files[$0] }.contains { file in
        try value.databaseValues.contains { try ValueComparison.isFound($0, in: file) }
      }
    }
    for path in changed {
      guard let file = now.files[path], let old = before.file(before: now, at: path) else { continue }
      losses += try ValueComparison.losses(
        before: old, after: file, at: path, outcomes: outcomes(path), isGained: stores.isGained)
    }
    return losses
  }

  /// Compares what a migration's steps have done together: one may copy a part of the data, and another one remove what was
  /// copied, with a reason that is right for itself. Called after the last step of the run, too.
  mutating func endMigration(on stage: StagedContainer) throws {
    defer {
      (start, done, removed, given) = (now, [], [:], [:])
      counted = losses.count
    }
    guard done.count > 1, let step = done.last?.step, let migration = catalog.migration(step.migration) else {
      return
    }
    let databases = stage.container.configuration.databases
    let changed = Set(done.flatMap(\.paths)).sorted()
    let announced = changed.reduce(into: [ContainerPath: AnnouncedLoss.Tables]()) { announced, path in
      announced[path] = migration.announcedLoss(in: Set(databases.filter { $0.value.contains(path) }.keys))
    }
    // A step may replace what an earlier one has saved.
    let steps = losses[counted...]
    losses.removeSubrange(counted...)
    losses += try steps.filter { try !isKept($0.loss) }
    // What a step is reported for is not reported again, also not under the name that it had before.
    var known = removed.mapValues { Set($0.map { $0.lowercased() }) }
    for (loss, _) in losses[counted...] where isFinal(loss) {
      known[loss.path, default: []].formUnion([loss.name.lowercased(), loss.table.lowercased()])
    }
    func isKnown(_ path: ContainerPath, _ name: String) -> Bool {
      guard let known = known[path] else { return false }
      return !known.isDisjoint(
        with: (announced[path]?.names[name.lowercased()] ?? []).union([name.lowercased()]))
    }
    var found = try losses(from: start, in: changed, done.map(\.step)) { announced[$0]?.outcomes ?? [:] }
    // A database that is at another path has moved; of several it is not known which one went where.
    let hasMoved = now.files.keys.contains { start.files[$0] == nil }
    found.removeAll {
      isKnown($0.path, $0.name) || isKnown($0.path, $0.table)
        || $0.isOfRowCount && hasMoved && now.files[$0.path] == nil
    }
    for index in found.indices { found[index].isOfMigration = true }
    losses += found.map { ($0, step) }
  }

  /// Whether another column of the table has at the end of the migration what a step took from one.
  private func isKept(_ loss: Loss) throws -> Bool {
    guard !loss.table.isEmpty, loss.name != loss.table, let before = start.files[loss.path],
      let after = now.files[loss.path]
    else { return false }
    return try ValueComparison.isKept(
      loss.table, String(loss.name.dropFirst(loss.table.count + 1)), before: before, after: after)
  }

  /// Begins to watch, before the first step.
  mutating func begin(on stage: StagedContainer) throws {
    changes = try StageWatch(stage)
    for path in try stage.descendants(of: .root) { try look(at: path, on: stage) }
    start = now
  }

  /// Notes what a path has now.
  private mutating func look(at path: ContainerPath, on stage: StagedContainer) throws {
    now.stored[path] = stage.container.isHistory(path) ? nil : try StoredValues(at: path, on: stage)
    now.rows[path] = try stage.rowCounts(of: path)
    now.files[path] = nil
    guard now.rows[path] != nil else { return }
    number += 1
    let copy = copies.full(ContainerPath(name: Array("watched-\(number)".utf8)))
    try stage.copyDatabase(at: path, to: copy)
    now.files[path] = copy
  }

  /// What steps lost unannounced, by the migrations' numbers: by the names that `loses` may have, in lower case.
  var lost: [Int: Set<String>] {
    losses.reduce(into: [:]) { lost, entry in
      lost[entry.step.migration, default: []].formUnion(entry.loss.names.map { $0.lowercased() })
    }
  }

  /// The losses that remain at the end of the run.
  var finalLosses: [(loss: Loss, step: StepOutline)] { losses.filter { isFinal($0.loss) } }

  private func isFinal(_ loss: Loss) -> Bool {
    guard case .fewerRows(let before, _, _) = loss.kind else { return true }
    return now.rows[loss.path]?[loss.table].map { $0 < before } ?? true
  }
}

extension Dictionary where Key == ContainerPath {
  /// What some of the paths have.
  func part(_ paths: [ContainerPath]) -> Self { paths.reduce(into: [:]) { $0[$1] = self[$1] } }
}

/// The number of rows of each table of a database.
typealias RowCounts = [String: Int]

extension StagedContainer {
  fileprivate func copyDatabase(at path: ContainerPath, to file: String) throws {
    let copy = try DatabaseQueue(path: file)
    defer { try? copy.close() }
    try readDatabase(at: path) { db in
      try copy.writeWithoutTransaction { try db.backup(to: $0) }
    }
  }

  /// The tables of the app's own: SQLite's, virtual ones and those behind them are left out. Nil for what is not a
  /// database, or one that SQLite cannot open.
  fileprivate func rowCounts(of path: ContainerPath) throws -> RowCounts? {
    guard try status(of: path)?.type == .file, try isDatabase(path) else { return nil }
    do {
      return try readDatabase(at: path) { db in
        let tables = try SchemaObject.all(in: db).filter { $0.kind == "table" && !$0.isVirtual }
        return try tables.reduce(into: [:]) { counts, table in
          let sql = "SELECT count(*) FROM \(quotedIdentifier(table.name))"
          counts[table.name] = try Int.fetchOne(db, sql: sql) ?? 0
        }
      }
    } catch let error as DrydockError where error.code == .malformed {
      return nil
    } catch is DatabaseError {
      return nil
    }
  }
}
