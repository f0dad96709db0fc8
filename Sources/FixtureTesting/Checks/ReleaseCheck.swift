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
