import DrydockErrors
import FileSystem
import Formats

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

  /// Looks into a fixture's directory. What looks like a part of a fixture and is none is an error: a container without
  /// what was meant to be in it could pass every check.
  ///
  /// - Throws: `DrydockError` with code `malformed`.
  init(of fixture: Directory) throws {
    let known = [Self.container, Self.groups, Self.archiveFile, Self.expected]
    for name in try fixture.names().map(ContainerPath.init(name:)) where !known.contains(name) {
      let text = name.nameString
      guard !text.hasPrefix("."), let status = try fixture.status(name) else { continue }
      if text == "container.tar.zst.age" {
        throw DrydockError(
          .badFixture,
          "a fixture's archive is not encrypted, since nobody who checks it has the key; `drydock fixture capture` makes "
            + "a fixture of one", path: fixture.full(name))
      }
      if status.type == .directory || text.hasPrefix("container.") {
        throw DrydockError(
          .badFixture,
          "this is no part of a fixture; \(NearestWord.hint(for: text, among: known.map(\.nameString)))",
          path: fixture.full(name))
      }
    }
    let hasFiles = try fixture.status(Self.container) != nil
    let hasGroups = try fixture.status(Self.groups) != nil
    let hasArchive = try fixture.status(Self.archiveFile) != nil
    if hasArchive, hasFiles || hasGroups {
      throw DrydockError(
        .badFixture, "the archive is all of the container: leave `container` and `groups` out",
        path: fixture.full(Self.archiveFile))
    }
    self = hasArchive ? .archive : hasFiles || hasGroups ? .files : .nothing
  }
}
