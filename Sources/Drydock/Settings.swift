import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import MigrationEngine

extension Container {
  /// The settings in a file, by key; nil when there is no file.
  ///
  /// - Throws: ``DrydockError``: `missing` for an unknown suite, `malformed` for a damaged file.
  public func settings(
    _ place: SettingsPlace = .standard, options: TransactionOptions = TransactionOptions()
  ) throws -> PropertyListDictionary? {
    try settingsFile(place, options: options)?.file.root
  }

  /// The file with the settings as the app sees them: of an iCloud key-value store the values.
  package func settingsFile(
    _ place: SettingsPlace, options: TransactionOptions = TransactionOptions()
  ) throws -> (path: ContainerPath, file: SettingsFile)? {
    let stage = try DiscardedStage(on: self, options: options)
    let path = try place.path(in: self, exists: stage.defaultsExist)
    guard var file = try stage.defaults(path) else { return nil }
    if isKeyValueStore(path) { file.root = KeyValueStore(file.root).values }
    return (path, file)
  }
}

extension ContainerChange<SettingsChange.Report> {
  /// Changes settings in one transaction, which can be undone; changes nothing when they are already so. The file keeps its
  /// format; a missing one is created in the format that the app reads at its path.
  public static func settings(
    _ change: SettingsChange, in place: SettingsPlace = .standard,
    options: TransactionOptions = TransactionOptions()
  ) -> Self {
    Self {
      try Transaction.run(on: $0, .defaults, options: options) {
        staged -> TransactionPlan<PlannedSettings, SettingsChange.Report> in
        let planned = try change.plan(staged, place)
        if planned.isUnchanged { return .unchanged(planned.report) }
        return .change(planned, summary: planned.report.summary)
      } body: { staged, planned in
        try staged.setDefaults(planned.file, at: planned.report.file)
        return planned.report
      }
    } dryRun: {
      let stage = try DiscardedStage(on: $0, options: options)
      let planned = try change.plan(stage, place)
      if !planned.isUnchanged { try stage.setDefaults(planned.file, at: planned.report.file) }
      return try stage.outcome(planned.report)
    }
  }

  /// Sets a setting; else as ``settings(_:in:options:)``.
  public static func set(
    _ key: String, to value: PropertyListValue, in place: SettingsPlace = .standard,
    options: TransactionOptions = TransactionOptions()
  ) -> Self { settings(.set(SettingsChange.Address(key), value), in: place, options: options) }
}

private struct PlannedSettings {
  var file: SettingsFile
  var isUnchanged: Bool
  var report: SettingsChange.Report
}

extension SettingsChange {
  fileprivate func plan(_ staged: StagedContainer, _ place: SettingsPlace) throws -> PlannedSettings {
    let (container, redactor) = (staged.container, staged.redactor)
    let path = try place.path(in: container, exists: staged.defaultsExist)
    let present = try staged.defaults(path)
    var file = present ?? SettingsFile(newAt: path.description)
    let store = container.isKeyValueStore(path) ? KeyValueStore(file.root) : nil
    do {
      let before = store?.values ?? file.root
      let (settings, summary) = try made(in: before, redactor)
      var report = SettingsChange.Report(summary: "\(summary) \(path)", file: path)
      if settings == before {
        return PlannedSettings(file: file, isUnchanged: present != nil, report: report)
      }
      try store?.requireWritable(settings, path.description)
      report.notes = try file.adopt(settings, redactor) { DrydockError(.unsupported, $0) }
      return PlannedSettings(file: file, isUnchanged: file == present, report: report)
    } catch let error as DrydockError { throw error.at(path.description) }
  }
}
