import ContainerTransaction
import Formats

/// `vault.move-to`: puts vault items into another access group.
struct MoveVaultItems: MigrationOperation {
  static let name = "vault.move-to"
  static let keys = ["to", "if-missing", "if-exists"] + VaultSelection.keys
  static let needsVault = true

  private let selection: VaultSelection
  /// The group; empty for the app's own.
  private let group: String
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    group = try reader.required("to").text("`to`")
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertItems(on: stage)
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items, ifExists) { $0.accessGroup = group }
    return try edit.save(to: stage, &memory)
  }
}
