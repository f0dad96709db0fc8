import Drydock

extension MigrateCommand {
  /// The one document of a run that commits each migration by itself.
  struct EachResult: Encodable, Sendable {
    var runs: [Result] = []
    var error: Failure.Detail?
  }

  /// So many take a while.
  private static let manyCommits = 20

  /// Runs the migrations one by one. A failure after the first commit leaves the container changed: exit code 3.
  func runEach(
    _ opened: Container, _ catalog: MigrationCatalog, _ backup: MigrationBackup, _ options: MigrationOptions
  ) throws {
    var result = EachResult()
    var count = 0
    var unclean: (any Error)?
    do {
      let starting = { (count: Int) in
        guard count > Self.manyCommits else { return }
        Output.note(
          "drydock: note: --each commits \(count) times, and each commit waits for the disk; without --each there is one"
        )
      }
      try backup.explaining(opened) {
        try opened.migrateEach(catalog, options: options, starting: starting) { outcome in
          result.runs.append(Result(outcome, snapshot: count == 0 ? backup.path : nil))
          if outcome.transaction != nil { count += 1 }
          do { try tell(outcome, opened) } catch { unclean = unclean ?? error }
        }
      }
    } catch {
      guard count > 0 else { throw error }
      let failure = Failure(error) ?? Failure(unforeseen: error)
      failure.report(asJSON: false)
      Output.note(
        "drydock: \(Output.count(count, "migration")) before it is committed; `drydock rollback` goes back one by one"
      )
      result.error = failure.detail(status: .incomplete)
      if common.json { Output.json(result) }
      throw ExitStatus.incomplete.code
    }
    if common.json { Output.json(result) }
    if let unclean { throw unclean }
  }
}
