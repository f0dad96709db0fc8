import ContainerTransaction
import FileSystem
import Formats

/// A path, or a pattern of paths, in the container.
struct ContainerSelection: Sendable, CustomStringConvertible {
  private enum Kind: Sendable {
    case path(ContainerPath)
    case pattern(GlobPattern)
  }

  private let kind: Kind
  let description: String

  /// The path; nil for a pattern.
  var path: ContainerPath? {
    if case .path(let path) = kind { path } else { nil }
  }

  /// The argument `path`: a path, a pattern, or a list of both.
  static func argument(_ what: String = "a path, a pattern, or a list") -> Argument<[ContainerSelection]> {
    Argument(["path": "required: " + what]) { reader, _ in try list(reader.required("path"), "`path`") }
  }

  /// The selections of a list, or of one text alone.
  static func list(_ node: YAMLNode, _ what: String) throws -> [ContainerSelection] {
    if node.sequence?.isEmpty == true { throw node.position.error("\(what) is an empty list") }
    return try (node.sequence ?? [node]).map { try ContainerSelection($0, what) }
  }

  init(_ node: YAMLNode, _ what: String) throws {
    description = try node.text(what)
    if GlobPattern.literal(description) == nil {
      guard GlobPattern.isPattern(description) else {
        throw node.position.error(
          "\(what): the pattern is malformed: a `[` without `]`, or a `\\` at the end")
      }
      guard !description.hasPrefix("/"), !description.split(separator: "/").contains("..") else {
        throw node.position.error("\(what): a pattern is relative to the container, without `..`")
      }
      // The slash anchors it at the root: without one a pattern matches at any depth.
      kind = .pattern(GlobPattern("/" + description))
    } else {
      kind = .path(try node.containerPath(what))
    }
  }

  /// Whether it can select one of the paths, or a directory above.
  func mayMatch(_ paths: [ContainerPath]) -> Bool {
    paths.contains { path in
      switch kind {
      case .path(let selected): path == selected || path.isInside(selected)
      case .pattern(let pattern):
        pattern.matches(path, isDirectory: false)
          || path.ancestors.contains { pattern.matches($0, isDirectory: true) }
      }
    }
  }

  /// The selected paths without Drydock's history, parents first. When there are none the step fails or adds a note.
  func matches(
    in stage: StagedContainer, _ ifMissing: IfMissing, _ notes: inout [String]
  ) throws -> [ContainerPath] {
    let found = try matches(in: stage).filter { !stage.isHistory($0) }
    if found.isEmpty { notes.append(try ifMissing.skipped("nothing matches `\(self)`")) }
    return found
  }

  /// The selected files and links without Drydock's history, parents first.
  func files(in stage: StagedContainer) throws -> [ContainerPath] {
    try matches(in: stage).filter { path in
      try !stage.isHistory(path) && stage.status(of: path)?.type != .directory
    }
  }

  /// The selected paths, parents first.
  func matches(in stage: StagedContainer) throws -> [ContainerPath] {
    switch kind {
    case .path(let path): return try stage.status(of: path) == nil ? [] : [path]
    case .pattern(let pattern):
      return try stage.descendants(of: .root).filter { path in
        pattern.matches(path, isDirectory: try stage.status(of: path)?.type == .directory)
      }
    }
  }
}
