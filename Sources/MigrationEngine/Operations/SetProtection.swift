import AppContainer
import ContainerTransaction
import Formats

/// `files.set-protection`: sets the class of Apple's data protection.
struct SetProtection: MigrationOperation {
  static let name = "files.set-protection"
  static let keys = ["path", "class", "if-missing"]

  private let edit: AttributeEdit
  private let protection: ProtectionClass

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    edit = try AttributeEdit(reader)
    guard let protection: ProtectionClass = try reader.choice("class") else {
      throw reader.position.error("\(Self.name) needs the key `class`")
    }
    self.protection = protection
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try edit.apply(to: stage, &memory) { $0.protection = protection }
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertAttributes(on: stage)
  }
}
