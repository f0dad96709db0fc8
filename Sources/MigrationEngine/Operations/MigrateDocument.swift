import ContainerTransaction
import Formats

/// `defaults.document-migrate`: brings a document that carries its own version, in a setting or a file, to the newest one.
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
        throw other.position.error("`path` is a file of its own: leave `suite` and `file` out")
      }
      place = .files(DocumentFiles(try ContainerSelection.list(node, "`path`")))
    case (nil, nil):
      throw reader.position.error("\(Self.name) needs `key` (a setting) or `path` (a file of its own)")
    case (_?, let node?): throw node.position.error("name either `key` or `path`, not both")
    }
    versions = try DocumentVersions(reading: reader)
    ifMissing = try reader.ifMissing()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    switch place {
    case .setting(let setting): try setting.change(by: versions, ifMissing, on: stage, &memory)
    case .files(let files): try files.change(by: versions, ifMissing, on: stage, &memory)
    }
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertDocuments(on: stage)
  }
}
