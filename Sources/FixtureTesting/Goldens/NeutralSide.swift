import AgeEncryption
import AppContainer
import ContainerDiff
import FileSystem
import Formats

/// A side of a comparison as a golden holds it: without Drydock's own state, with neutral values in the place of volatile
/// ones.
package struct NeutralSide: ComparisonSide {
  /// See ``ComparisonSide``.
  package private(set) var entries: [ComparedEntry] = []
  /// See ``ComparisonSide``.
  package private(set) var omitted: [ContainerPath: String]
  private let side: any ComparisonSide
  private let neutral: NeutralValues
  private let settings: Set<ContainerPath>

  /// What a golden would hold of a side.
  ///
  /// - Throws: `DrydockError` with code `malformed` for a pattern that is none.
  package init(_ side: any ComparisonSide, _ volatile: VolatileValues = VolatileValues()) throws {
    self.side = side
    neutral = try NeutralValues(volatile)
    omitted = side.omitted.filter { !Golden.isState($0.key) }
    settings = Set(side.entries.filter { $0.kind == .settings }.map(\.path))
    for entry in side.entries where !Golden.isState(entry.path) {
      var entry = entry
      if neutral.isVolatile(entry.path, isDirectory: entry.kind == .directory) {
        (entry.hasContent, entry.mode, entry.attributes) = (false, nil, nil)
        if entry.kind == .directory { omitted[entry.path] = "it is volatile" }
      }
      entries.append(entry)
    }
  }

  /// See ``ComparisonSide``: none of settings, which are compared by what is in them.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    if !neutral.isNothing, settings.contains(path), try side.settings(of: path) != nil { return nil }
    return try side.digest(of: path)
  }

  /// See ``ComparisonSide``.
  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try side.settings(of: path).map(neutral.settings)
  }

  /// See ``ComparisonSide``.
  package func vault(of path: ContainerPath) throws -> ComparedVault? { try side.vault(of: path) }

  /// See ``ComparisonSide``.
  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    let digest = try side.databaseDigest(of: path)
    if neutral.isNothing { return digest }
    if case .raw = digest { return digest }
    return .unknown
  }

  /// See ``ComparisonSide``: a database made anew, with neutral values.
  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    if neutral.isNothing { return try side.databaseFile(of: path, in: scratch, as: name) }
    return try ScratchDirectory.withTemporary { folder in
      defer { side.forgetDatabase(path) }
      let lines = try GoldenSQL(
        path: side.databaseFile(of: path, in: folder, as: "database"), neutral: neutral
      ).lines()
      let full = scratch.full(name)
      try GoldenDatabase.make(lines.joined(separator: "\n"), from: path.description, at: full)
      return full
    }
  }

  /// See ``ComparisonSide``.
  package func forgetDatabase(_ path: ContainerPath) { side.forgetDatabase(path) }
}

extension Golden {
  /// What is volatile in the fixture that the golden is of; nil when it is of none.
  ///
  /// - Throws: what reading the fixture throws.
  package func volatile() throws -> VolatileValues? {
    guard let resolved = realPath(directory), let (expected, _) = try? ContainerPath.split(resolved),
      expected.hasSuffix("/expected"), let (fixture, _) = try? ContainerPath.split(expected),
      FollowedStatus.identity(fixture + "/fixture.yaml") != nil
    else { return nil }
    return try Fixture.load(fixture).volatile
  }
}
