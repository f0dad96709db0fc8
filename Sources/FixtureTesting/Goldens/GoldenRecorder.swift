import AppContainer
import ContainerTransaction
import MigrationEngine

/// Writes and updates the goldens of a fixture: that of the latest version, and those of released versions that it lacks.
/// What a release froze is never changed.
public struct GoldenRecorder {
  private let fixture: Fixture
  private let latest: Int
  private let released: [Int: String]
  private let deviceKeys: DeviceKeys?
  private let redactor: Redactor

  /// A recorder for a fixture.
  ///
  /// - Parameters:
  ///   - latest: The newest schema version.
  ///   - deviceKeys: What opens the containers' vaults.
  ///   - redactor: What hides secrets in the differences.
  public init(
    _ fixture: Fixture, latest: Int, releases: Releases, deviceKeys: DeviceKeys? = nil,
    redactor: Redactor = Redactor()
  ) {
    (self.fixture, self.latest, self.deviceKeys, self.redactor) = (fixture, latest, deviceKeys, redactor)
    released = Dictionary(
      releases.releases.map { ($0.version, $0.name) }, uniquingKeysWith: { first, _ in first })
  }

  /// Why nothing is recorded: `CI` is set, so that this is a pipeline, which only checks; nil when it is not.
  public static func refusal(in environment: [String: String]) -> String? {
    guard let value = environment["CI"], !value.isEmpty, value != "false" else { return nil }
    return
      "goldens are not recorded where CI is set: a pipeline checks what a person has looked at; run it on your own "
      + "machine and commit the goldens"
  }

  /// The versions whose goldens are to be written: the latest, and released ones from the fixture's version on that have
  /// none; ascending.
  public var versions: [Int] {
    let lacking = released.keys.filter { $0 >= fixture.version && $0 < latest && fixture.goldens[$0] == nil }
    return lacking.sorted() + [latest]
  }

  /// Writes the goldens, all of them or none.
  ///
  /// - Parameter containerAt: Gives the fixture's container, migrated to a version; asked once for each of ``versions``, in
  ///   their order. It is only read.
  /// - Returns: What became of each golden, by version; also those that were removed.
  /// - Throws: `FixtureError` with code `frozen` when the latest version is released and its golden differs; what the
  ///   closure and reading the containers throw. No golden was changed then.
  public func record(_ containerAt: (Int) throws -> Container) throws -> [RecordedGolden] { [] }
}

/// What recording did with a golden.
public struct RecordedGolden: Sendable, Codable {
  /// What became of it.
  public enum Change: String, Sendable, Codable {
    case written, updated, unchanged
    /// It was of a version that is neither the latest nor released.
    case removed
  }

  /// The fixture's name.
  public var fixture: String
  /// The schema version.
  public var version: Int
  /// Its directory.
  public var directory: String
  /// What became of it.
  public var change: Change
  /// What the new one says differently; nil when there was none before, or when it was removed.
  public var difference: ContainerDifference?
}
