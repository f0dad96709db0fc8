import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Kills the migration of a fixture again and again, in a process of its own, and looks whether the container is whole
/// afterwards: as it was before, or as the migration makes it.
///
/// Of the kills one half comes at random moments of a run, the other at random ones of the steps that a crash could
/// separate. A killed run is recovered, as the next command does it; then the migration must complete.
struct Torture {
  private let work: FixtureWork
  /// The program and its arguments before the container's path.
  private let command: [String]
  private let count: Int

  /// More is not looked for when so much is wrong.
  private static let limit = 3

  /// - Parameters:
  ///   - command: The program's path, and its arguments before the container's path.
  ///   - count: How often the migration is killed.
  init(_ work: FixtureWork, command: [String], count: Int) {
    (self.work, self.command, self.count) = (work, command, count)
  }

  /// What came of it.
  struct Report {
    /// What a kill broke; empty when every container was whole.
    var findings: [FixtureFinding] = []
    /// How often a run was killed, and was over before it could be.
    var kills = 0, misses = 0
    /// How often a killed run left the container as it was, and as migrated.
    var old = 0, new = 0

    /// In a sentence, when anything was killed.
    var note: String? {
      if kills + misses == 0 { return nil }
      let times = { (count: Int) in count == 1 ? "once" : "\(count) times" }
      return
        "its migration was killed \(times(kills)): \(times(old)) the container was as before, \(times(new)) as migrated"
        + (misses == 0 ? "" : "; \(times(misses)) it was over before the moment came")
    }

    mutating func add(_ trial: Trial.Result) {
      findings += trial.findings
      if !trial.wasKilled { return misses += 1 }
      kills += 1
      guard trial.findings.isEmpty else { return }
      if trial.isOld { old += 1 } else { new += 1 }
    }
  }

  /// Kills, and looks. A fixture that cannot be migrated, or needs not be, is not killed.
  ///
  /// - Throws: `DrydockError` and what making a container throws; `DrydockError` with code `notBuilt` for a program that
  ///   cannot be started.
  func run() throws -> Report {
    var report = Report()
    guard work.fixture.expectsSuccess, count > 0 else { return report }
    guard !command.isEmpty else {
      throw DrydockError(.notBuilt, "no program is named whose migration could be killed")
    }
    let victim = try Victim(command, work)
    defer { victim.removeKey() }
    let container = try work.container("torture")
    let before = try work.state(of: container)
    let whole = try victim.run(on: container, killedAt: .never)
    if case .failed(let message) = whole.end {
      report.findings = [FixtureFinding(.torture, "run as a program, the migration fails: \(message)")]
      return report
    }
    guard try !work.state(of: container).findings(since: before, .torture).isEmpty else { return report }
    let migrated = try work.write(container, as: "torture-migrated")
    try remove("torture")

    var points = FaultPoint.allCases.shuffled()
    for number in 1...count where report.findings.count < Self.limit {
      let trial = Trial(work: work, victim: victim, migrated: migrated, name: "torture-\(number)")
      if number.isMultiple(of: 2) {
        report.add(try trial.run(.moment(.random(in: 0...whole.seconds))))
        continue
      }
      // A run does not come to every point: one that it passed over is not tried again.
      while let point = points.last {
        let result = try trial.run(.point(point))
        if result.wasKilled || !result.findings.isEmpty {
          report.add(result)
          points.shuffle()
          break
        }
        points.removeLast()
      }
    }
    return report
  }

  private func remove(_ name: String) throws {
    try work.scratch.removeTree(ContainerPath("container-" + name))
  }
}

/// One kill on a fresh container.
struct Trial {
  /// What came of it.
  struct Result {
    var wasKilled: Bool
    /// Whether the container was as before.
    var isOld = false
    var findings: [FixtureFinding] = []
  }

  let work: FixtureWork
  let victim: Victim
  /// The golden of a migrated container.
  let migrated: String
  let name: String

  /// The golden of the container afterwards.
  private var found: String { name + "-found" }

  func run(_ kill: Victim.Kill) throws -> Result {
    let container = try work.container(name)
    defer {
      for name in ["container-\(name)", found] { try? work.scratch.removeTree(ContainerPath(name)) }
    }
    let before = try work.state(of: container)
    let end = try victim.run(on: container, killedAt: kill).end
    var result = Result(wasKilled: end == .killed)
    do {
      if case .failed(let message) = end {
        result.findings = [FixtureFinding(.torture, "\(kill): the migration fails instead: \(message)")]
      } else {
        try Transaction.recover(container, lockTimeout: 5)
        try judge(container, before, kill, &result)
      }
    } catch {
      result.findings = [FixtureFinding(.torture, "\(kill): afterwards, \(error)")]
    }
    return result
  }

  /// Wholly old, or wholly new; and the migration completes.
  private func judge(
    _ container: Container, _ before: ExactState, _ kill: Victim.Kill, _ result: inout Result
  ) throws {
    let fromOld = try work.state(of: container).findings(since: before, .torture)
    result.isOld = fromOld.isEmpty
    if result.isOld { try work.runner.migrate(container) }
    let fromNew = try work.differences(container, from: migrated, as: found)
    guard var finding = fromNew.first else { return }
    let how =
      result.isOld
      ? "the container is as it was, and migrates to something else"
      : "the container is neither as it was (\(fromOld.count) differences, the first at \(fromOld[0].place ?? "?")) nor "
        + "as migrated (\(fromNew.count))"
    finding.check = .torture
    finding.message = "\(kill): \(how): \(finding.message)"
    result.findings = [finding]
  }
}
