import AppContainer
import AppStores
import FileSystem
import Formats
import MigrationEngine

/// Reverting migrations step by step reaches the state before them, as far as they have down steps.
struct DownCheck {
  private let work: FixtureWork
  /// The version to go down to, and the last migration that has no down steps.
  private let target: Int
  private let barrier: Migration?

  init(_ work: FixtureWork) {
    self.work = work
    barrier = work.catalog.migrations.last { $0.number > work.fixture.version && !$0.isReversible }
    target = barrier?.number ?? work.fixture.version
  }

  var isNeeded: Bool { target < work.catalog.latest }

  /// Reverts from the latest version on, and compares the state: below each migration with explicit down steps
  /// and at the end. Migrations that the engine inverts are reverted together with it.
  ///
  /// - Parameters:
  ///   - notes: gets the reason why it stops.
  ///   - needed: gets the announced losses that occur.
  func findings(
    _ container: Container, _ notes: inout [String], _ needed: inout Set<DownLoss>
  ) throws -> [Finding] {
    if let barrier, !barrier.isIrreversible {
      notes.append("\(barrier.identifier) has no down steps: older migrations were not reverted")
    }
    guard isNeeded else { return [] }
    let numbers = work.migrations(above: target, upTo: work.catalog.latest)
    let stops = zip(numbers, [target] + numbers.dropLast()).filter { number, version in
      version == target || work.catalog.migration(number)?.hasExplicitDown == true
    }
    let goldens = try goldens(of: stops.map(\.1))
    var findings: [Finding] = []
    var known: Set<[String?]> = []
    for (number, version) in stops.reversed() {
      do {
        try work.runner.goDown(container, to: version)
      } catch {
        return findings + [FixtureChecks.finding(error, .down, work)]
      }
      guard let golden = goldens[version] else { continue }
      // What a later version showed is not reported again, and what its migration lost stays lost.
      let losses = DownLoss.all(of: work.catalog.migrations.filter { $0.number > version })
      let found = try differences(container, from: golden, besides: losses, &needed)
      findings += found.filter { !known.contains($0.difference) }.map { finding in
        var finding = finding
        finding.migration = work.catalog.migration(number)?.identifier
        return finding
      }
      known.formUnion(found.map(\.difference))
    }
    return findings
  }

  /// What differs besides announced losses. Not compared are the directories that Drydock's own history is in, a vault that
  /// nothing is in any more, settings of the version alone, SQLite's counters, which only ever rise, and the database that
  /// another tool makes for its own record.
  private func differences(
    _ container: Container, from golden: String, besides losses: [DownLoss], _ needed: inout Set<DownLoss>
  ) throws -> [Finding] {
    let found = try work.text(of: container)
    let findings = try found.findings(
      against: golden, volatile: work.fixture.volatile, redactor: work.runner.redactor,
      rowLimit: work.runner.rowLimit
    ) { difference in
      let covering = losses.filter { $0.covers(difference, work.runner.redactor) }
      needed.formUnion(covering)
      return covering.isEmpty
    }
    if findings.isEmpty { return [] }
    var leftovers = try work.catalog.tool.map { try container.databasePlaces($0.database) } ?? []
    if try found.files[Golden.vault] == ["[]"] && Golden(golden).items == nil {
      leftovers.append(container.vaultPath)
    }
    if let settings = try settingsWithVersionAlone(container) { leftovers.append(settings) }
    let above = ([container.historyPath] + leftovers).flatMap(\.ancestors)
    let unimportant = Set((leftovers + above).map(\.description))
    return findings.filter { finding in
      if finding.place?.contains(": sqlite_sequence") == true { return false }
      return finding.expected != nil || finding.found != nil
        || finding.place.map(unimportant.contains) != true
    }.map { finding in
      var finding = finding
      // The golden is a temporary one.
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
    let settings = try SettingsFile(bytes: root.contents(path), path: path.description).root
    return Set(settings.keys).isSubset(of: markers) ? path : nil
  }

  private var start: String { work.path("golden-start") }

  /// Writes the state before migrating, which the down steps must reach.
  func takeStart(_ container: Container) throws { try work.text(of: container).write(to: start) }

  /// Goldens of the states that there were at versions, from one container that is migrated on and on.
  private func goldens(of versions: [Int]) throws -> [Int: String] {
    var goldens = [work.fixture.version: start]
    try work.migrating("way-up", to: versions.filter { $0 != work.fixture.version }) { version, container in
      let golden = work.path("golden-up-\(version)")
      try work.text(of: container).write(to: golden)
      goldens[version] = golden
    }
    return goldens
  }
}

/// A place where reverting a migration may lose values, as its `down-loses` says.
struct DownLoss: Hashable {
  /// Such as `0002_rename_settings`.
  let migration: String
  private let place: String

  /// Those of migrations, in their order.
  static func all(of migrations: some Sequence<Migration>) -> [DownLoss] {
    migrations.flatMap { migration in
      migration.downLosses.keys.sorted().map { DownLoss(migration: migration.identifier, place: $0) }
    }
  }

  /// Whether a difference is there. Of a column or a table its values may be lost; its definition must be restored.
  func covers(_ difference: EntryDifference, _ redactor: Redactor) -> Bool {
    guard let entry = difference.entry else { return false }
    let path = entry.id[0].text
    if path == place || path.utf8.starts(with: "\(place)/".utf8) { return true }
    switch entry.noun {
    case "setting": return entry.id[2] == ExactText(place)
    case "vault item": return entry.name(redactor) == "\(path): \(place)"
    case "row":
      let table = entry.id[3].text.lowercased()
      let column = difference.fields.map { "\(table).\($0.old.name.lowercased())" }
      return [table, column].contains(place.lowercased())
    default: return false
    }
  }

  var unneededNote: String {
    "\(migration): no fixture needs `down-loses` of `\(place)`: correct the name, or remove it"
  }
}
