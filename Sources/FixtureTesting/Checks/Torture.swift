import AppContainer
import ContainerTransaction

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

  /// Where it gets: more is not looked for when so much is wrong.
  private static let limit = 3

  /// - Parameters:
  ///   - command: The program's path, and its arguments before the container's path.
  ///   - count: How often the migration is killed.
  init(_ work: FixtureWork, command: [String], count: Int) {
    (self.work, self.command, self.count) = (work, command, count)
  }

  /// What a kill broke; empty when every container was whole. A fixture that cannot be migrated, or needs not be, is not
  /// killed.
  ///
  /// - Throws: `ContainerError` and what making a container throws; `FixtureError` with code `notBuilt` for a program that
  ///   cannot be started.
  func findings() throws -> [FixtureFinding] {
    guard work.fixture.expectsSuccess, count > 0 else { return [] }
    guard !command.isEmpty else {
      throw FixtureError(.notBuilt, "no program is named whose migration could be killed")
    }
    let victim = try Victim(command, work)
    defer { victim.removeKey() }
    let container = try work.container("torture")
    let before = try work.state(of: container)
    let whole = try victim.run(on: container, killedAt: .never)
    if case .failed(let message) = whole.end {
      return [FixtureFinding(.torture, "run as a program, the migration fails: \(message)")]
    }
    guard try !work.state(of: container).findings(since: before, .torture).isEmpty else { return [] }
    let migrated = try work.write(container, as: "torture-migrated")
    try remove("torture")

    var findings: [FixtureFinding] = []
    var points = FaultPoint.allCases.shuffled()
    for number in 1...count where findings.count < Self.limit {
      let trial = Trial(work: work, victim: victim, migrated: migrated, name: "torture-\(number)")
      if number.isMultiple(of: 2) {
        findings += try trial.run(.moment(.random(in: 0...whole.seconds))).findings
        continue
      }
      // A run does not come to every point: one that it passed over is not tried again.
      while let point = points.last {
        let result = try trial.run(.point(point))
        findings += result.findings
        if result.wasKilled || !result.findings.isEmpty {
          points.shuffle()
          break
        }
        points.removeLast()
      }
    }
    return findings
  }

  private func remove(_ name: String) throws {
    try work.scratch.removeTree(ContainerPath("container-" + name))
  }
}

/// One kill on a fresh container.
private struct Trial {
  let work: FixtureWork
  let victim: Victim
  /// The golden of a migrated container.
  let migrated: String
  let name: String

  func run(_ kill: Victim.Kill) throws -> (wasKilled: Bool, findings: [FixtureFinding]) {
    let container = try work.container(name)
    defer { try? work.scratch.removeTree(ContainerPath(name: Array("container-\(name)".utf8))) }
    let before = try work.state(of: container)
    let end = try victim.run(on: container, killedAt: kill).end
    if case .failed(let message) = end {
      return (false, [FixtureFinding(.torture, "\(kill): the migration fails instead: \(message)")])
    }
    do {
      try Transaction.recover(container, lockTimeout: 5)
      return (end == .killed, try judge(container, before, kill))
    } catch {
      return (end == .killed, [FixtureFinding(.torture, "\(kill): afterwards, \(error)")])
    }
  }

  /// Wholly old, or wholly new; and the migration completes.
  private func judge(
    _ container: Container, _ before: ExactState, _ kill: Victim.Kill
  ) throws -> [FixtureFinding] {
    let fromOld = try work.state(of: container).findings(since: before, .torture)
    if !fromOld.isEmpty {
      let fromNew = try work.findings(container, against: migrated, .torture)
      guard let first = fromNew.first else { return [] }
      return [
        tell(
          first,
          "\(kill): the container is neither as it was (\(fromOld.count) differences, the first at "
            + "\(fromOld[0].place ?? "?")) nor as migrated (\(fromNew.count)): \(first.message)")
      ]
    }
    try work.runner.migrate(container)
    return try work.findings(container, against: migrated, .torture).prefix(1).map {
      tell($0, "\(kill): the container is as it was, and migrates to something else: \($0.message)")
    }
  }

  private func tell(_ finding: FixtureFinding, _ message: String) -> FixtureFinding {
    var finding = finding
    finding.message = message
    return finding
  }
}
