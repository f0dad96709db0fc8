import AgeEncryption
import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// Reverting what a step changed, where the container still has what the step wrote. What was changed since stays and
/// gets a note.
extension DownValues {
  /// Reverts everything that the step recorded.
  ///
  /// - Returns: notes on what was left unchanged.
  /// - Throws: ``StepFailure`` when no copy of a removed path is kept.
  func revert(on stage: StagedContainer) throws -> [String] {
    var notes = try revertItems(on: stage)
    // A document in a setting is recorded as a setting, too.
    notes += try documents.isEmpty ? revertSettings(on: stage) : revertDocuments(on: stage)
    notes += try revertAttributes(on: stage)
    if !written.isEmpty { return try notes + revertWritten(on: stage) }
    if !converted.isEmpty { return try notes + revertConverted(on: stage) }
    return try notes + putBackRemoved(on: stage)
  }

  // MARK: Settings

  /// Restores the settings that the step changed. A file that the step created is removed when it becomes empty.
  func revertSettings(on stage: StagedContainer) throws -> [String] {
    try Set(settings.map(\.file)).sorted().flatMap { path in
      try revertSettings(of: path, on: stage)
    }
  }

  private func revertSettings(of path: ContainerPath, on stage: StagedContainer) throws -> [String] {
    let original = try stage.defaults(path)
    var file = original ?? PropertyListFile()
    var notes: [String] = []
    for setting in settings where setting.file == path {
      let now = file.root[setting.key]
      if now == setting.before?.value { continue }
      guard now == setting.after?.value else {
        notes.append("`\(stage.redactor.shown(name: setting.key))` was changed since: left unchanged")
        continue
      }
      file.root[setting.key] = setting.before?.value
    }
    guard file.root != original?.root ?? [:] else { return notes }
    if file.root.isEmpty && made.contains(path) {
      if original != nil { try stage.remove(path) }
    } else {
      try stage.setDefaults(file, at: path)
    }
    return notes
  }

  // MARK: Files

  /// Restores the paths that the step removed as a whole.
  ///
  /// - Throws: ``StepFailure`` when no copy is kept.
  func putBackRemoved(on stage: StagedContainer) throws -> [String] {
    if let path = lost.first {
      throw StepFailure(
        message:
          "no copy of `\(path)` is kept, since an earlier step of the same run had changed it: roll the "
          + "whole transaction back", path: path.description)
    }
    return try removed.sorted().compactMap { path in
      if try stage.status(of: path) != nil { return "`\(path)` exists: left unchanged" }
      guard try stage.kept?.putBack(path) == true else {
        throw StepFailure(
          message: "no copy of `\(path)` is kept: the transaction's undo entry was removed",
          path: path.description)
      }
      return nil
    }
  }

  /// Removes the directories that the step created and that are empty.
  func removeEmptyDirectories(on stage: StagedContainer) throws {
    for path in made.reversed() where try stage.status(of: path)?.type == .directory {
      if try stage.children(of: path).isEmpty { try stage.remove(path) }
    }
  }

  /// Removes the paths that the step wrote, and restores those that it replaced.
  ///
  /// - Throws: ``StepFailure`` when no copy of a replaced path is kept.
  func revertWritten(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    for entry in written.reversed() {
      guard try stage.status(of: entry.path) != nil else {
        notes.append("`\(entry.path)` does not exist: nothing to revert")
        continue
      }
      guard try stage.digest(of: entry.path).hex == entry.digest else {
        notes.append("`\(entry.path)` was changed since: left unchanged")
        continue
      }
      try stage.remove(entry.path)
      if entry.replaced { notes += try putBackRemoved(on: stage) }
    }
    try removeEmptyDirectories(on: stage)
    return notes
  }

  /// Restores the files that were converted and those that were removed.
  ///
  /// - Throws: ``StepFailure`` when no copy of one is kept.
  func revertConverted(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    var rest = self
    for file in converted.reversed() {
      if let reason = try reasonToKeep(file, on: stage) {
        notes.append(reason)
        rest.removed.removeAll { $0 == file.from || $0 == file.to }
      } else {
        try stage.remove(file.to)
      }
    }
    notes += try rest.putBackRemoved(on: stage)
    try removeEmptyDirectories(on: stage)
    return notes
  }

  private func reasonToKeep(_ file: Converted, on stage: StagedContainer) throws -> String? {
    guard try stage.status(of: file.to)?.type == .file else { return "`\(file.to)` does not exist: skipped" }
    guard try SHA256.hash(stage.read(file.to)).hex == file.digest else {
      return "`\(file.to)` was changed since: left unchanged"
    }
    guard try file.from == file.to || stage.status(of: file.from) == nil else {
      return "`\(file.from)` exists again: kept, and `\(file.to)` too"
    }
    return nil
  }

  /// Restores the extended attributes that the step changed.
  func revertAttributes(on stage: StagedContainer) throws -> [String] {
    try attributes.compactMap { attribute in
      guard var metadata = try stage.metadata(of: attribute.path) else {
        return "`\(attribute.path)` does not exist: nothing to revert"
      }
      let now = metadata.attributes.value(of: attribute.name)
      if now == attribute.before { return nil }
      guard now == attribute.after else {
        return "the attribute \(attribute.name) of `\(attribute.path)` was changed since: left unchanged"
      }
      metadata.attributes.removeAll { $0.name == attribute.name }
      if let value = attribute.before {
        metadata.attributes.append(ExtendedAttribute(name: attribute.name, value: value))
        metadata.attributes.sort { $0.name < $1.name }
      }
      try stage.setMetadata(metadata, of: attribute.path)
      return nil
    }
  }

  // MARK: Documents

  /// Reverts each change inside documents separately, so that what the app wrote elsewhere in them stays.
  func revertDocuments(on stage: StagedContainer) throws -> [String] {
    try documents.reversed().flatMap { document -> [String] in
      let rule = DocumentRevert(changes: document.changes)
      guard let key = document.key else {
        guard try stage.status(of: document.file) != nil else {
          return ["`\(document.file)` does not exist: skipped"]
        }
        if try document.putBackWhole(on: stage) { return [] }
        return try stage.changeDocument(at: document.file, rule).notes
      }
      guard var file = try stage.defaults(document.file), let value = file.root[key] else {
        return ["`\(key)` does not exist: skipped"]
      }
      var notes: [String] = []
      if let setting = setting(key, in: document.file), setting.after?.value == value {
        // Unchanged since: restore the exact value.
        file.root[key] = setting.before?.value
      } else {
        var setting = try SettingDocument(value, key: key)
        notes = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor)).notes
        file.root[key] = try setting.value()
      }
      try stage.setDefaults(file, at: document.file)
      return notes
    }
  }
}

extension DownValues.Document {
  /// Restores the previous file, when the file is as the step wrote it and the undo entry still has a copy.
  fileprivate func putBackWhole(on stage: StagedContainer) throws -> Bool {
    guard let written, let kept = stage.kept else { return false }
    let bytes = try stage.read(file)
    guard try SHA256.hash(bytes) == written else { return false }
    try stage.remove(file)
    if try kept.putBack(file) { return true }
    try stage.write(bytes, to: file)
    return false
  }
}

/// Reverts changes, the last one first.
private struct DocumentRevert: DocumentRule {
  let changes: [DocumentChange]

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    try changes.reversed().compactMap { change in try edit.revert(change).map { "\(what): \($0)" } }
  }
}
