import ContainerTransaction
import Formats

/// `defaults.set`: writes settings.
struct SetDefaults: MigrationOperation {
  static let name = "defaults.set"
  static let keys = ["values", "if-exists"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let values: PropertyListDictionary
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    values = try reader.required("values").pairs("`values`").propertyListValues()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for (key, value) in values.sorted() {
      if let existing = edit.values[key], existing.matches(value) { continue }
      if try edit.mayWrite(key, ifExists) { edit.values[key] = value }
    }
    return try edit.save(to: stage, &memory)
  }
}

/// `defaults.set-default`: writes settings that are absent.
struct SetDefaultDefaults: MigrationOperation {
  static let name = "defaults.set-default"
  static let keys = ["values"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let values: PropertyListDictionary

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    values = try reader.required("values").pairs("`values`").propertyListValues()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    edit.values.merge(values) { existing, _ in existing }
    return try edit.save(to: stage, &memory)
  }
}
