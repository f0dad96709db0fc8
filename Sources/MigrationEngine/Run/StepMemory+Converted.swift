import AgeEncryption
import ContainerTransaction
import FileSystem

extension StepMemory {
  /// A file that became another one.
  struct Converted: Sendable, Codable, Equatable {
    /// Where it was, and where it is now.
    var from, to: ContainerPath
    /// SHA-256 of what the step wrote, in hexadecimal digits.
    var digest: String
  }

  /// Puts the files back that became others, where these still are what the step wrote, and those that went.
  ///
  /// - Returns: remarks on what was changed since, and stays.
  /// - Throws: ``StepFailure`` when one is kept nowhere.
  func revertConverted(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    var rest = self
    for file in converted.reversed() {
      if let reason = try whyItStays(file, on: stage) {
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

  private func whyItStays(_ file: Converted, on stage: StagedContainer) throws -> String? {
    guard try stage.status(of: file.to)?.type == .file else { return "`\(file.to)` is not there: skipped" }
    guard try SHA256.hash(stage.read(file.to)).hex == file.digest else {
      return "`\(file.to)` was changed since: left as it is"
    }
    guard try file.from == file.to || stage.status(of: file.from) == nil else {
      return "`\(file.from)` is there again: kept, and `\(file.to)` too"
    }
    return nil
  }
}
