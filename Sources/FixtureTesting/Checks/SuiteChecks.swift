import AppContainer
import ContainerDiff
import FileSystem
import MigrationEngine

/// Every release has a fixture that its app wrote, and where secrets outlive the app, there is one of that, too.
enum ReleaseCheck {
  static func findings(
    _ fixtures: [Fixture], _ releases: Releases, _ catalog: MigrationCatalog
  ) -> [FixtureFinding] {
    let fresh = Set(fixtures.filter(\.isFresh).map(\.version))
    var seen: Set<Int> = []
    var findings: [FixtureFinding] = []
    for release in releases.releases
    where !fresh.contains(release.version) && seen.insert(release.version).inserted {
      var finding = FixtureFinding(
        .release,
        "no fixture with `fresh: true` has version \(release.version), that of the release \(release.name): have that app "
          + "write a container, and take it with `drydock fixture capture`")
      (finding.file, finding.line) = (release.position.file, release.position.line)
      findings.append(finding)
    }
    let usesVault =
      fixtures.contains { $0.setup.vault != nil } || catalog.migrations.contains { $0.vaultUse != nil }
    if !releases.releases.isEmpty, usesVault, !fixtures.contains(where: \.isReinstalled) {
      findings.append(
        FixtureFinding(
          .release,
          "the app has a vault, which outlives it on the device, and no fixture says `reinstalled: true`: add one of "
            + "version 0 that has nothing but the vault"))
    }
    return findings
  }
}

/// Every step of every migration has an effect on some fixture: a step that none exercises is proven by none.
enum Coverage {
  static func findings(_ proofs: [FixtureProof], _ catalog: MigrationCatalog) -> [FixtureFinding] {
    let effective = proofs.reduce(into: Set<StepOutline>()) { $0.formUnion($1.effective) }
    return catalog.migrations.flatMap { migration in
      migration.outline.filter { !$0.isEmpty && !effective.contains($0) }.map { step in
        var finding = FixtureFinding(
          .coverage,
          "the step \(step.operation) changes nothing in any fixture: add one where it does, or remove the step"
        )
        finding.migration = migration.identifier
        (finding.file, finding.line) = (step.position.file, step.position.line)
        return finding
      }
    }
  }
}

/// A container that was migrated to a version is like one that the app of that version wrote itself: the same schema, the
/// same keys of settings, the same flags and protection, the same accessibility of secrets. What the user put in differs.
struct FreshCheck {
  private let older: FixtureProof, newer: FixtureProof
  private let difference: ContainerDifference
  private let own: GoldenSide, migrated: GoldenSide

  /// Compares the containers of older versions, migrated, with fresh ones of each version.
  ///
  /// - Parameter jobs: How many are compared at once.
  /// - Throws: `DrydockError` when a golden that was just written cannot be read.
  static func findings(
    _ proofs: [FixtureProof], _ catalog: MigrationCatalog, jobs: Int
  ) throws -> [FixtureFinding] {
    let fresh = proofs.filter { $0.fixture.isFresh && $0.shapes[$0.fixture.version] != nil }
      .sorted { $0.fixture.version < $1.fixture.version }
    // What the nearest older one shows is not reported for the others.
    let pairs = fresh.flatMap { newer in
      fresh.reversed().filter { $0.fixture.version < newer.fixture.version }.map { (older: $0, newer: newer) }
    }
    var findings: [FixtureFinding] = []
    var failure: (any Error)?
    OrderedWork.run(pairs, jobs: jobs) { pair in
      Result { try FreshCheck(pair.older, pair.newer)?.findings(catalog) ?? [] }
    } deliver: { _, result in
      switch result {
      case .success(let found):
        findings += found.filter { finding in
          !findings.contains { $0.place == finding.place && $0.found == finding.found }
        }
      case .failure(let error): failure = failure ?? error
      }
    }
    if let failure { throw failure }
    return findings
  }

