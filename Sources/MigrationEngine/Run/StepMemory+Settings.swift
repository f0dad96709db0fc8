import ContainerTransaction
import FileSystem
import Formats

extension StepMemory {
  /// What was noted of a setting.
  func setting(_ key: String, in file: ContainerPath) -> Setting? {
    settings.first { $0.file == file && $0.key.isExactly(key) }
  }

  /// Puts the settings back that the step changed, where they still are what it wrote; a file that it made goes when
  /// nothing is left in it.
  ///
  /// - Parameter keys: only these; all when nil.
  /// - Returns: remarks on what was changed since, and stays.
  func revertSettings(on stage: StagedContainer, only keys: Set<ExactText>? = nil) throws -> [String] {
    var notes: [String] = []
    for file in Set(settings.map(\.file)).sorted() {
      notes += try revert(
        settings.filter { $0.file == file && keys?.contains(ExactText($0.key)) ?? true }, of: file, on: stage)
    }
    return notes
  }

  private func revert(
    _ settings: [Setting], of path: ContainerPath, on stage: StagedContainer
  ) throws -> [String] {
    let original = try stage.defaults(path)
    var file = original ?? PropertyListFile()
    var notes: [String] = []
    for setting in settings {
      let now = file.root[setting.key]
      if now == setting.before?.value { continue }
      guard now == setting.after?.value else {
        notes.append("`\(stage.redactor.shown(name: setting.key))` was changed since: left as it is")
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
}
