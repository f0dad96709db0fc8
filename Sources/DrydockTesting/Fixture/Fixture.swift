import DrydockErrors
import FileSystem
import Formats

/// A container of an old version of the app, as text that a person can review, with what must be
/// true of it after migrating.
///
/// A fixture is a directory with `fixture.yaml`, `container/` (or an archive, `container.tar.zst`), `groups/` where the
/// app has groups, and goldens in `expected/`. In the container and the groups, `NAME.sql` is the content of the
/// database `NAME`, `NAME.plist.yaml` and `NAME.plist.xml` that of the binary property list `NAME.plist`; every other
/// file and every symbolic link is taken as it is.
public struct Fixture: Sendable {
  /// The name of its directory.
  public let name: String
  /// Its directory, as it was named.
  public let directory: String
  /// What the fixture is, in a sentence.
  public let summary: String
  /// The schema version that the container has before it is migrated.
  public let version: Int
  /// Whether nothing in the container says which version it has, so that only `baseline` can.
  package let isUnmarked: Bool
  /// What version control does not keep.
  package let setup: FixtureSetup
  /// What must be true after migrating, besides goldens; nil when nothing is said.
  package let expectation: FixtureExpectation?
  /// Whether the app itself wrote it new at its version, so that migrated containers must be like it.
  package let isFresh: Bool
  /// Whether it is what a reinstalled app finds: nothing but the vault.
  package let isReinstalled: Bool
  /// Why some check of it is known to fail for now; nil when all must pass.
  package let knownFailure: String?
  /// What changes from run to run, here and in all fixtures beside it.
  package let volatile: VolatileValues
  /// What its own `volatile` names: each matches something.
  let volatileNames: Set<String>
  /// Settings that a container may have or lack, when fresh containers are compared with migrated ones.
  package let optionalSettings: [String]
  /// Its goldens: the schema version and the directory `expected/VERSION` of each.
  package private(set) var goldens: [Int: String]
  let source: FixtureSource

  var file: String { directory + "/fixture.yaml" }

  package var expectsSuccess: Bool { expectation?.error.isEmpty != false }

  /// Whether goldens or expectations say what it must be like; a check of one that nothing is said of proves little.
  package var saysWhatItMustBe: Bool {
    !goldens.isEmpty || !expectsSuccess || expectation?.demandsSomething == true
  }

  /// Reads a fixture's description, and what `fixtures.yaml` beside it says of all; the container is made by
  /// ``FixtureSuite/container(of:in:deviceKeys:)``.
  ///
  /// - Throws: `DrydockError` with `file:line:column` for what is invalid.
  public static func load(_ directory: String) throws -> Fixture {
    let names = directory.split(separator: "/")
    // The directory goes by its own name, however it was come to.
    guard let last = names.last, last != ".", last != ".." else {
      guard let resolved = realPath(directory), resolved != "/" else {
        throw DrydockError(.notFound, "no such fixture; name its directory", path: directory)
      }
      return try load(resolved)
    }
    let path = (directory.hasPrefix("/") ? "/" : "") + names.joined(separator: "/")
    let parent = path.dropLast(last.utf8.count + 1)
    return try Fixture(
      directory: path,
      FixtureCommon(of: names.count > 1 ? String(parent) : directory.hasPrefix("/") ? "/" : "."))
  }

  /// All fixtures in a directory, sorted by name: the directories that have a `fixture.yaml`.
  ///
  /// - Throws: as ``load(_:)``; also when the directory has none, since a check of nothing must not pass.
  public static func all(in directory: String) throws -> [Fixture] {
    guard FollowedStatus.identity(directory) != nil else {
      throw DrydockError(.notFound, "no fixtures yet: the directory does not exist", path: directory)
    }
    let root = try Directory(directory)
    let common = try FixtureCommon(of: directory)
    let fixtures = try root.names().map { ContainerPath(name: $0) }
      .filter { try root.status($0.appending("fixture.yaml")) != nil }
      .map { try Fixture(directory: directory + "/" + $0.nameString, common) }
    guard !fixtures.isEmpty else {
      throw DrydockError(.notFound, "no directory in it has a fixture.yaml", path: directory)
    }
    return fixtures
  }

  private static let keys = [
    "description", "version", "unmarked", "fresh", "reinstalled", "known-failure", "container", "volatile",
    "optional-settings", "expect",
  ]

