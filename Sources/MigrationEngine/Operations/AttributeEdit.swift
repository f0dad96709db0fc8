import ContainerTransaction
import FileSystem
import Formats

/// Changes extended attributes of what a step selects: paths, or what matches patterns.
struct AttributeEdit: Sendable {
  private let paths: [ContainerSelection]
  private let ifMissing: IfMissing

  init(_ reader: YAMLReader) throws {
    paths = try ContainerSelection.list(reader)
    ifMissing = try reader.ifMissing()
  }

  /// Changes the metadata of each path, where that makes a difference.
  ///
  /// - Throws: ``StepFailure`` where a path cannot carry the attribute.
  func apply(
    to stage: StagedContainer, _ memory: inout StepMemory, change: (inout FileMetadata) -> Void
  ) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      for path in try selection.matches(in: stage, ifMissing, &notes) {
        guard let status = try stage.status(of: path), let before = try stage.metadata(of: path) else {
          continue
        }
        var after = before
        change(&after)
        if after == before { continue }
        if status.type == .symbolicLink {
          throw StepFailure(
            message: "`\(path)` is a symbolic link, which cannot carry the attribute: name what it points to",
            path: path.description)
        }
        guard try stage.attainable(after, for: status.type).attributes == after.attributes else {
          throw StepFailure(
            message: "`\(path)` cannot carry the attribute: its file system has no extended attributes",
            path: path.description)
        }
        try stage.setMetadata(after, of: path)
        memory.note(attributes: path, before: before.attributes, after: after.attributes)
      }
    }
    return notes
  }
}
