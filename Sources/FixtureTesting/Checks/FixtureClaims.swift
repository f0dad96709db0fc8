import AppContainer
import ContainerTransaction
import MigrationEngine

/// Whether what a fixture says of itself is enough, and true.
enum FixtureClaims {
  /// What is missing of what says how it must come out.
  static func findings(_ fixture: Fixture, _ catalog: MigrationCatalog) -> [FixtureFinding] {
    var findings: [FixtureFinding] = []
    let file = fixture.directory + "/fixture.yaml"
    func add(_ message: String, _ file: String) {
      var finding = FixtureFinding(.golden, message)
      finding.file = file
      findings.append(finding)
    }
    if !fixture.saysWhatItMustBe {
      add("nothing says what it must be like: add `expect`, or write goldens with `--record`", file)
    } else if !fixture.goldens.isEmpty, fixture.goldens[catalog.latest] == nil {
      add("it has no golden of the latest version, \(catalog.latest): write it with `--record`", file)
    }
    for (version, golden) in fixture.goldens.sorted(by: { $0.key < $1.key }) {
      if version < fixture.version {
        add("it is of version \(version), and the fixture's is \(fixture.version): remove it", golden)
      } else if !catalog.hasVersion(version) {
        add("there is no migration \(version): remove it", golden)
      }
    }
    return findings
  }

  /// What would say more. Without a golden nothing but what `expect` names is looked at.
  static func notes(_ fixture: Fixture, _ catalog: MigrationCatalog) -> [String] {
    guard fixture.goldens.isEmpty, fixture.expectation != nil else { return [] }
    return [
      "only what `expect` names is compared: record a golden of version \(catalog.latest) with `drydock test --record`"
    ]
  }

  /// A reinstalled app finds what outlives it on the device, and that is the vault alone.
  static func reinstalled(
    _ fixture: Fixture, _ container: Container, _ runner: FixtureRunner
  ) throws -> [FixtureFinding] {
    let (source, vault) = try runner.inspect(container) { stage in
      let detected = try? DetectedVersion.detect(in: stage, tool: runner.catalog.tool)
      return (detected?.source, try stage.vaultEncryption())
    }
    var finding = FixtureFinding(
      .build, "it says `reinstalled: true`, so that its container holds a vault and nothing else")
    finding.file = fixture.directory + "/fixture.yaml"
    finding.found = vault == nil ? "no vault" : "settings, databases or files"
    return source == .newContainer && vault != nil ? [] : [finding]
  }
}