  private init(directory: String, _ common: FixtureCommon) throws {
    let file = directory + "/fixture.yaml"
    let folder = try Directory(directory)
    guard try folder.status("fixture.yaml") != nil else {
      throw DrydockError(
        .notFound, "the directory has no fixture.yaml", path: directory)
    }
    guard let root = try YAMLDocument(folder.contents("fixture.yaml"), file: file).root else {
      throw DrydockError(.badFixture, "the file is empty; it needs at least `version:`", path: file)
    }
    let reader = try YAMLReader(root, what: "fixture.yaml", keys: Self.keys)
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
    if let why = reader["known-failure"], knownFailure?.allSatisfy(\.isWhitespace) == true {
      throw why.position.error("`known-failure` says why it fails for now, in words")
    }
    if isFresh, isReinstalled, let node = reader["reinstalled"] {
      throw node.position.error(
        "a fixture is `fresh` or `reinstalled`, not both: a reinstalled app has nothing but a vault")
    }
    let own = try VolatileValues(reader["volatile"])
    (volatile, volatileNames) = (common.volatile.adding(own), own.names)
    optionalSettings = try common.optionalSettings + (reader.texts("optional-settings") ?? [])
    goldens = try Self.goldens(folder, directory)
    expectation = try reader["expect"].map(FixtureExpectation.init)
    if let expectation, expectation.error.isEmpty, goldens.isEmpty, !expectation.demandsSomething,
      expectation.losses.isEmpty
    {
      throw expectation.position.error(
        "`expect` names nothing that must be there: add settings, queries, files or vault items")
    }
    source = try FixtureSource(of: folder)
    if case .nothing = source, setup.isEmpty {
      throw DrydockError(
        .badFixture,
        "the fixture has no content: add `container/`, or describe it in fixture.yaml",
        path: directory)
    }
  }

  /// The fixture with the goldens that it has now.
  func withPresentGoldens() throws -> Fixture {
    var fixture = self
    fixture.goldens = try Self.goldens(Directory(directory), directory)
    return fixture
  }

  private static func goldens(_ folder: Directory, _ directory: String) throws -> [Int: String] {
    guard try folder.status(FixtureSource.expected) != nil else { return [:] }
    let expected = try folder.directory(FixtureSource.expected)
    var goldens: [Int: String] = [:]
    for path in try expected.names().map(ContainerPath.init(name:)) {
      let name = path.nameString
      // What version control and desktops put into directories.
      if name.hasPrefix(".") { continue }
      guard let version = Int(name), version >= 0, String(version) == name,
        try expected.status(path)?.type == .directory
      else {
        throw DrydockError(
          .badFixture, "a golden is a directory named after its schema version, such as expected/6",
          path: expected.full(path))
      }
      goldens[version] = "\(directory)/expected/\(name)"
    }
    return goldens
  }
}

/// What holds for all fixtures of a directory: `fixtures.yaml`, which need not be there.
struct FixtureCommon {
  var volatile = VolatileValues()
  var optionalSettings: [String] = []

  private static let name: ContainerPath = "fixtures.yaml"

  init(of directory: String) throws {
    let folder = try Directory(directory)
    guard try folder.status(Self.name) != nil else { return }
    let bytes = try folder.contents(Self.name, limit: 1 << 20)
    guard let root = try YAMLDocument(bytes, file: folder.full(Self.name)).root else { return }
    let reader = try YAMLReader(root, what: "fixtures.yaml", keys: ["volatile", "optional-settings"])
    volatile = try VolatileValues(reader["volatile"])
    optionalSettings = try reader.texts("optional-settings") ?? []
  }
}

/// What a fixture's container is made of.
enum FixtureSource: Sendable {
  /// `container/`, and `groups/` where there are any.
  case files
  /// `container.tar.zst`, an archive of drydock's.
  case archive
  /// Only what `fixture.yaml` says.
  case nothing

  static let container: ContainerPath = "container"
  static let groups: ContainerPath = "groups"
  static let archiveFile: ContainerPath = "container.tar.zst"
  static let expected: ContainerPath = "expected"

  /// Looks into a fixture's directory. An unknown directory or archive is an error: a container without
  /// what was meant to be in it could pass every check.
  ///
  /// - Throws: `DrydockError` with code `badFixture`.
  init(of fixture: Directory) throws {
    let known = [Self.container, Self.groups, Self.archiveFile, Self.expected]
    for name in try fixture.names().map(ContainerPath.init(name:)) where !known.contains(name) {
      let text = name.nameString
      guard !text.hasPrefix("."), let status = try fixture.status(name) else { continue }
      if text == "container.tar.zst.age" {
        throw DrydockError(
          .badFixture,
          "a fixture's archive must not be encrypted, since checks have no key", path: fixture.full(name))
      }
      if status.type == .directory || text.hasPrefix("container.") {
        throw DrydockError(
          .badFixture,
          "not a part of a fixture; \(NearestWord.hint(for: text, among: known.map(\.nameString)))",
          path: fixture.full(name))
      }
    }
    let hasFiles = try fixture.status(Self.container) != nil
    let hasGroups = try fixture.status(Self.groups) != nil
    let hasArchive = try fixture.status(Self.archiveFile) != nil
    if hasArchive, hasFiles || hasGroups {
      throw DrydockError(
        .badFixture, "an archive is the whole container: remove `container` and `groups`",
        path: fixture.full(Self.archiveFile))
    }
    self = hasArchive ? .archive : hasFiles || hasGroups ? .files : .nothing
  }
}

extension Fixture {
  /// The version that a version's golden is reviewed against: the last one before it that has a golden, or else the fixture's own;
  /// nil when there is none.
  func base(of version: Int, besides recorded: [Int] = []) -> Int? {
    ([self.version] + goldens.keys + recorded).filter { $0 >= self.version && $0 < version }.max()
  }
}

extension Fixture: CustomStringConvertible {
  /// The name, which a parametrised test shows.
  public var description: String { name }
}
