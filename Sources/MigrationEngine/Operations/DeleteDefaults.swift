import ContainerTransaction
import Formats

/// `defaults.delete`: removes settings by name, or all that start with a prefix.
struct DeleteDefaults: MigrationOperation {
  static let name = "defaults.delete"
  static let keys = ["keys", "prefix", "destructive", "if-missing"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let names: [String]
  private let prefix: String?
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    names = try reader.texts("keys") ?? []
    prefix = try reader.text("prefix")
    guard reader["keys"] != nil || prefix != nil else {
      throw reader.position.error("defaults.delete needs `keys` or `prefix`")
    }
    if let node = reader["prefix"], prefix?.isEmpty == true {
      throw node.position.error("an empty prefix would delete every setting")
    }
    ifMissing = try reader.ifMissing()
    _ = try reader.reason()
  }

  var isDestructive: Bool { true }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for name in names where try edit.source(name, ifMissing) != nil { edit.values[name] = nil }
    if let prefix {
      let found = edit.values.keys.filter { $0.text.utf8.starts(with: prefix.utf8) }
      if found.isEmpty {
        if ifMissing == .fail { throw StepFailure(message: "no setting starts with `\(prefix)`") }
        edit.notes.append("no setting starts with `\(prefix)`: skipped")
      }
      for name in found { edit.values[name] = nil }
    }
    return try edit.save(to: stage, &memory)
  }
}
