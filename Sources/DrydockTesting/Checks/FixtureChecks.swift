import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import MigrationEngine

/// All checks of one fixture, in the order in which one needs the other.
struct FixtureChecks {
  /// What they found so far.
  private(set) var checked: CheckedFixture

  /// The paths that each step changed.
  private var touched: [(step: StepOutline, paths: [ContainerPath])] = []
  private var work: FixtureWork
  /// The versions of which there is a fresh container; none when this one cannot be compared with it.
  private let freshVersions: Set<Int>
  private var fixture: Fixture { work.fixture }
  private var runner: FixtureRunner { work.runner }
  private var latest: Int { work.catalog.latest }

  init(_ work: FixtureWork, freshVersions: Set<Int>) {
    (self.work, self.freshVersions) = (work, freshVersions)
    checked = CheckedFixture(notRun: work.fixture, work.catalog)
  }

  /// Runs them. Whatever goes wrong is a finding.
  mutating func run() {
    do {
      let container = try work.container("main")
      try check(container)
    } catch {
      add(error, .build)
    }
    for (index, finding) in checked.result.findings.enumerated() where finding.cause == nil {
      checked.result.findings[index].cause = cause(of: finding)
    }
  }

  /// The first step of a finding's migration that changes its path; else the migration's file.
  private func cause(of finding: Finding) -> Finding.Cause? {
    guard let migration = work.catalog.migrations.first(where: { $0.identifier == finding.migration }) else {
      return nil
    }
    let step = touched.first { step, paths in
      step.migration == migration.number
        && paths.contains { path in
          finding.place == path.description || finding.place?.hasPrefix("\(path): ") == true
        }
    }
    return step.map { Finding.Cause($0.step.position) }
      ?? Finding.Cause(file: migration.file)
  }

  private mutating func check(_ container: Container) throws {
    checked.result.findings += work.descriptionFindings
    checked.result.findings += try work.reinstallFindings(container)
    let before = try work.state(of: container)
    guard fixture.expectsSuccess else { return try checkRefusal(container, before) }
    checked.result.notes += work.descriptionNotes
    checked.result.findings += try work.takeExpectation(before: container)
    let downCheck = DownCheck(work)
    if freshVersions.contains(fixture.version) { checked.shapes[fixture.version] = try shape(of: container) }
    let known = try work.schemaFindings(container, at: fixture.version)
    checked.result.findings += known
    if downCheck.isNeeded { try downCheck.takeStart(container) }

    var watch = RunWatch(copies: work.scratch, work.catalog)
    let outcome: TransactionOutcome<MigrationReport>
    do {
      outcome = try runner.migrate(container, &watch)
    } catch {
      return add(error, .migration)
    }
    (checked.didRun, checked.effective, checked.lost) = (true, watch.effective, watch.lost)
    touched = watch.touched
    checked.result.notes += outcome.value.migrations.flatMap(\.notes).filter(DatabaseState.isAboutDropped)
    guard outcome.value.to == latest else {
      return checked.result.findings.append(
        Finding(.migration, "migrating ended at version \(outcome.value.to), not at \(latest)"))
    }
    attempt(.golden) { try $0.checkResult(container) }
    attempt(.golden) { try $0.checkVolatileNames(container) }
    attempt(.fresh) {
      // What the app itself left different is not reported again.
      $0.checked.result.findings += try $0.work.schemaFindings(container, at: $0.latest).filter { finding in
        !known.contains { $0.place == finding.place && $0.found == finding.found }
      }
    }
    checked.result.findings += work.findings(of: watch.finalLosses, in: container)
    attempt(.again) { try $0.checkAgain(container) }
    if outcome.transaction == nil { return }
    let count = checked.result.findings.count
    attempt(.rollback) { try $0.checkRollback(container, before) }
    guard checked.result.findings.count == count else {
      return checked.result.notes.append("the down steps were not checked, because rolling back fails")
    }
    attempt(.down) {
      try $0.checked.result.findings += downCheck.findings(
        container, &$0.checked.result.notes, &$0.checked.downLosses)
    }
  }

  // MARK: What must fail

