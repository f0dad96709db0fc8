import AppContainer
import ContainerTransaction

/// `files.delete`: removes paths, or everything that matches a pattern counted from the container's root
/// (`*.log` is in the root only, `**/*.log` at any depth). A database goes with all that belongs to it.
struct DeleteFiles: MigrationOperation {
  static let name = "files.delete"
  static let keys = ["paths", "destructive", "if-missing"]

  private let paths: [ContainerSelection]
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    let node = try reader.required("paths")
    paths = try (node.sequence ?? [node]).map { try ContainerSelection($0, "`paths`") }
    ifMissing = try reader.ifMissing()
    _ = try reader.reason()
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      // The history is Drydock's own, and is not deleted along with the directory it is in.
      let history = stage.container.historyPath
      let found = try selection.matches(in: stage).filter { $0 != history && !$0.isInside(history.parent) }
      if found.isEmpty {
        if ifMissing == .fail { throw StepFailure(message: "nothing matches `\(selection)`") }
        notes.append("nothing matches `\(selection)`: skipped")
      }
      for path in found where try stage.status(of: path) != nil {
        if history.isInside(path) {
          throw StepFailure(
            message: "`\(path)` holds Drydock's history: name what is in it instead", path: path.description)
        }
        try memory.noteRemoved(path, on: stage)
        try stage.remove(path)
      }
    }
    return notes
  }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).putBackRemoved(on: stage)
  }
}

/// A path, or a pattern of paths, in the container.
struct ContainerSelection: Sendable, CustomStringConvertible {
  private enum Kind: Sendable {
    case path(ContainerPath)
    case pattern(GlobPattern)
  }

  private let kind: Kind
  let description: String

  init(_ node: YAMLNode, _ what: String) throws {
    description = try node.text(what)
    if GlobPattern.isPattern(description) {
      guard !description.hasPrefix("/"), !description.split(separator: "/").contains("..") else {
        throw node.position.error("\(what): a pattern is relative to the container, without `..`")
      }
      // The slash counts it from the root: without one a pattern matches at any depth.
      kind = .pattern(GlobPattern("/" + description))
    } else {
      kind = .path(try node.containerPath(what))
    }
  }

  /// What is there and selected, parents first.
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
