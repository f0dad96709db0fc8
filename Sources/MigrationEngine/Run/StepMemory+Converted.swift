import AgeEncryption
import AppContainer
import ContainerTransaction

extension StepMemory {
  /// A file that became another one.
  struct Converted: Sendable, Codable, Equatable {
    /// Where it was, and where it is now.
    var from, to: ContainerPath
    /// SHA-256 of what the step wrote, in hexadecimal digits.
    var digest: String
  }

  /// Notes that a file goes whose content the transaction's undo keeps.
  mutating func noteRemoval(of path: ContainerPath, on stage: StagedContainer) throws {
    if try stage.isUntouched(path), !removed.contains(path) { removed.append(path) }
  }

  /// Puts the files back that became others, where these still are what the step wrote, and those that went.
  ///
  /// - Returns: remarks on what was changed since or is not kept any more, and stays as it is.
  func revertConverted(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    for file in converted.reversed() {
      guard try stage.status(of: file.to)?.type == .file else {
        notes.append("`\(file.to)` is not there: skipped")
        continue
      }
      let bytes = try stage.read(file.to)
      guard try SHA256.hash(bytes).hex == file.digest else {
        notes.append("`\(file.to)` was changed since: left as it is")
        continue
      }
      if file.from != file.to, try stage.status(of: file.from) != nil {
        notes.append("`\(file.from)` is there again: kept, and `\(file.to)` too")
        continue
      }
      guard removed.contains(file.from), let kept = stage.kept else {
        notes.append("what `\(file.to)` was made of is not kept any more: left as it is")
        continue
      }
      try stage.remove(file.to)
      guard try kept.putBack(file.from) else {
        try stage.write(bytes, to: file.to)
        notes.append("what `\(file.to)` was made of is not kept any more: left as it is")
        continue
      }
    }
    for path in removed where try stage.status(of: path) == nil {
      guard try stage.kept?.putBack(path) == true else {
        notes.append("`\(path)` is not kept any more")
        continue
      }
    }
    return notes
  }
}
