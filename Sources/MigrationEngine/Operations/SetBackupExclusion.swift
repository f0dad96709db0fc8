import ContainerTransaction
import Formats

/// `files.set-backup-exclusion`: sets or takes off Apple's flag for what a backup leaves out. On a directory it covers all
/// below; on a database's main file all that belongs to it.
struct SetBackupExclusion: MigrationOperation {
  static let name = "files.set-backup-exclusion"
  static let keys = ["path", "excluded", "if-missing"]

  private let edit: AttributeEdit
  private let isExcluded: Bool

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    edit = try AttributeEdit(reader)
    isExcluded = try reader.required("excluded").boolean("`excluded`")
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try edit.apply(to: stage, &memory) { $0.setAppleFlag(isExcluded) }
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertAttributes(on: stage)
  }
}
