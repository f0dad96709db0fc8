import AgeEncryption
import ContainerTransaction
import FileSystem
import Formats

/// `files.patch`: changes parts of a JSON file or a property list, and leaves all else in it as it is written.
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

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    try files.change(by: patch, ifMissing, on: stage, &memory)
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertDocuments(on: stage)
  }
}

/// Files that are documents.
struct DocumentFiles: Sendable {
  private let selections: [ContainerSelection]

  init(_ selections: [ContainerSelection]) { self.selections = selections }

  /// Applies a rule to each, and writes down what it changed. What a pattern matches and is no file is passed over.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    var notes: [String] = []
    for selection in selections {
      if let path = selection.path {
        notes += try DocumentFile(path: path).change(by: rule, ifMissing, on: stage, &memory)
        continue
      }
      for path in try selection.matches(in: stage, ifMissing, &notes)
      where try stage.status(of: path)?.type == .file {
        notes += try DocumentFile(path: path).change(by: rule, ifMissing, on: stage, &memory)
      }
    }
    return notes
  }
}

/// A file that is a document.
private struct DocumentFile {
  let path: ContainerPath

  /// Applies a rule, and writes down what it changed.
  func change(
    by rule: some DocumentRule, _ ifMissing: IfMissing, on stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    try stage.requireNotHistory(path)
    guard try stage.status(of: path) != nil else {
      if ifMissing == .fail {
        throw StepFailure(message: "`\(path)` is not in the container", path: path.description)
      }
      return ["`\(path)` is not there: skipped"]
    }
    let isUntouched = try stage.isUntouched(path)
    let (notes, changes) = try stage.changeDocument(at: path, rule)
    guard !changes.isEmpty else { return notes }
    let written = isUntouched ? try SHA256.hash(stage.read(path)) : nil
    memory.documents.append(DocumentMemory(file: path, key: nil, changes: changes, written: written))
    return notes
  }
}
