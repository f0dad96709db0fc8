import AppContainer
import AppStores
import FileSystem
import MigrationEngine

extension FixtureSuite {
  /// Every release has a fixture that its app wrote, and where secrets outlive the app, there is one of that, too.
  var releaseFindings: [Finding] {
    let fresh = Set(fixtures.filter(\.isFresh).map(\.version))
    var seen: Set<Int> = []
    var findings: [Finding] = []
    for release in releases.releases
    where !fresh.contains(release.version) && seen.insert(release.version).inserted {
      findings.append(
        Finding(
          .release,
          "no fixture with `fresh: true` has version \(release.version), that of the release \(release.name): "
            + "have that app write a container, capture a fixture of it, and add `fresh: true` to its fixture.yaml",
          file: release.position.file, line: release.position.line))
    }
    let usesVault =
      fixtures.contains { $0.setup.vault != nil } || catalog.migrations.contains { $0.vaultUse != nil }
    if !releases.releases.isEmpty, usesVault, !fixtures.contains(where: \.isReinstalled) {
      findings.append(
        Finding(
          .release,
          "the app has a vault, which outlives it on the device, and no fixture says `reinstalled: true`: add one of "
            + "version 0 that has nothing but the vault"))
    }
    return findings
  }

  /// What the fixtures lack that a release needs: a fixture of each released version, and the goldens of the latest.
  package var releaseDemands: [Finding] {
    get throws {
      let lacking = try current.filter { !$0.goldens.isEmpty && $0.goldens[catalog.latest] == nil }.map(
        \.name)
      if lacking.isEmpty { return releaseFindings }
      let message =
        "no golden of version \(catalog.latest), which is released now, in \(lacking.joined(separator: ", ")): record it"
      return releaseFindings + [Finding(.golden, message)]
    }
  }

  /// Every step of every migration has an effect on some fixture: a step that none exercises is checked by none.
  func coverageFindings(_ checked: [CheckedFixture]) -> [Finding] {
    let effective = checked.reduce(into: Set<StepOutline>()) { $0.formUnion($1.effective) }
    return catalog.migrations.flatMap { migration in
      migration.outline.filter { !$0.isEmpty && !effective.contains($0) }.map { step in
        var finding = Finding(
          .coverage,
          "the step \(step.operation) changes nothing in any fixture: add one where it does, or remove the step"
        )
        finding.blame(step, catalog)
        return finding
      }
    }
  }

  /// What `loses` names and no fixture loses. Losses of a step that announces them with `destructive` are not followed.
  func unusedLosses(_ checked: [CheckedFixture]) -> [String] {
    catalog.migrations.flatMap { migration -> [String] in
      let didRun = checked.contains { !$0.effective.isDisjoint(with: migration.outline) }
      guard didRun, migration.outline.allSatisfy({ $0.announcedLoss == .nothing }) else { return [] }
      let lost = Set(checked.flatMap { $0.lost[migration.number] ?? [] })
      return migration.losses.keys.filter { !lost.contains($0) }.sorted().map {
        "migration \(migration.identifier): `loses` names `\($0)`, which no step loses in any fixture: correct or remove it"
      }
    }
  }

  /// A container that was migrated to a version is like one that the app of that version wrote itself: the same schema,
  /// the same keys of settings, the same flags and protection, the same accessibility of secrets. What the user put in
  /// differs.
  func freshFindings(_ checked: [CheckedFixture]) -> [Finding] {
    let fresh = checked.filter { $0.fixture.isFresh && $0.shapes[$0.fixture.version] != nil }
      .sorted { $0.fixture.version < $1.fixture.version }
    var findings: [Finding] = []
    for newer in fresh {
      for older in fresh.reversed() where older.fixture.version < newer.fixture.version {
        // What the nearest older one shows is not reported for the others.
        findings += freshFindings(older, newer).filter { finding in
          !findings.contains { $0.place == finding.place && $0.found == finding.found }
        }
      }
    }
    return findings
  }

  private func freshFindings(_ older: CheckedFixture, _ newer: CheckedFixture) -> [Finding] {
    let version = newer.fixture.version
    guard let migrated = older.shapes[version], let own = newer.shapes[version] else { return [] }
    let span = catalog.migrations.filter { $0.number > older.fixture.version && $0.number <= version }
    let optional = PatternList(older.fixture.optionalSettings + newer.fixture.optionalSettings)
    let redactor = Redactor()
    return EntryDifference.between(own, migrated).compactMap { difference in
      guard let entry = difference.entry, let (expected, found) = Self.values(difference, optional, redactor)
      else {
        return nil
      }
      var finding = Finding(
        .fresh,
        "\(older.fixture.name), migrated to version \(version), is not like \(newer.fixture.name), which the app wrote",
        place: entry.name(redactor)
          + (entry.noun == "vault item" ? difference.fields.map { ": \($0.old.name)" } ?? "" : ""),
        expected: expected, found: found, file: newer.fixture.file)
      finding.migration = FirstMigration.text(span)
      if span.count == 1 { finding.cause = Finding.Cause(file: span[0].file) }
      return finding
    }
  }

  /// What is said of a difference; nil for what the user put in.
  private static func values(
    _ difference: EntryDifference, _ optional: PatternList, _ redactor: Redactor
  ) -> (expected: String?, found: String?)? {
    guard let entry = difference.entry, let noun = entry.noun else { return nil }
    let isMissing = difference.new == nil
    switch noun {
    case "table", "index", "view", "trigger", "column", "number":
      if let fields = difference.fields { return (fields.old.shown(redactor), fields.new.shown(redactor)) }
      return (difference.old?.whole(redactor), difference.new?.whole(redactor))
    case "database" where difference.fields == nil:
      return (isMissing ? "a database" : nil, isMissing ? nil : "a database")
    case "setting" where difference.fields == nil:
      // Only whether a key is there: its value is the user's.
      let name = ContainerPath(name: Array((entry.id.last?.text ?? "").utf8))
      if optional.contains(name, isDirectory: false) { return nil }
      return (isMissing ? "a setting" : nil, isMissing ? nil : "a setting")
    case "vault item":
      guard let (old, new) = difference.fields, ["accessible", "access control"].contains(old.name) else {
        return nil
      }
      return (old.shown(redactor), new.shown(redactor))
    default:
      guard let (old, new) = difference.fields, old.name == GoldenLine.flagsField else { return nil }
      let found = (flags(old.text.text), flags(new.text.text))
      return found.0 == found.1 ? nil : found
    }
  }

  /// The flags of backups and data protection.
  private static func flags(_ text: String) -> String {
    let names = [
      "excluded", "protection=", Exclusion.robotsAttribute, Exclusion.appleAttribute,
      Exclusion.oldAppleAttribute, ProtectionClass.attribute,
    ]
    let flags = text.split(separator: ",").filter { flag in names.contains { flag.contains($0) } }
    return flags.isEmpty ? "no flag" : flags.joined(separator: ", ")
  }
}

extension FixtureWork {
  /// The database of a container has the schema that the app's library declares for its version: Room's exported schema,
  /// SQLDelight's `.sq` files.
  func schemaFindings(_ container: Container, at version: Int) throws -> [Finding] {
    guard let declared = try DeclaredSchema(catalog, runner.configuration) else { return [] }
    return try declared.drift(in: runner.stage(on: container), at: version).map { drift in
      Finding(
        .fresh,
        "the database of version \(version) is not like one that the app creates"
          + (drift.what.isEmpty ? "" : ": its \(drift.what) differs"), place: drift.place,
        expected: drift.expected, found: drift.found, file: drift.file ?? fixture.file, line: drift.line)
    }
  }
}
