import ContainerTransaction
import Formats

/// `files.copy`: copies a file, a directory, or a database with all that belongs to it.
struct CopyFiles: MigrationOperation {
  static let name = "files.copy"
  static let keys = ["from", "to", "if-missing", "if-exists"]

  private let transfer: PathTransfer
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try PathTransfer(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    if let single = transfer.single { try stage.requireNoHistory(in: single) }
    var notes: [String] = []
    // A database has gone with its main file, which comes before its sidecars.
    for pair in try transfer.pairs(on: stage, ifMissing, &notes) {
      try stage.requireNoHistory(in: pair.from)
      if try stage.status(of: pair.to) != nil, ifExists == .keep {
        notes.append("`\(pair.to)` is there already: kept, and `\(pair.from)` not copied")
        continue
      }
      try memory.write(pair.to, on: stage, ifExists) { try stage.copy(pair.from, to: pair.to) }
    }
    return notes
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertWritten(on: stage)
  }
}
