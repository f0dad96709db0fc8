import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// The released migrations, from `releases.yaml` beside the migrations: users' containers may have them, so that they must
/// not change.
package struct Releases: Sendable, Equatable {
  package struct Release: Sendable, Equatable {
    /// Such as `2.5.0`.
    package var name: String
    package var version: Int
    package var migrations: [Frozen]
    /// In `releases.yaml`.
    package let position: YAMLPosition
  }

  /// A migration as it was released.
  package struct Frozen: Sendable, Equatable {
    package var number: Int
    /// Without the number.
    package var name: String
    package var checksum: SHA256.Digest
    /// In `releases.yaml`.
    let position: YAMLPosition
  }

  /// The releases, oldest first.
  package private(set) var releases: [Release] = []
  private let file: String

  static let fileName = "releases.yaml"

  /// The newest released schema version; 0 without any.
  package var version: Int { releases.map(\.version).max() ?? 0 }

  /// Reads `releases.yaml` of a directory of migrations, which may be missing.
  ///
  /// - Throws: `DrydockError` with the place in the file.
  package static func read(_ directory: String) throws -> Releases { try Releases(directory) }

  private init(_ directory: String) throws {
    file = directory + "/" + Self.fileName
    let path = try ContainerPath(Self.fileName)
    guard FollowedStatus.identity(file) != nil else { return }
    let bytes = try Directory(directory).contents(path)
    guard let root = try YAMLDocument(bytes, file: file).root else { return }
    releases = try root.elements("the list of releases").map(Self.release)
  }

  private static func release(_ node: YAMLNode) throws -> Release {
    let reader = try YAMLReader(node, what: "a release", keys: ["release", "version", "migrations"])
    return Release(
      name: try reader.required("release").text("`release`"),
      version: Int(try reader.required("version").integer("`version`")),
      migrations: try reader.required("migrations").elements("`migrations`").map(Self.frozen),
      position: node.position)
  }

  private static func frozen(_ node: YAMLNode) throws -> Frozen {
    let reader = try YAMLReader(node, what: "a released migration", keys: ["number", "name", "checksum"])
    let text = try reader.required("checksum")
    guard let checksum = SHA256.Digest(hex: try text.text("`checksum`")) else {
      throw text.position.error("`checksum` is a SHA-256 of 64 hexadecimal digits")
    }
    return Frozen(
      number: Int(try reader.required("number").integer("`number`")),
      name: try reader.required("name").text("`name`"), checksum: checksum, position: node.position)
  }

  /// An error, and the number of the migration that it is about.
  typealias Problem = (number: Int?, error: DrydockError)

  /// The migrations that were modified, removed or inserted since their release, and releases that cannot be.
  ///
  /// - Parameter isComplete: whether the catalog has every migration of the directory.
  func problems(in catalog: MigrationCatalog, isComplete: Bool = true) -> [Problem] {
    var problems: [Problem] = []
    var known: Set<Int> = []
    for (index, release) in releases.enumerated() {
      if releases[..<index].contains(where: { $0.name == release.name }) {
        problems.append((nil, twice("the release \(release.name)", release.position)))
      }
      for frozen in release.migrations {
        if !known.insert(frozen.number).inserted {
          problems.append((nil, twice("migration \(frozen.number)", frozen.position)))
          continue
        }
        guard let now = catalog.migration(frozen.number) else {
          if isComplete { problems.append((frozen.number, removed(frozen, release))) }
          continue
        }
        if !now.accepts(frozen.checksum) || now.name != frozen.name {
          problems.append((frozen.number, edited(now, frozen, release)))
        }
      }
      if isComplete, release.version > max(catalog.latest, known.max() ?? 0) {
        problems.append((nil, beyond(release, catalog.latest)))
      }
    }
    let newest = version
    for migration in catalog.migrations where migration.number <= newest && !known.contains(migration.number)
    {
      let error = DrydockError(
        .released,
        "migration \(migration.identifier) was inserted below the released version \(newest): containers with that version would "
          + "never run it; give it the next free number", path: migration.file)
      problems.append((migration.number, error))
    }
    return problems
  }

  private func twice(_ what: String, _ position: YAMLPosition) -> DrydockError {
    position.error(
      "\(what) is there twice, as after a merge: keep the entry that was released", code: .released)
  }

  private func beyond(_ release: Release, _ latest: Int) -> DrydockError {
    release.position.error(
      "the release \(release.name) has version \(release.version), and the migrations end with \(latest): restore "
        + "the missing ones, or correct the version", code: .released)
  }

  private func removed(_ frozen: Frozen, _ release: Release) -> DrydockError {
    let name = Migration.padded(frozen.number) + "_" + frozen.name
    return DrydockError(
      .released,
      "\(frozen.position): migration \(name) was released with \(release.name), and its files are missing: restore them"
    )
  }

  private func edited(_ now: Migration, _ frozen: Frozen, _ release: Release) -> DrydockError {
    let renamed = now.name == frozen.name ? "" : " (it was named \(frozen.name))"
    return DrydockError(
      .released,
      "migration \(now.identifier) was modified since its release with \(release.name)\(renamed): restore its files, and "
        + "put the change into a new migration", path: now.file)
  }

  /// Appends a release with all migrations that are in none yet. The rest of the file is not changed.
  ///
  /// - Throws: ``DrydockError`` `usage` when there is a release of that name.
  package mutating func add(_ name: String, _ catalog: MigrationCatalog) throws -> Release {
    guard !name.isEmpty, !name.contains(where: { $0.isNewline || "\"\\".contains($0) }) else {
      throw DrydockError(.usage, "a release's name is one line without quotes, such as 2.5.0")
    }
    guard !releases.contains(where: { $0.name == name }) else {
      throw DrydockError(.usage, "the release \(name) exists already: a release is never changed", path: file)
    }
    let old = Set(releases.flatMap(\.migrations).map(\.number))
    let start = YAMLPosition(file: file, line: 1, column: 1)
    let release = Release(
      name: name, version: catalog.latest,
      migrations: catalog.migrations.filter { !old.contains($0.number) }.map {
        Frozen(number: $0.number, name: $0.name, checksum: $0.checksum, position: start)
      }, position: start)
    try append(release, to: Directory(catalog.directory))
    releases.append(release)
    return release
  }

  private func append(_ release: Release, to directory: Directory) throws {
    let path = try ContainerPath(Self.fileName)
    var text =
      FollowedStatus.identity(file) == nil
      ? """
      # What has been released, and must not change any more: `drydock release` appends to this file, and `drydock validate`
      # compares. Keep it under version control.

      """ : String(decoding: try directory.contents(path), as: UTF8.self)
    if !text.hasSuffix("\n") { text += "\n" }
    text += "- release: \"\(release.name)\"\n  version: \(release.version)\n"
    text += release.migrations.isEmpty ? "  migrations: []\n" : "  migrations:\n"
    for item in release.migrations {
      text += "    - {number: \(item.number), name: \"\(item.name)\", checksum: \"\(item.checksum.hex)\"}\n"
    }
    try directory.replace(path, with: Array(text.utf8), mode: 0o644)
  }
}
