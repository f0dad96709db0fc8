import AppContainer
import ContainerTransaction

/// `files.copy`: copies a file, a directory, or a database with all that belongs to it.
struct CopyFiles: MigrationOperation {
  static let name = "files.copy"
  static let keys = ["from", "to", "if-missing", "if-exists"]

  private let from: ContainerPath
  private let to: ContainerPath
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    (from, to) = try reader.fromAndTo()
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try stage.requireNoHistory(in: from)
    guard try stage.status(of: from) != nil else {
      if ifMissing == .fail {
        throw StepFailure(message: "`\(from)` is not in the container", path: from.description)
      }
      return ["`\(from)` is not there: skipped"]
    }
    if try stage.status(of: to) != nil, ifExists == .keep {
      return ["`\(to)` is there already: kept, and `\(from)` not copied"]
    }
    try memory.write(to, on: stage, ifExists) { try stage.copy(from, to: to) }
    return []
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertWritten(on: stage)
  }
}

extension YAMLReader {
  /// The arguments `from` and `to`: two paths, neither of them inside the other.
  func fromAndTo() throws -> (from: ContainerPath, to: ContainerPath) {
    let from = try required("from").containerPath("`from`")
    let target = try required("to")
    let to = try target.containerPath("`to`")
    guard to != from else { throw target.position.error("`from` and `to` are the same path") }
    guard !to.isInside(from), !from.isInside(to) else {
      throw target.position.error("one of `from` and `to` is inside the other")
    }
    return (from, to)
  }
}
