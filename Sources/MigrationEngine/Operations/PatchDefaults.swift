import ContainerTransaction
import Formats

/// `defaults.patch`: changes parts of a setting that is a dictionary, an array, or JSON as text or data.
struct PatchDefaults: MigrationOperation {
  static let name = "defaults.patch"
  static let keys = ["key", "patch", "if-missing"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let key: String
  private let patch: DocumentPatch
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    patch = try DocumentPatch(try reader.required("patch"), "`patch`")
    ifMissing = try reader.ifMissing()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try DocumentSetting(target: target, key: key).change(by: patch, ifMissing, on: stage, &memory)
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertDocuments(on: stage)
  }
}

/// A setting that is a document.
struct DocumentSetting: Sendable {
  let target: DefaultsTarget
  let key: String

  /// Applies a rule, and writes down what it changed.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    var setting = try SettingDocument(value, key: key)
    let (notes, changes) = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor))
    guard !changes.isEmpty else { return notes }
    edit.values[key] = try setting.value()
    memory.documents.append(
      DocumentMemory(file: try target.path(in: stage.container), key: key, changes: changes))
    return try notes + edit.save(to: stage, &memory)
  }
}
