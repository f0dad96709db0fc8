import ContainerTransaction
import FileSystem
import Formats

/// `files.move`: moves a file, a directory, or a database with all that belongs to it.
struct MoveFiles: MigrationOperation {
  static let name = "files.move"
  static let keys = ["from", "to", "if-missing", "if-exists"]

  private let transfer: PathTransfer
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try PathTransfer(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    if let single = transfer.single { try stage.requireNoHistory(in: single) }
    var notes: [String] = []
    let pairs = try transfer.pairs(on: stage, ifMissing, &notes)
    if let single = transfer.single, pairs.isEmpty { memory.skipped.append(single.description) }
    // A database has gone with its main file, which comes before its sidecars.
    for pair in pairs where try stage.status(of: pair.from) != nil {
      notes += try move(pair.from, to: pair.to, stage, &memory)
    }
    return notes
  }

  private func move(
    _ from: ContainerPath, to: ContainerPath, _ stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    try stage.requireNoHistory(in: from)
    try stage.requireNoHistory(in: to)
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
    if transfer.single == nil {
      memory.moved = (memory.moved ?? []) + [StepMemory.Moved(from: from, to: to)]
    }
    return []
  }

  /// Which files a pattern matched is known to the memory alone.
  var wayBack: WayBack { transfer.single == nil ? .byMemory : .byArguments }

  /// What is there now moves back; what it had replaced comes back, as long as it is kept.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    guard let single = transfer.single else {
      let memory = try StepMemory.required(memory)
      var notes: [String] = []
      for pair in (memory.moved ?? []).reversed() { notes += try moveBack(pair.to, to: pair.from, stage) }
      notes += try memory.putBackRemoved(on: stage)
      try memory.removeEmptyDirectories(on: stage)
      return notes
    }
    if memory?.skipped.contains(single.description) == true { return [] }
    let notes = try moveBack(transfer.to, to: single, stage)
    return notes.isEmpty ? try memory?.putBackRemoved(on: stage) ?? [] : notes
  }

  private func moveBack(_ to: ContainerPath, to from: ContainerPath, _ stage: StagedContainer) throws
    -> [String]
  {
    guard try stage.status(of: to) != nil else { return ["`\(to)` is not there: skipped"] }
    guard try stage.status(of: from) == nil else {
      return ["`\(from)` is there already: kept, and `\(to)` left where it is"]
    }
    try stage.move(to, to: from)
    return []
  }
}
