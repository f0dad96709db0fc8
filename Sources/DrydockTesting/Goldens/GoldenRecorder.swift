import AppContainer
import AppStores
import ContainerDiff
import DrydockErrors
import FileSystem
import MigrationEngine

/// Writes and updates the goldens of a fixture: that of the latest version, and those of released versions that it
/// lacks. A released golden is never changed.
package struct GoldenRecorder {
  private let fixture: Fixture
  private let latest: Int
  private let released: [Int: String]
  private let deviceKeys: DeviceKeys?
  private let redactor: Redactor

  package init(
    _ fixture: Fixture, latest: Int, releases: Releases, deviceKeys: DeviceKeys? = nil,
    redactor: Redactor = Redactor()
  ) {
    (self.fixture, self.latest, self.deviceKeys, self.redactor) = (fixture, latest, deviceKeys, redactor)
    released = Dictionary(
      releases.releases.map { ($0.version, $0.name) }, uniquingKeysWith: { first, _ in first })
  }

  /// Why nothing is recorded: `CI` is set, and a pipeline only checks; nil otherwise.
  package static func refusal(in environment: [String: String]) -> String? {
    guard let value = environment["CI"], !value.isEmpty, value != "false" else { return nil }
    return
      "goldens are not recorded where CI is set, so that a person reviews them; record them on your machine "
      + "and commit them"
  }

  /// The versions whose goldens are to be written: the latest, and released ones from the fixture's version on that
  /// have none; ascending.
  package var versions: [Int] {
    let lacking = released.keys.filter {
      $0 >= fixture.version && $0 < latest && fixture.goldens[$0] == nil
    }
    return lacking.sorted() + [latest]
  }

  /// Writes the goldens, all of them or none.
  ///
  /// - Parameters:
  ///   - containerAt: Gives the fixture's container, migrated to a version; asked for ascending versions. It is only read.
  ///   - migrating: What migrating such a container to a version changes.
  /// - Returns: What became of each golden, by version; also those that were removed.
  /// - Throws: `DrydockError` with code `frozen` when the latest version is released and its golden differs; what the
  ///   closure and reading the containers throw. No golden was changed then.
  package func record(
    _ containerAt: (Int) throws -> Container,
    migrating: (Container, Int) throws -> ContainerDifference = { _, _ in ContainerDifference() }
  ) throws -> [FixtureSuite.Golden] {
    let root = try Directory(fixture.directory)
    let temporary = try ScratchDirectory(".drydock-record-", in: root)
    let scratch = temporary.directory
    var recorded: [FixtureSuite.Golden] = []
    for version in versions {
      let base = fixture.goldens[version] == nil ? fixture.base(of: version, besides: versions) : nil
      let difference = try base.map { try migrating(containerAt($0), version) }
      let text = try GoldenText(
        of: containerAt(version), volatile: fixture.volatile, deviceKeys: deviceKeys)
      let golden = scratch.full(Self.name(version))
      try text.write(to: golden)
      var result = try compare(version, text, golden)
      if let difference { (result.base, result.difference) = (base, difference) }
      recorded.append(result)
    }
    // From here on only names are exchanged.
    for golden in recorded where golden.change != .unchanged {
      try place(golden.version, from: scratch, in: root)
    }
    return (recorded + (try removeStale(root, scratch))).sorted { $0.version < $1.version }
  }

  private static func name(_ version: Int) -> ContainerPath { ContainerPath(name: Array("\(version)".utf8)) }

  private static let expected: ContainerPath = "expected"

  private func directory(_ version: Int) -> String { "\(fixture.directory)/expected/\(version)" }

  private func compare(_ version: Int, _ text: GoldenText, _ golden: String) throws -> FixtureSuite.Golden {
    let new: GoldenText, written: Golden
    do {
      written = try Golden(golden)
      new = try GoldenText(of: written, volatile: fixture.volatile)
    } catch let error as DrydockError where error.code == .badFixture {
      // A golden that cannot be read again would fail each check without a reason.
      throw DrydockError(
        .notBuilt,
        "the golden of version \(version) could not be read again: \(error.message); check `volatile` in fixture.yaml",
        path: fixture.directory, cause: error)
    }
    var recorded = FixtureSuite.Golden(
      fixture: fixture.name, version: version, directory: directory(version), change: .written)
    guard let old = fixture.goldens[version] else { return recorded }
    recorded.change = try text.isSame(as: old) ? .unchanged : .updated
    if recorded.change == .unchanged { return recorded }
    var isEqual = false
    do {
      let golden = try Golden(old)
      let expected = try GoldenText(of: golden, volatile: fixture.volatile)
      isEqual = EntryDifference.between(expected.entries, new.entries).isEmpty
      var options = ComparisonOptions()
      let settings = Array(golden.settings.values) + written.settings.values
      (options.rowLimit, options.redactor) = (20, redactor.knowing(settings.map { $0.values }))
      recorded.difference = try Comparison(
        of: NormalizedSide(golden, fixture.volatile), with: NormalizedSide(written, fixture.volatile),
        options: options
      ).difference
    } catch let error as DrydockError where error.code == .badFixture {
      recorded.difference = nil
    }
    guard let release = released[version] else { return recorded }
    // The spelling of a frozen golden does not matter.
    guard isEqual else { throw frozen(release, version, old) }
    (recorded.change, recorded.difference) = (.unchanged, nil)
    return recorded
  }

  private func frozen(_ release: String, _ version: Int, _ golden: String) -> DrydockError {
    DrydockError(
      .frozen,
      "version \(version) was released with \(release): its golden is frozen, and the result now differs; "
        + "undo what changed the result, or put the change into a new migration", path: golden)
  }

  private func place(_ version: Int, from scratch: Directory, in root: Directory) throws {
    let name = Self.name(version)
    let target = try Self.expected.appending("\(version)")
    try root.createDirectories(Self.expected, mode: 0o755)
    if try root.status(target) == nil {
      try scratch.rename(name, in: root, to: target)
    } else {
      try scratch.exchange(name, in: root, with: target)
    }
  }

  private func removeStale(_ root: Directory, _ scratch: Directory) throws -> [FixtureSuite.Golden] {
    try fixture.goldens.keys.filter { $0 != latest && released[$0] == nil }.map { version in
      try root.rename(
        try Self.expected.appending("\(version)"), in: scratch,
        to: ContainerPath(name: Array("stale-\(version)".utf8)))
      return FixtureSuite.Golden(
        fixture: fixture.name, version: version, directory: directory(version), change: .removed)
    }
  }
}

extension FixtureSuite {
  /// What became of a golden.
  public struct Golden: Sendable, Codable {
    /// How it was changed.
    public enum Change: String, Sendable, Codable {
      case written, updated, unchanged
      /// It was of a version that is neither the latest nor released.
      case removed
    }

    /// The name of its fixture.
    public var fixture: String
    /// Its schema version.
    public var version: Int
    /// Its directory, such as `Fixtures/v1/expected/6`.
    public var directory: String
    /// What became of it.
    public var change: Change
    /// How it differs from the old one, secrets hidden; empty when only the spelling changed. Of one that was not there, what
    /// the migrations change from the version ``base`` on. Nil when the old one cannot be read, was removed or is unchanged.
    public var difference: ContainerDifference?
    /// The version before that has a golden, or else that of the fixture; nil when the golden was there already.
    public var base: Int?
  }
}
