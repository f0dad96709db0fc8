import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// `defaults.set`: writes settings.
struct SetDefaults: MigrationOperation {
  static let name = "defaults.set"
  static let keys = ["values", "if-exists"] + DefaultsTarget.keys

  let target: DefaultsTarget
  let values: PropertyListDictionary
  let ifExists: IfExists

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for (key, value) in values.sorted() {
      if let existing = edit.values[key], existing.matches(value) { continue }
      if try edit.mayWrite(key, ifExists) { edit.values[key] = value }
    }
    return try edit.save(to: stage, &recorded)
  }
}

extension SetDefaults {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    values = try reader.required("values").pairs("`values`").propertyListValues()
    ifExists = try reader.ifExists()
  }
}

/// `defaults.set-default`: writes settings that are absent.
struct SetDefaultDefaults: MigrationOperation {
  static let name = "defaults.set-default"
  static let keys = ["values"] + DefaultsTarget.keys

  let target: DefaultsTarget
  let values: PropertyListDictionary

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    edit.values.merge(values) { existing, _ in existing }
    return try edit.save(to: stage, &recorded)
  }
}

extension SetDefaultDefaults {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    values = try reader.required("values").pairs("`values`").propertyListValues()
  }
}

/// `defaults.delete`: removes settings by name, or all that start with a prefix.
struct DeleteDefaults: MigrationOperation {
  static let name = "defaults.delete"
  static let keys = ["keys", "prefix", "destructive", "if-missing"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let names: [String]
  private let prefix: String?
  private let ifMissing: IfMissing

  init(
    _ target: DefaultsTarget, names: [String], prefix: String?, ifMissing: IfMissing,
    reason: DestructiveReason, at position: YAMLPosition
  ) throws {
    if prefix?.isEmpty == true { throw position.error("an empty prefix would delete every setting") }
    (self.target, self.names, self.prefix, self.ifMissing) = (target, names, prefix, ifMissing)
  }

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    guard reader["keys"] != nil || reader["prefix"] != nil else {
      throw reader.position.error("defaults.delete needs `keys` or `prefix`")
    }
    try self.init(
      DefaultsTarget(reading: reader), names: reader.texts("keys") ?? [], prefix: reader.text("prefix"),
      ifMissing: reader.ifMissing(), reason: reader.reason(),
      at: reader["prefix"]?.position ?? reader.position)
  }

  var isDestructive: Bool { true }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for name in names where try edit.source(name, ifMissing) != nil { edit.values[name] = nil }
    if let prefix {
      for name in try edit.keys(withPrefix: prefix, ifMissing) { edit.values[name] = nil }
    }
    return try edit.save(to: stage, &recorded)
  }
}

/// `defaults.rename`: renames settings. All old values are read before any is written, so that names may be swapped.
struct RenameDefaults: MigrationOperation {
  static let name = "defaults.rename"
  static let keys = ["keys", "if-missing", "if-exists"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let renames: [KeyRename]
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(_ target: DefaultsTarget, _ renames: [KeyRename], ifMissing: IfMissing, ifExists: IfExists) throws {
    for rename in renames where rename.new.isExactly(rename.old) {
      throw rename.position.error("`\(rename.old)` is the old and the new name")
    }
    try renames.requireDistinctTargets()
    (self.target, self.renames) = (target, renames)
    (self.ifMissing, self.ifExists) = (ifMissing, ifExists)
  }

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    try self.init(
      DefaultsTarget(reading: reader), KeyRename.list(reader.required("keys")),
      ifMissing: reader.ifMissing(), ifExists: reader.ifExists())
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    for rename in renames {
      if let value = try edit.source(rename.old, ifMissing) {
        moved.append((rename.old, rename.new, value))
      } else {
        recorded.skipped.append(rename.old)
      }
    }
    for item in moved { edit.values[item.old] = nil }
    for item in moved {
      if try edit.mayWrite(item.new, ifExists) {
        edit.values[item.new] = item.value
      } else {
        // The old setting stays when the new one is kept, so that nothing is lost.
        edit.values[item.old] = item.value
        recorded.skipped.append(item.old)
      }
    }
    return try edit.save(to: stage, &recorded)
  }

  var reversal: Reversal { .byArguments }

  /// Gives the settings their old names again, with their present values, and restores what they had replaced.
  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage.container)
    let renamed = renames.filter { rename in
      recorded.map { !$0.skipped.containsExactly(rename.old) } ?? (edit.values[rename.old] == nil)
    }
    let sources = Set(renamed.map { ExactText($0.old) })
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    for rename in renamed {
      if let value = edit.values[rename.new] {
        moved.append((rename.old, rename.new, value))
      } else {
        edit.notes.append("`\(rename.new)` does not exist: skipped")
      }
    }
    for item in moved { edit.values[item.new] = nil }
    for item in moved {
      if edit.values[item.old] == nil {
        edit.values[item.old] = item.value
      } else {
        edit.notes.append("`\(item.old)` exists already: kept, and `\(item.new)` too")
        edit.values[item.new] = item.value
      }
    }
    for item in moved where edit.values[item.new] == nil && !sources.contains(ExactText(item.new)) {
      edit.values[item.new] = recorded?.setting(item.new, in: path)?.before?.value
    }
    return try edit.save(to: stage)
  }
}

/// A setting and its new name.
struct KeyRename: Sendable {
  let old, new: String
  let position: YAMLPosition

  /// Decodes a mapping from old names to new ones.
  static func list(_ node: YAMLNode) throws -> [KeyRename] {
    try node.pairs("`keys`").pairs.map { pair in
      let old = try pair.textKey("a setting's name")
      return KeyRename(
        old: old, new: try pair.value.text("the new name of `\(old)`"), position: pair.value.position)
    }
  }
}

extension [KeyRename] {
  func requireDistinctTargets() throws {
    var seen: Set<ExactText> = []
    for rename in self where !seen.insert(ExactText(rename.new)).inserted {
      throw rename.position.error("two settings become `\(rename.new)`")
    }
  }
}
