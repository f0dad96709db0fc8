import ContainerTransaction
import Formats

/// `vault.delete`: removes vault items.
struct DeleteVaultItems: MigrationOperation {
  static let name = "vault.delete"
  static let keys = ["destructive", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    ifMissing = try reader.ifMissing()
    _ = try reader.reason()
  }

  var isDestructive: Bool { true }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertItems(on: stage)
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try VaultEdit(stage)
    edit.remove(try edit.items(selection, ifMissing))
    return try edit.save(to: stage, &memory)
  }
}
