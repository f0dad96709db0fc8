import AgeEncryption
import ContainerTransaction
import FileSystem
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

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try DocumentSetting(target: target, key: key).change(by: patch, ifMissing, on: stage, &recorded)
  }
}

/// A setting that contains a document.
struct DocumentSetting: Sendable {
  let target: DefaultsTarget
  let key: String

  /// Applies a rule, and records its changes.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer,
    _ recorded: inout DownValues
  ) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    var setting = try SettingDocument(value, key: key)
    let (notes, changes) = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor))
    guard !changes.isEmpty else { return notes }
    edit.values[key] = try setting.value()
    recorded.documents.append(
      DownValues.Document(file: try target.path(in: stage.container), key: key, changes: changes))
    return try notes + edit.save(to: stage, &recorded)
  }
}

/// `files.patch`: changes parts of a JSON file or a property list, and leaves the rest of the text unchanged.
struct PatchFiles: MigrationOperation {
  static let name = "files.patch"
  static let keys = ["path", "patch", "if-missing"]

  private let files: DocumentFiles
  private let patch: DocumentPatch
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    self.files = DocumentFiles(try ContainerSelection.list(reader))
    patch = try DocumentPatch(try reader.required("patch"), "`patch`")
    ifMissing = try reader.ifMissing()
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try files.change(by: patch, ifMissing, on: stage, &recorded)
  }
}

/// Files that are documents.
struct DocumentFiles: Sendable {
  private let selections: [ContainerSelection]

  init(_ selections: [ContainerSelection]) { self.selections = selections }

  /// Applies a rule to each file, and records its changes. A pattern skips what is not a file.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer,
    _ recorded: inout DownValues
  ) throws -> [String] {
    var notes: [String] = []
    for selection in selections {
      if let path = selection.path {
        notes += try DocumentFile(path: path).change(by: rule, ifMissing, on: stage, &recorded)
        continue
      }
      for path in try selection.matches(in: stage, ifMissing, &notes)
      where try stage.status(of: path)?.type == .file {
        notes += try DocumentFile(path: path).change(by: rule, ifMissing, on: stage, &recorded)
      }
    }
    return notes
  }
}

/// A file that is a document.
private struct DocumentFile {
  let path: ContainerPath

  /// Applies a rule, and records its changes.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer,
    _ recorded: inout DownValues
  ) throws -> [String] {
    try stage.requireNotHistory(path)
    guard try stage.status(of: path) != nil else {
      if ifMissing == .fail {
        throw StepFailure(message: "`\(path)` is not in the container", path: path.description)
      }
      return ["`\(path)` does not exist: skipped"]
    }
    let isUntouched = try stage.isUntouched(path)
    let (notes, changes) = try stage.changeDocument(at: path, rule)
    guard !changes.isEmpty else { return notes }
    let written = isUntouched ? try SHA256.hash(stage.read(path)) : nil
    recorded.documents.append(DownValues.Document(file: path, key: nil, changes: changes, written: written))
    return notes
  }
}

/// `defaults.document-migrate`: migrates a document that contains its version, in a setting or a file, to the newest one.
struct MigrateDocument: MigrationOperation {
  static let name = "defaults.document-migrate"
  static let keys = ["key", "path", "if-missing"] + DocumentVersions.keys + DefaultsTarget.keys

  private enum Place: Sendable {
    case setting(DocumentSetting)
    case files(DocumentFiles)
  }

  private let place: Place
  private let versions: DocumentVersions
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    let target = try DefaultsTarget(reading: reader)
    switch (reader["key"], reader["path"]) {
    case (let node?, nil): place = .setting(DocumentSetting(target: target, key: try node.text("`key`")))
    case (nil, let node?):
      if let other = reader["suite"] ?? reader["file"] {
        throw other.position.error("`path` names a file: leave `suite` and `file` out")
      }
      place = .files(DocumentFiles(try ContainerSelection.list(node, "`path`")))
    case (nil, nil):
      throw reader.position.error("\(Self.name) needs `key` (a setting) or `path` (a file)")
    case (_?, let node?): throw node.position.error("name either `key` or `path`, not both")
    }
    versions = try DocumentVersions(reading: reader)
    ifMissing = try reader.ifMissing()
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    switch place {
    case .setting(let setting): try setting.change(by: versions, ifMissing, on: stage, &recorded)
    case .files(let files): try files.change(by: versions, ifMissing, on: stage, &recorded)
    }
  }
}
