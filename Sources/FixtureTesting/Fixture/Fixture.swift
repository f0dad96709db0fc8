import AppContainer

/// A container of an old version of the app, written down as text that a person can review, with what must be
/// true of it after migrating.
///
/// A fixture is a directory with `fixture.yaml` and `container/`. In `container/`, `NAME.sql` is the content of the
/// database `NAME`, `NAME.plist.yaml` that of the binary property list `NAME.plist`; every other file and every
/// symbolic link is taken as it is.
public struct Fixture: Sendable {
  /// The name: that of its directory.
  public let name: String
  /// The directory that holds it.
  public let directory: String
  /// What the fixture is, in a sentence.
  public let summary: String
  /// The schema version that the container has before it is migrated.
  public let version: Int
  /// Whether nothing in the container says which version it has, so that only `baseline` can.
  public let isUnmarked: Bool
  /// What version control does not keep.
  public let setup: FixtureSetup
  /// What must be true after migrating, besides goldens; nil when nothing is said.
  public let expectation: FixtureExpectation?
  /// Whether the app itself wrote it new at its version, so that migrated containers must be like it.
  public let isFresh: Bool
  /// Whether it is what a reinstalled app finds: nothing but the vault.
  public let isReinstalled: Bool
  /// Why some check of it is known to fail for now; nil when all must pass.
  public let knownFailure: String?
  /// What changes from run to run, here and in all fixtures beside it.
  public let volatile: VolatileValues
  /// Settings that a container may have or lack, when fresh containers are compared with migrated ones.
  public let optionalSettings: [String]
  /// Its goldens: the schema version and the directory `expected/VERSION` of each.
  public let goldens: [Int: String]

  /// Whether migrating must succeed.
  public var expectsSuccess: Bool { expectation?.error.isEmpty != false }

  /// Reads a fixture's description; the container is made by ``build(into:)``.
  ///
  /// - Throws: `FixtureError`, or `ContainerError` with `file:line:column` for what is not understood.
  public static func load(_ directory: String) throws -> Fixture {
    try Fixture(directory: directory)
  }

  /// All fixtures in a directory, sorted by name: the directories that have a `fixture.yaml`.
  ///
  /// - Throws: as ``load(_:)``; also when there is none, since a check of nothing must not pass.
  public static func all(in directory: String) throws -> [Fixture] {
    let root = try Directory(directory)
    let fixtures = try root.names().map { ContainerPath(name: $0) }
      .filter { try root.status($0.appending("fixture.yaml")) != nil }
      .map { try load(directory + "/" + $0.nameString) }
    guard !fixtures.isEmpty else {
      throw FixtureError(.notFound, "no directory here has a fixture.yaml", path: directory)
    }
    return fixtures
  }

  private init(directory: String) throws {
    let file = directory + "/fixture.yaml"
    let bytes = try Directory(directory).contents("fixture.yaml")
    guard let root = try YAMLDocument(bytes, file: file).root else {
      throw FixtureError(.malformed, "the file is empty; it needs at least `version:`", path: file)
    }
    let reader = try YAMLReader(
      root, what: "fixture.yaml",
      keys: [
        "description", "version", "unmarked", "fresh", "reinstalled", "known-failure", "container",
        "volatile",
        "optional-settings", "expect",
      ])
    let number = try reader.required("version").integer("`version`")
    guard let version = Int(exactly: number), version >= 0 else {
      throw try reader.required("version").position.error("`version` is 0 or more, not \(number)")
    }
    name = directory.split(separator: "/").last.map(String.init) ?? directory
    self.directory = directory
    summary = try reader.text("description") ?? name
    self.version = version
    isUnmarked = try reader.boolean("unmarked") ?? false
    setup = try FixtureSetup(reader["container"])
    isFresh = try reader.boolean("fresh") ?? false
    isReinstalled = try reader.boolean("reinstalled") ?? false
    knownFailure = try reader.text("known-failure")
    volatile = try VolatileValues(reader["volatile"])
    optionalSettings = try reader.texts("optional-settings") ?? []
    goldens = try Self.goldens(directory)
    expectation = try reader["expect"].map(FixtureExpectation.init)
  }

  private static func goldens(_ directory: String) throws -> [Int: String] {
    let root = try Directory(directory)
    guard try root.status("expected") != nil else { return [:] }
    var goldens: [Int: String] = [:]
    for name in try root.directory("expected").names() {
      let name = ContainerPath(name: name).nameString
      guard let version = Int(name), version >= 0, String(version) == name else {
        throw FixtureError(
          .malformed, "a golden is a directory named after its schema version, such as expected/6",
          path: "\(directory)/expected/\(name)")
      }
      goldens[version] = "\(directory)/expected/\(name)"
    }
    return goldens
  }
}
