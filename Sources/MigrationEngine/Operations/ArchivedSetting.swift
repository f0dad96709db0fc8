import ContainerTransaction
import Formats

/// An archive in a setting, for `files.unarchive`.
struct ArchivedSetting: Sendable {
  private let target: DefaultsTarget
  private let key: String
  private let to: String
  private let store: Unarchive.Store
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.text("to") ?? key
    store = try reader.choice("store") ?? .text
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    switch try conversion.convert(value.documentBytes, "the setting `\(key)`") {
    case .kept(let remark):
      edit.notes.append(remark)
      return edit.notes
    case .deleted(let remark):
      edit.notes.append(remark)
      edit.values[key] = nil
    case .converted(let document):
      if to != key {
        guard try edit.mayWrite(to, ifExists) else { return edit.notes }
        edit.values[key] = nil
      }
      edit.values[to] =
        switch (document.content, store) {
        case (.plist(let list), _): list.value
        case (.json(let json), .text): .string(JSONDocument(json, isIndented: false).text)
        case (.json(let json), .data): .data(JSONDocument(json, isIndented: false).bytes)
        }
    }
    return try edit.save(to: stage, &memory)
  }
}

extension PropertyListValue {
  /// The bytes of a value that may be a document.
  fileprivate var documentBytes: [UInt8]? {
    switch self {
    case .data(let bytes): bytes
    case .string(let text): Array(text.utf8)
    default: nil
    }
  }
}
