import AgeEncryption
import ContainerTransaction
import FileSystem
import Formats

/// Archives that are files, for `files.unarchive`.
struct ArchivedFiles: Sendable {
  private let selections: [ContainerSelection]
  /// What their names become.
  private enum Target: Sendable {
    case same
    case path(ContainerPath)
    case fileExtension(String)
  }

  private let target: Target
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader) throws {
    selections = try ContainerSelection.list(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
    switch (reader["to"], reader["extension"]) {
    case (nil, nil): target = .same
    case (let to?, nil):
      guard selections.count == 1, selections[0].path != nil else {
        throw to.position.error("`to` is for one file, and `path` names several: say `extension` instead")
      }
      target = .path(try to.containerPath("`to`"))
    case (nil, let node?):
      let text = try node.text("`extension`")
      let name = text.hasPrefix(".") ? String(text.dropFirst()) : text
      guard !name.isEmpty, !name.contains("/"), !name.contains("\0") else {
        throw node.position.error("`extension` is what follows the dot in a file's name, such as `json`")
      }
      target = .fileExtension(name)
    case (_?, let node?): throw node.position.error("name either `to` or `extension`, not both")
    }
  }

  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ memory: inout StepMemory
  ) throws -> [String] {
    try selections.flatMap { try convert($0, conversion, on: stage, &memory) }
  }

  private func convert(
    _ selection: ContainerSelection, _ conversion: ArchiveConversion, on stage: StagedContainer,
    _ memory: inout StepMemory
  ) throws -> [String] {
    // Drydock's own files are nobody's archives.
    let found = try selection.matches(in: stage).filter { path in
      try !stage.isHistory(path) && stage.status(of: path)?.type != .directory
    }
    if found.isEmpty {
      if ifMissing == .fail { throw StepFailure(message: "no file matches `\(selection)`") }
      return ["no file matches `\(selection)`: skipped"]
    }
    return try found.flatMap { path in
      let target = try self.target(for: path)
      try stage.requireNoHistory(in: target)
      return try convert(path, to: target, conversion, stage, &memory)
    }
  }

  private func convert(
    _ path: ContainerPath, to target: ContainerPath, _ conversion: ArchiveConversion,
    _ stage: StagedContainer,
    _ memory: inout StepMemory
  ) throws -> [String] {
    switch try conversion.convert(try stage.read(path), "`\(path)`") {
    case .kept(let remark): return [remark]
    case .deleted(let remark):
      try memory.noteRemoved(path, on: stage)
      try stage.remove(path)
      return [remark]
    case .converted(let document):
      let bytes = try document.file()
      if target != path {
        if try stage.status(of: target) != nil {
          switch ifExists {
          case .keep: return ["`\(target)` is there already: kept, and `\(path)` left as it is"]
          case .replace:
            try memory.noteRemoved(target, on: stage)
            try stage.remove(target)
          case .fail:
            throw StepFailure(
              message: "the target `\(target)` of `\(path)` is there already: say `if-exists: keep` or "
                + "`if-exists: replace`", path: path.description)
          }
        }
        try memory.noteRemoved(path, on: stage)
        try memory.noteMade(target, on: stage)
        // Its mode, owner, attributes and protection go with it.
        try stage.move(path, to: target)
      } else {
        try memory.noteRemoved(path, on: stage)
      }
      try stage.write(bytes, to: target)
      memory.converted.append(.init(from: path, to: target, digest: try SHA256.hash(bytes).hex))
      return []
    }
  }

  private func target(for path: ContainerPath) throws -> ContainerPath {
    switch target {
    case .same: return path
    case .path(let path): return path
    case .fileExtension(let name):
      let dot = path.name.dropFirst().lastIndex(of: UInt8(ascii: "."))
      let stem = dot.map { Array(path.name[..<$0]) } ?? path.name
      return path.parent.appending(name: stem + Array(("." + name).utf8))
    }
  }
}
