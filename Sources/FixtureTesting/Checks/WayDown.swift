import AppContainer
import ContainerTransaction
import MigrationEngine

/// Going down by steps reaches the state that there was before, as far as migrations can be taken back.
struct WayDown {
  private let work: FixtureWork
  /// The version to go down to, and the one that it goes no further than because of a migration without a way back.
  private let target: Int
  private let barrier: Migration?

  init(_ work: FixtureWork) {
    self.work = work
    barrier = work.catalog.migrations.last { $0.number > work.fixture.version && !$0.hasWayBack }
    target = barrier?.number ?? work.fixture.version
  }

  /// Whether there is any way down.
  var isNeeded: Bool { target < work.catalog.latest }

  /// Goes down from the latest version, and tells what is not as it was.
  ///
  /// - Parameter notes: takes why it goes no further.
  func findings(_ container: Container, _ notes: inout [String]) throws -> [FixtureFinding] {
    if let barrier, !barrier.isIrreversible {
      notes.append("\(barrier.identifier) has no way back by steps: what is before it was not gone back to")
    }
    guard isNeeded else { return [] }
    do {
      try work.runner.goDown(container, to: target)
    } catch {
      return [FixtureChecks.finding(error, .down, work)]
    }
    let findings = try differences(container, from: golden(of: target), "down")
    return findings.isEmpty ? [] : named(findings)
  }

  /// What is not as it was. How SQL is written does not count, since SQLite writes it anew; nor do the directories that
  /// Drydock's own history is in, a vault that nothing is in any more, settings of the version alone, SQLite's counters, which only ever rise, and the
  /// database that another tool makes for its own record.
  private func differences(
    _ container: Container, from golden: String, _ name: String
  ) throws -> [FixtureFinding] {
    let findings = try work.differences(container, from: golden, as: "golden-\(name)")
    if findings.isEmpty { return [] }
    var leftovers = try work.catalog.tool.map { try container.databasePlaces($0.database) } ?? []
    let isEmptied = try Golden(work.path("golden-\(name)")).items?.isEmpty == true
    if try isEmptied && Golden(golden).items == nil { leftovers.append(container.vaultPath) }
    if let settings = try settingsWithVersionAlone(container) { leftovers.append(settings) }
    let above = ([container.historyPath] + leftovers).flatMap(\.ancestors)
    let unimportant = Set((leftovers + above).map(\.description))
    return findings.filter { finding in
      if finding.place?.contains(": sqlite_sequence") == true { return false }
      guard finding.expected == nil && finding.found == nil else {
        return finding.expected == nil || !WrittenSQL.isSame(finding.expected, finding.found)
      }
      return finding.place.map(unimportant.contains) != true
    }.map { finding in
      var finding = finding
      // The golden is a scratch one, which nobody can look at.
      (finding.check, finding.file, finding.line) = (.down, nil, nil)
      return finding
    }
  }

  private func settingsWithVersionAlone(_ container: Container) throws -> ContainerPath? {
    let markers = container.configuration.versionMarkers.compactMap { marker in
      if case .defaults(let key) = marker.place { ExactText(key) } else { nil }
    }
    let root = try Directory(container.root)
    guard let path = container.standardDefaults, try root.status(path) != nil else { return nil }
    let settings = try PropertyListFile(bytes: root.contents(path)).root
    return Set(settings.keys).isSubset(of: markers) ? path : nil
  }

  /// A golden of the state that there was at a version.
  private func golden(of version: Int) throws -> String {
    if version == work.fixture.version { return work.path("golden-start") }
    let container = try work.container("down-\(version)")
    try work.runner.migrate(container, to: version)
    return try work.write(container, as: "golden-down-\(version)")
  }

  /// Goes up and down once more, one migration at a time, to see whose way back it is.
  private func named(_ findings: [FixtureFinding]) -> [FixtureFinding] {
    var findings = findings
    do {
      let container = try work.container("up-and-down")
      for number in work.migrations(above: target, upTo: work.catalog.latest)
      where findings.contains(where: { $0.migration == nil }) {
        let found = try upAndDown(number, container)
        for index in findings.indices where findings[index].migration == nil {
          let isSame = found.contains {
            $0.place == findings[index].place && $0.found == findings[index].found
          }
          if isSame { findings[index].migration = work.catalog.migration(number)?.identifier }
        }
      }
    } catch {
      // One at a time it may fail where all together do not: then it stays unknown which it is.
    }
    return findings
  }

  /// What one migration and its way back leave behind; afterwards the container has the version before it.
  private func upAndDown(_ number: Int, _ container: Container) throws -> [FixtureFinding] {
    let before = max(work.catalog.numbers.last { $0 < number } ?? 0, work.fixture.version)
    if before > work.fixture.version { try work.runner.migrate(container, to: before) }
    let golden = try work.write(container, as: "golden-before-\(number)")
    try work.runner.migrate(container, to: number)
    try work.runner.goDown(container, to: before)
    return try differences(container, from: golden, "after-\(number)")
  }
}
