import AppContainer
import FileSystem
import Formats

/// Paths of a container as `fixture.yaml` writes them.
extension YAMLNode {
  /// A path below a container's root.
  func path(_ what: String) throws -> ContainerPath {
    try Self.path(text(what), what, position)
  }

  /// A path in a container; `.` is its root.
  func pathOrRoot(_ what: String) throws -> ContainerPath {
    let text = try text(what)
    return text == "." ? .root : try Self.path(text, what, position)
  }

  /// A list of paths below a container's root, or one alone.
  func paths(_ what: String) throws -> [ContainerPath] {
    try (sequence ?? [self]).map { try $0.path("an element of \(what)") }
  }

  fileprivate static func path(
    _ text: String, _ what: String, _ position: YAMLPosition
  ) throws -> ContainerPath {
    guard let path = try? ContainerPath(text), !path.isRoot else {
      throw position.error(
        "\(what): `\(text)` is no path below the container; write it without a leading `/` or `..`")
    }
    return path
  }

  /// A class of data protection.
  func protection() throws -> ProtectionClass {
    let word = try text("a protection class")
    guard let known = ProtectionClass(rawValue: word) else {
      let words = ProtectionClass.allCases.map(\.rawValue)
      throw position.error(
        "`\(word)` is no protection class; \(NearestWord.hint(for: word, among: words))")
    }
    return known
  }
}

extension YAMLMapping.Pair {
  /// The key as a path in a container; `.` is its root.
  func path() throws -> ContainerPath {
    key.source == "." ? .root : try YAMLNode.path(key.source, "a key", keyPosition)
  }
}
