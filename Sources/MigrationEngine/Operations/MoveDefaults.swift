import ContainerTransaction
import Formats

/// `defaults.move`: moves settings from one settings file to another.
struct MoveDefaults: MigrationOperation {
  static let name = "defaults.move"
  static let keys = DefaultsTransfer.keys

  private let transfer: DefaultsTransfer

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try DefaultsTransfer(reading: reader)
  }

  var wayBack: WayBack { transfer.namesKeys ? .byArguments : .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try transfer.apply(to: stage, moving: true, &memory)
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try transfer.moveBack(on: stage, memory)
  }
}

/// `defaults.copy`: copies settings from one settings file to another, or within one to other names.
struct CopyDefaults: MigrationOperation {
  static let name = "defaults.copy"
  static let keys = DefaultsTransfer.keys

  private let transfer: DefaultsTransfer

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try DefaultsTransfer(reading: reader)
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try transfer.apply(to: stage, moving: false, &memory)
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertSettings(on: stage)
  }
}
