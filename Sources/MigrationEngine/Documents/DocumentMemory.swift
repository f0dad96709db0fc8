import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// What a step changed inside of a document.
struct DocumentMemory: Sendable, Codable, Equatable {
  /// The file: the document itself, or the settings that it is in.
  var file: ContainerPath
  /// The setting.
  var key: String?
  var changes: [DocumentChange]
  /// SHA-256 of the file that the step wrote, when the transaction's undo keeps what it was before.
  var written: SHA256.Digest?
}

extension DocumentMemory {
  /// Puts back the very file that was, when it is as the step wrote it, and the undo still has it.
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

/// Takes changes back, the last one first.
private struct DocumentWayBack: DocumentRule {
  let changes: [DocumentChange]

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    try changes.reversed().compactMap { change in try edit.revert(change).map { "\(what): \($0)" } }
  }
}

extension StepMemory {
  /// Takes back what was changed inside of documents, each change for itself: what the app wrote elsewhere in them since
  /// stays.
  ///
  /// - Returns: remarks on what stays because it is not what the step wrote.
  func revertDocuments(on stage: StagedContainer) throws -> [String] {
    try documents.reversed().flatMap { memory in
      let rule = DocumentWayBack(changes: memory.changes)
      guard let key = memory.key else {
        guard try stage.status(of: memory.file) != nil else {
          return ["`\(memory.file)` is not there: skipped"]
        }
        if try memory.putBackWhole(on: stage) { return [] }
        return try stage.changeDocument(at: memory.file, rule).notes
      }
      guard var file = try stage.defaults(memory.file), let value = file.root[key] else {
        return ["`\(key)` is not there: skipped"]
      }
      var notes: [String] = []
      if let setting = setting(key, in: memory.file), setting.after?.value == value {
        // Untouched since: the very value comes back.
        file.root[key] = setting.before?.value
      } else {
        var setting = try SettingDocument(value, key: key)
        notes = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor)).notes
        file.root[key] = try setting.value()
      }
      try stage.setDefaults(file, at: memory.file)
      return notes
    }
  }
}

extension StagedContainer {
  /// Changes a JSON file or a property list, in its own format.
  func changeDocument(
    at path: ContainerPath, _ rule: some DocumentRule
  ) throws -> (notes: [String], changes: [DocumentChange]) {
    let bytes = try read(path)
    var document: StructuredDocument
    do {
      document = try StructuredDocument(bytes: bytes)
    } catch var error as DrydockError where error.path == nil {
      error.path = path.description
      throw error
    }
    let result = try document.apply(rule, of: DocumentName(file: path, redactor))
    let changed = try document.encoded()
    // An untouched file keeps its time.
    if changed != bytes { try write(changed, to: path) }
    return result
  }
}
