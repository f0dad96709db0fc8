import AppContainer
import ContainerTransaction
import Formats

/// `vault.set-accessibility`: says when a device can read vault items, and with that whether they leave it.
struct SetVaultAccessibility: MigrationOperation {
  static let name = "vault.set-accessibility"
  static let keys = ["accessible", "if-missing"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  private let accessibility: VaultAccessibility
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    _ = try reader.required("accessible")
    accessibility = try reader.choice("accessible") ?? .whenUnlocked
    ifMissing = try reader.ifMissing()
  }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertItems(on: stage)
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items) { $0.accessibility = accessibility }
    return try edit.save(to: stage, &memory)
  }
}
