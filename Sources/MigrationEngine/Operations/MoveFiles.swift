import AppContainer
import ContainerTransaction

/// `files.move`: moves a file, a directory, or a database with all that belongs to it.
struct MoveFiles: MigrationOperation {
  static let name = "files.move"
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

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try stage.requireNoHistory(in: from)
    try stage.requireNoHistory(in: to)
    guard try stage.status(of: from) != nil else {
      if ifMissing == .fail {
        throw StepFailure(message: "`\(from)` is not in the container", path: from.description)
      }
      memory.skipped.append(from.description)
      return ["`\(from)` is not there: skipped"]
    }
    if try stage.status(of: to) != nil {
      switch ifExists {
      case .keep:
        memory.skipped.append(from.description)
        return ["`\(to)` is there already: kept, and `\(from)` left where it is"]
      case .replace:
        try memory.noteRemoved(to, on: stage)
        try stage.remove(to)
      case .fail:
        let both = try stage.isDatabase(from) && stage.isDatabase(to)
        throw StepFailure(
          message: both
            ? "the database is in two places, `\(from)` and `\(to)`, and only a person can tell which one is the "
              + "user's: compare them, and remove or rename the other"
            : "the target `\(to)` of `\(from)` is there already: say `if-exists: keep` or `if-exists: replace`",
          path: from.description)
      }
    }
    try memory.noteMade(to.parent, on: stage)
    try stage.move(from, to: to)
    return []
  }

  var wayBack: WayBack { .byArguments }

  /// What is there now moves back; what it had replaced comes back, as long as it is kept.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    if memory?.skipped.contains(from.description) == true { return [] }
    guard try stage.status(of: to) != nil else { return ["`\(to)` is not there: skipped"] }
    guard try stage.status(of: from) == nil else {
      return ["`\(from)` is there already: kept, and `\(to)` left where it is"]
    }
    try stage.move(to, to: from)
    return try memory?.putBackRemoved(on: stage) ?? []
  }
}
