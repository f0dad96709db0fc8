import ContainerTransaction
import FileSystem
import Formats

/// `files.write`: writes a file, from text, data, or a file of the migration's directory.
struct WriteFile: MigrationOperation {
  static let name = "files.write"
  static let keys = ["path", "text", "data", "file", "mode", "if-exists"]

  private let path: ContainerPath
  private let content: [UInt8]
  private let mode: UInt16?
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    path = try reader.required("path").containerPath("`path`")
    mode = try reader.mode()
    ifExists = try reader.ifExists()
    let sources = ["text", "data", "file"].compactMap { key in reader[key].map { (key, $0) } }
    guard let (key, node) = sources.first else {
      throw reader.position.error("\(Self.name) needs one of `text`, `data` and `file`")
    }
    if sources.count > 1 {
      throw sources[1].1.position.error("name either `\(key)` or `\(sources[1].0)`, not both")
    }
    switch (key, node.scalar?.value) {
    case ("text", _): content = Array(try node.text("`text`").utf8)
    case ("file", _): content = try files.bytes(of: node.text("`file`"), namedAt: node.position)
    case (_, .data(let bytes)): content = bytes
    default: throw node.position.error("`data` is data in base64 (`!data AAEC`), not \(node.summary)")
    }
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    if let status = try stage.status(of: path) {
      if try isThere(status, stage) { return [] }
      if ifExists == .keep { return ["`\(path)` is there already: kept"] }
    }
    // What a file carries stays when its content is replaced.
    let existing = try stage.metadata(of: path)
    let wasFile = try stage.status(of: path)?.type == .file
    try memory.write(path, on: stage, ifExists) {
      try stage.write(content, to: path, mode: mode)
      guard wasFile, var metadata = existing, let written = try stage.metadata(of: path) else { return }
      (metadata.mode, metadata.modified) = (mode ?? metadata.mode, written.modified)
      try stage.setMetadata(metadata, of: path)
    }
    return []
  }

  private func isThere(_ status: FileStatus, _ stage: StagedContainer) throws -> Bool {
    guard status.type == .file, status.size == UInt64(content.count), (mode ?? status.mode) == status.mode
    else { return false }
    return try stage.read(path) == content
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertWritten(on: stage)
  }
}