  private init?(_ older: FixtureProof, _ newer: FixtureProof) throws {
    let version = newer.fixture.version
    guard let migrated = older.shapes[version], let own = newer.shapes[version] else { return nil }
    (self.older, self.newer) = (older, newer)
    (self.own, self.migrated) = (try GoldenSide(Golden(own)), try GoldenSide(Golden(migrated)))
    difference = try Comparison(of: self.own, with: self.migrated).difference
  }

  private func findings(_ catalog: MigrationCatalog) -> [FixtureFinding] {
    let version = newer.fixture.version
    let span = catalog.migrations.filter { $0.number > older.fixture.version && $0.number <= version }
    return (schema + settings + flags + secrets).map { place, expected, found in
      var finding = FixtureFinding(
        .fresh,
        "\(older.fixture.name), migrated to version \(version), is not like \(newer.fixture.name), which the app wrote",
        place: place)
      (finding.expected, finding.found) = (expected, found)
      finding.migration = FirstMigration.text(span)
      finding.file = newer.fixture.directory + "/fixture.yaml"
      return finding
    }
  }

  private var comparesColumnOrder: Bool {
    older.fixture.volatile.comparesColumnOrder || newer.fixture.volatile.comparesColumnOrder
  }

  private typealias Difference = (place: String, expected: String?, found: String?)

  private var schema: [Difference] {
    difference.databases.flatMap { database -> [Difference] in
      if database.change != .changed {
        return [
          (
            database.path.description, database.change == .removed ? "a database" : nil,
            database.change == .added ? "a database" : nil
          )
        ]
      }
      return database.schema.flatMap { object -> [Difference] in
        let place = "\(database.path): \(object.kind) \(object.name)"
        if object.columns.isEmpty {
          let isSame =
            SQLText.isSame(object.before, object.after)
            || !comparesColumnOrder && SQLText.isSameButForColumnOrder(object.before, object.after)
          return isSame ? [] : [(place, object.before, object.after)]
        }
        return object.columns.map { ("\(place), column \($0.name)", $0.before, $0.after) }
      }
    }
  }

  /// Only whether a key is there: its value is the user's.
  private var settings: [Difference] {
    let optional = PatternList(older.fixture.optionalSettings + newer.fixture.optionalSettings)
    return difference.settings.filter { setting in
      guard setting.change != .changed else { return false }
      let name = ContainerPath(name: Array(setting.key.utf8))
      if case .matched = optional.verdict(of: name, isDirectory: false) { return false }
      return true
    }.map { setting in
      let isMissing = setting.change == .removed
      return ("\(setting.file): \(setting.key)", isMissing ? "a setting" : nil, isMissing ? nil : "a setting")
    }
  }

  /// Of what both have.
  private var flags: [Difference] {
    let names = { (entry: ComparedEntry) in
      Set((entry.attributes ?? [:]).filter { Self.isFlag($0.key) }.map { "\($0.key)=\($0.value)" })
    }
    let there = Dictionary(migrated.entries.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    return own.entries.compactMap { entry in
      guard let other = there[entry.path], names(entry) != names(other) else { return nil }
      return (entry.path.description, Self.text(entry), Self.text(other))
    }
  }

  private static func isFlag(_ name: String) -> Bool {
    name == ProtectionClass.attribute || name == ExclusionAttributes.robots
      || name.hasSuffix(ExclusionAttributes.apple) || name.hasSuffix(ExclusionAttributes.oldApple)
  }

  private static func text(_ entry: ComparedEntry) -> String {
    let words = (entry.attributes ?? [:]).filter { isFlag($0.key) }.map {
      GoldenFlag.word($0.key, $0.value) ?? $0.key
    }
    return words.isEmpty ? "no flag" : words.sorted().joined(separator: ", ")
  }

  /// Of items that both have.
  private var secrets: [Difference] {
    difference.vault.flatMap { vault in
      (vault.items ?? []).filter { $0.change == .changed }.flatMap { item in
        item.attributes.filter { ["accessible", "access control", "synchronizable"].contains($0.name) }
          .map { ("\(vault.path): \(item.name): \($0.name)", $0.before, $0.after) }
      }
    }
  }
}
