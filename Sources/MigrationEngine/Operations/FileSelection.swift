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
  static func list(_ reader: YAMLReader) throws -> [ContainerSelection] {
    try list(try reader.required("path"), "`path`")
  }

  /// The selections of a list, or of one text alone.
  static func list(_ node: YAMLNode, _ what: String) throws -> [ContainerSelection] {
    if node.sequence?.isEmpty == true { throw node.position.error("\(what) is an empty list") }
    return try (node.sequence ?? [node]).map { try ContainerSelection($0, what) }
  }

  static func list(_ texts: [String], at position: YAMLPosition) throws -> [ContainerSelection] {
    try list(YAMLNode(texts.map { YAMLNode(.string($0), at: position) }, at: position), "`path`")
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

  /// The selected paths without Drydock's history, parents first. When there are none the step fails or adds a note.
  func matches(
    in stage: StagedContainer, _ ifMissing: IfMissing, _ notes: inout [String]
  ) throws -> [ContainerPath] {
    let found = try matches(in: stage).filter { !stage.isHistory($0) }
    if found.isEmpty {
      if ifMissing == .fail { throw StepFailure(message: "nothing matches `\(self)`") }
      notes.append("nothing matches `\(self)`: skipped")
    }
    return found
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

/// The arguments `from` and `to` of an operation that moves or copies: one path and its new path, or several (a list, or
/// the matches of a pattern) and the directory that they go into under their own names.
struct PathTransfer: Sendable {
  struct Pair: Equatable {
    var from, to: ContainerPath
  }

  private let from: [ContainerSelection]
  let to: ContainerPath
  /// The only path; nil for several.
  let single: ContainerPath?

  /// One path.
  init(from source: ContainerPath, to target: ContainerPath, at position: YAMLPosition) throws {
    (from, to) = ([], try target.notRoot("`to`", at: position))
    single = try source.notRoot("`from`", at: position)
    guard target != source else { throw position.error("`from` and `to` are the same path") }
    guard !target.isInside(source), !source.isInside(target) else {
      throw position.error("one of `from` and `to` is inside the other")
    }
  }

  init(_ reader: YAMLReader) throws {
    let source = try reader.required("from")
    let selections = try ContainerSelection.list(source, "`from`")
    let target = try reader.required("to")
    let path = try target.containerPath("`to`")
    if source.sequence == nil, let single = selections[0].path {
      try self.init(from: single, to: path, at: target.position)
    } else {
      self.init(from: selections, to: path)
    }
  }

  private init(from selections: [ContainerSelection], to directory: ContainerPath) {
    (from, to, single) = (selections, directory, nil)
  }

  /// The existing sources, each with its target.
  ///
  /// - Throws: ``StepFailure`` when a required source is missing, or two sources have the same target.
  func pairs(
    on stage: StagedContainer, _ ifMissing: IfMissing, _ notes: inout [String]
  ) throws -> [Pair] {
    if let single {
      if try stage.status(of: single) != nil { return [Pair(from: single, to: to)] }
      if ifMissing == .fail {
        throw StepFailure(message: "`\(single)` is not in the container", path: single.description)
      }
      notes.append("`\(single)` does not exist: skipped")
      return []
    }
    var pairs: [Pair] = []
    for selection in from {
      for path in try selection.matches(in: stage, ifMissing, &notes) {
        // A path inside the target stays there, and one inside a moved directory moves with it.
        let goesAlready = pairs.contains { $0.from == path || path.isInside($0.from) }
        if goesAlready || path == to || path.isInside(to) { continue }
        // A sidecar moves with the main file of its database.
        if pairs.contains(where: { Self.isSidecar(path, of: $0.from) }) { continue }
        guard !to.isInside(path) else {
          throw StepFailure(
            message: "`\(to)` is inside `\(path)`, which `\(selection)` matches", path: path.description)
        }
        guard let name = path.components.last else { continue }
        let target = to.appending(name: name)
        if let other = pairs.first(where: { $0.to == target }) {
          throw StepFailure(
            message: "`\(other.from)` and `\(path)` would both become `\(target)`", path: path.description)
        }
        pairs.append(Pair(from: path, to: target))
      }
    }
    return pairs
  }

  private static func isSidecar(_ path: ContainerPath, of main: ContainerPath) -> Bool {
    ["-wal", "-shm", "-journal"].contains { main.withSuffix($0) == path }
  }
}