  /// Migrating must fail as `expect` says, and leave everything as it was.
  private mutating func checkRefusal(_ container: Container, _ before: ExactState) throws {
    var watch = RunWatch(copies: work.scratch, work.catalog)
    do {
      _ = try runner.migrate(container, &watch)
      checked.result.findings.append(
        Finding(.migration, "migrating succeeded, and `expect` says that it fails"))
    } catch {
      checked.didRun = true
      let message = DrydockError.text(of: error)
      for words in fixture.expectation?.error ?? [] where !message.contains(words) {
        checked.result.findings.append(
          Finding(
            .expectation, "the error does not say what `expect` says", expected: words, found: message))
      }
      checked.result.findings += try work.state(of: container).findings(since: before, .migration)
    }
  }

  // MARK: The result

  /// The goldens of all versions from the fixture's on, and `expect`.
  private mutating func checkResult(_ container: Container) throws {
    var first = FirstMigration(work)
    var known: Set<[String?]> = []
    var wrong: [Int: Set<String?>] = [:]
    for (version, golden) in try goldens(with: container) {
      var found = golden
      wrong[version] = Set(found.map(\.place))
      // What an earlier golden showed is not reported again.
      found.removeAll { known.contains($0.difference) }
      first.name(&found, from: .golden(version), at: version) { finding in
        let right = wrong.filter { $0.key < version && !$0.value.contains(finding.place) }.keys
        return max(right.max() ?? fixture.version, fixture.version)
      }
      known.formUnion(found.map(\.difference))
      checked.result.findings += found
    }
    var expected = try work.expectationFindings(container)
    first.name(&expected, from: .expectation, at: latest) { _ in fixture.version }
    checked.result.findings += expected
    if freshVersions.contains(latest), checked.shapes[latest] == nil {
      checked.shapes[latest] = try shape(of: container)
    }
  }

  private func shape(of container: Container) throws -> [GoldenEntry] {
    try work.text(of: container).entries.filter { $0.noun != "row" }
  }

  /// What differs from each golden, by version; those before the latest are looked at in a second container.
  private mutating func goldens(with latest: Container) throws -> [(version: Int, findings: [Finding])] {
    var results: [(version: Int, findings: [Finding])] = []
    let stops = Set(fixture.goldens.keys.filter { $0 >= fixture.version && $0 < self.latest })
      .union(fixture.isFresh ? freshVersions.filter { $0 > fixture.version && $0 < self.latest } : [])
    if !stops.isEmpty {
      try work.migrating("stops", to: stops.filter(work.catalog.hasVersion)) { version, container in
        if let golden = fixture.goldens[version] {
          results.append((version, try work.findings(container, against: golden)))
        }
        if freshVersions.contains(version), checked.shapes[version] == nil {
          checked.shapes[version] = try shape(of: container)
        }
      }
    }
    if let golden = fixture.goldens[self.latest] {
      results.append((self.latest, try work.findings(latest, against: golden)))
    }
    return results
  }

  /// A name may be of one version only: it must match at one of those that are looked at.
  private mutating func checkVolatileNames(_ latest: Container) throws {
    var unknown = fixture.volatileNames
    if !unknown.isEmpty { try unknown.subtract(work.text(of: latest).volatileNames) }
    if !unknown.isEmpty {
      let versions = Set(fixture.goldens.keys).union([fixture.version]).filter {
        $0 >= fixture.version && $0 < self.latest && work.catalog.hasVersion($0)
      }
      try work.migrating("volatile", to: versions) { _, container in
        try unknown.subtract(work.text(of: container).volatileNames)
      }
    }
    for name in unknown.sorted() {
      checked.result.findings.append(
        Finding(
          .golden,
          "`volatile` names \(name), which neither the fixture nor what it is migrated to has: correct or remove it",
          file: fixture.file))
    }
  }

  // MARK: Again, and back

  mutating func checkAgain(_ container: Container) throws {
    let before = try work.state(of: container)
    if try runner.migrate(container).transaction == nil { return }
    let changed = try work.state(of: container).findings(since: before, .again)
    checked.result.findings +=
      changed.isEmpty ? [Finding(.again, "migrating again changed something")] : changed
  }

