import ContainerTransaction
import FileSystem
import Formats

/// `defaults.move-to-file`: moves a setting into a file. The setting is removed only after the file was read back and
/// compared.
struct MoveDefaultsToFile: MigrationOperation {
  static let name = "defaults.move-to-file"
  static let keys = ["key", "to", "format", "reference", "if-missing", "if-exists"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let key: String
  private let to: ContainerPath
  private let format: SettingFileFormat?
  private let reference: PropertyListValue?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.required("to").containerPath("`to`")
    format = try reader.choice("format")
    reference = try reader["reference"]?.propertyListValue()
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
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
    try stage.write(bytes, to: to, mode: stage.metadata(of: target.path(in: stage.container))?.mode)
    guard try isSame(value, read(stage.read(to), like: value)) else {
      throw StepFailure(
        message: "the file `\(to)`, read back, differs from the setting `\(key)`",
        path: to.description)
    }
    edit.values[key] = reference
    return try edit.save(to: stage, &recorded)
  }

  private func encode(_ value: PropertyListValue) throws -> [UInt8] {
    switch (format, value) {
    case (nil, .string(let text)), (.raw?, .string(let text)): return Array(text.utf8)
    case (nil, .data(let bytes)), (.raw?, .data(let bytes)): return bytes
    case (.plist?, _): return try PropertyListDocument(format: .binary, value: value).encoded()
    case (.json?, _):
      guard let json = JSONValue(value) else {
        throw StepFailure(
          message:
            "the setting `\(key)`, \(value.nounPhrase), contains a value that JSON cannot represent: a date, data or "
            + "a number that is not finite; say `format: plist`")
      }
      return JSONDocument(json, isIndented: true).bytes
    case (.raw?, _), (nil, _):
      throw StepFailure(
        message: "the setting `\(key)` is \(value.nounPhrase), neither text nor data: say `format: json` or "
          + "`format: plist`")
    }
  }

  /// A file's content as a setting again.
  ///
  /// - Parameter like: the type of raw bytes.
  private func read(_ bytes: [UInt8], like value: PropertyListValue) throws -> PropertyListValue? {
    switch format {
    case .plist: try PropertyListDocument(bytes: bytes).value
    case .json: try JSONDocument(bytes: bytes).value.propertyListValue
    case .raw, nil:
      if case .data = value {
        .data(bytes)
      } else {
        String(validating: bytes, as: UTF8.self).map { .string($0) }
      }
    }
  }

  /// JSON does not keep the type of a number.
  private func isSame(_ value: PropertyListValue, _ other: PropertyListValue?) -> Bool {
    guard let other else { return false }
    if format == .json, let left = JSONValue(value), let right = JSONValue(other) {
      return left.matches(right)
    }
    return value == other
  }

  /// Moves the file's present content back into the setting.
  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    let recorded = try DownValues.required(recorded)
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage.container)
    guard let setting = recorded.setting(key, in: path), let before = setting.before?.value else { return [] }
    guard edit.values[key] == setting.after?.value else {
      return ["`\(key)` was changed since: kept, and `\(to)` too"]
    }
    guard try stage.status(of: to) != nil else { return ["`\(to)` does not exist: skipped"] }
    let bytes = try stage.read(to)
    // An unchanged file restores the exact value: JSON has fewer types than settings.
    let value = try bytes == encode(before) ? before : try read(bytes, like: before)
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

/// The format of a setting in a file.
enum SettingFileFormat: String, CaseIterable, Sendable {
  /// A JSON document, indented.
  case json
  /// A binary property list, which keeps every type.
  case plist
  /// The bytes of text or data.
  case raw
}
