import ContainerTransaction
import FileSystem
import Formats

struct MoveDefaultsToFile: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.move-to-file",
      "Moves a setting that grew too large into a file.",
      [
        "key": "required: the setting",
        "to": "required: the file",
        "format": "`raw`: the bytes of text or data (default for these); `json`: an indented JSON document; "
          + "`plist`: a binary property list, which preserves every type",
        "reference":
          "a new value for the setting, such as the file's name; without it the setting is removed",
      ], common: ["if-missing", "if-exists"] + DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {draft: Dear Ada}",
        step: "{key: draft, to: Documents/draft.txt, reference: draft.txt}",
        after: "{settings: {draft: draft.txt}, files: {Documents/draft.txt: Dear Ada}}")
    ) { try Self(reading: $0, files: $1) }
  ]

  private enum Format: String, CaseIterable { case json, plist, raw }

  private let target: DefaultsTarget
  private let key: String
  private let to: ContainerPath
  private let encoding: SettingEncoding
  private let reference: PropertyListValue?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.required("to").containerPath("`to`")
    let format: Format? = try reader.choice("format")
    encoding = format.flatMap { SettingEncoding(rawValue: $0.rawValue) } ?? .raw
    reference = try reader["reference"]?.propertyListValue()
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    if try stage.status(of: to) != nil { recorded.skipped.append(to.description) }
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    if let reference, value.matches(reference), try stage.status(of: to) != nil { return edit.notes }
    let bytes = try encode(value)
    let problem = "the file `\(to)` of the setting `\(key)` exists already"
    guard try recorded.makeRoom(at: to, on: stage, ifExists, or: problem) else {
      edit.notes.append("`\(to)` exists already: kept, and the setting `\(key)` left unchanged")
      return edit.notes
    }
    try recorded.noteMade(to, on: stage)
    // The file gets the permissions of the settings file.
    try stage.write(bytes, to: to, mode: stage.metadata(of: target.path(in: stage))?.mode)
    guard try encoding.setting(of: stage.read(to), like: value) == value else {
      throw StepFailure(
        message: "the file `\(to)`, read back, differs from the setting `\(key)`",
        path: to.description)
    }
    edit.values[key] = reference
    return try edit.save(to: stage, &recorded)
  }

  private func encode(_ value: PropertyListValue) throws -> [UInt8] {
    try encoding.bytes(
      of: value, key: key, isIndented: true, argument: ("format", [.raw, .json, .plist]))
  }

  /// Moves the file's present content back into the setting.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    let recorded = try PriorValues.required(recorded)
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage)
    guard let setting = recorded.setting(key, in: path), let before = setting.before?.value else {
      let isNewer = try recorded.skipped.isEmpty && stage.status(of: to) != nil
      return isNewer ? ["`\(to)` was written since: left unchanged, and `\(key)` too"] : []
    }
    guard edit.values[key] == setting.after?.value else {
      return ["`\(key)` was changed since: kept, and `\(to)` too"]
    }
    guard try stage.status(of: to) != nil else { return ["`\(to)` does not exist: skipped"] }
    let bytes = try stage.read(to)
    // An unchanged file restores the exact value: JSON has fewer types than settings.
    let value = try bytes == encode(before) ? before : try encoding.setting(of: bytes, like: before)
    guard let value else {
      throw StepFailure(
        message: "`\(to)` cannot become a setting: it is null, or not UTF-8 text", path: to.description
      )
    }
    edit.values[key] = value
    try stage.remove(to)
    edit.notes += try recorded.restore(recorded.removed, on: stage)
    return try edit.save(to: stage)
  }
}
