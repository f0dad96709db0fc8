import ContainerTransaction
import Formats

/// `files.delete`: removes paths, or everything that matches a pattern counted from the container's root
/// (`*.log` is in the root only, `**/*.log` at any depth). A database goes with all that belongs to it.
struct DeleteFiles: MigrationOperation {
  static let name = "files.delete"
  static let keys = ["path", "destructive", "if-missing"]

  private let paths: [ContainerSelection]
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    paths = try ContainerSelection.list(reader)
    ifMissing = try reader.ifMissing()
    _ = try reader.reason()
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      for path in try selection.matches(in: stage, ifMissing, &notes) where try stage.status(of: path) != nil
      {
        try stage.requireNoHistory(in: path)
        try memory.noteRemoved(path, on: stage)
        try stage.remove(path)
      }
    }
    return notes
  }

  var isDestructive: Bool { true }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).putBackRemoved(on: stage)
  }
}
