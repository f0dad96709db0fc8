import ContainerTransaction
import FileSystem
import Formats

/// `files.create-directory`: makes a directory, and those above it that are missing.
struct CreateDirectory: MigrationOperation {
  static let name = "files.create-directory"
  static let keys = ["path", "mode", "if-exists"]

  private let path: ContainerPath
  private let mode: UInt16?
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    path = try reader.required("path").containerPath("`path`")
    mode = try reader.mode()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack { .byMemory }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    if let status = try stage.status(of: path) {
      // A directory that is there is what was asked for.
      if status.type == .directory && (mode ?? status.mode) == status.mode { return [] }
      if ifExists == .keep { return ["`\(path)` is there already: kept"] }
    }
    try memory.write(path, on: stage, ifExists) {
      try stage.createDirectory(path)
      guard let mode, var metadata = try stage.metadata(of: path) else { return }
      metadata.mode = mode
      try stage.putDirectory(at: path, metadata: metadata)
    }
    return []
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertWritten(on: stage)
  }
}

extension YAMLReader {
  /// The argument `mode`: permission bits in octal.
  func mode() throws -> UInt16? {
    guard let node = self["mode"] else { return nil }
    let digits: Substring
    switch node.scalar?.value {
    case .integer where node.scalar?.source.hasPrefix("0o") == true:
      digits = node.scalar?.source.dropFirst(2) ?? ""
    case .text(let text): digits = text[...]
    default: digits = ""
    }
    guard let mode = UInt16(digits, radix: 8), mode <= 0o7777 else {
      throw node.position.error("`mode` is octal, such as 0o644, not \(node.summary)")
    }
    return mode
  }
}