  /// Rolls back; and when all is as it was, forward again.
  private mutating func checkRollback(_ container: Container, _ before: ExactState) throws {
    try runner.rollBack(container)
    let differences = try work.state(of: container).findings(since: before, .rollback)
    checked.result.findings += differences
    if differences.isEmpty { try runner.rollBack(container, redoing: true) }
  }

  // MARK: Failures

  private mutating func attempt(_ check: Finding.Check, _ body: (inout FixtureChecks) throws -> Void) {
    do { try body(&self) } catch { add(error, check) }
  }

  private mutating func add(_ error: any Error, _ check: Finding.Check) {
    checked.result.findings.append(Self.finding(error, check, work))
  }

  /// What an error says. One of a migration names its place.
  static func finding(_ error: any Error, _ check: Finding.Check, _ work: FixtureWork) -> Finding {
    var finding = Finding(check, DrydockError.text(of: error))
    if !finding.locate(in: work.catalog), check == .build { finding.file = work.fixture.file }
    return finding
  }
}

extension FixtureResult.Finding.Cause {
  init(_ position: YAMLPosition) { self.init(file: position.file, line: position.line) }
}

extension FixtureResult.Finding {
  /// Names the migration and the place in it that the message begins with: `file:line:column: …`.
  ///
  /// - Returns: false when the message is about no migration.
  fileprivate mutating func locate(in catalog: MigrationCatalog) -> Bool {
    for migration in catalog.migrations {
      // Migrations in Swift share a file: the line shows which it is.
      guard let step = migration.outline.first(where: { message.hasPrefix("\($0.position):") }) else {
        continue
      }
      blame(step, catalog)
      return true
    }
    guard message.hasPrefix(catalog.directory + "/") else { return false }
    // A colon may be part of the directory's name.
    let parts = message.dropFirst(catalog.directory.count + 1)
      .split(separator: ":", maxSplits: 3, omittingEmptySubsequences: false)
    guard let name = parts.first,
      let found = catalog.migrations.first(where: { name.hasPrefix($0.identifier) })
    else { return false }
    (migration, file) = (found.identifier, "\(catalog.directory)/\(name)")
    line = parts.count > 1 ? Int(parts[1]) : nil
    cause = file.map { Cause(file: $0, line: line) }
    return true
  }
}

extension FixtureWork {
  /// Which expectations or goldens of the fixture are missing or superfluous.
  fileprivate var descriptionFindings: [Finding] {
    var findings: [Finding] = []
    func add(_ message: String, _ file: String) {
      findings.append(Finding(.golden, message, file: file))
    }
    if !fixture.saysWhatItMustBe {
      add("the fixture expects nothing: add `expect`, or record goldens", fixture.file)
    } else if !fixture.goldens.isEmpty, fixture.goldens[catalog.latest] == nil {
      add("no golden of the latest version, \(catalog.latest): record it", fixture.file)
    }
    for (version, golden) in fixture.goldens.sorted(by: { $0.key < $1.key }) {
      if version < fixture.version {
        add(
          "the golden is of version \(version), the fixture of \(fixture.version): remove the golden", golden)
      } else if !catalog.hasVersion(version) {
        add("migration \(version) does not exist: remove the golden", golden)
      }
    }
    return findings
  }

  /// Advice for a fixture without goldens, of which only what `expect` names is compared.
  fileprivate var descriptionNotes: [String] {
    guard fixture.goldens.isEmpty, fixture.expectation != nil else { return [] }
    return [
      "only what `expect` names is compared: record a golden of version \(catalog.latest)"
    ]
  }

  /// A reinstalled app finds what outlives it on the device, and that is the vault alone.
  fileprivate func reinstallFindings(_ container: Container) throws -> [Finding] {
    guard fixture.isReinstalled else { return [] }
    let stage = try runner.stage(on: container)
    let source = try? DetectedVersion.detect(in: stage, tool: runner.catalog.tool).source
    let vault = try stage.vaultEncryption()
    if source == .newContainer, vault != nil { return [] }
    return [
      Finding(
        .build, "a fixture with `reinstalled: true` has a vault and nothing else",
        found: vault == nil ? "no vault" : "settings, databases or files", file: fixture.file)
    ]
  }
}
