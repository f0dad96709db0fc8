import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

extension Container {
  /// The settings in a file, by key; nil when there is no file.
  ///
  /// - Throws: ``DrydockError``: `missing` for an unknown suite, `malformed` for a damaged file.
  public func settings(
    _ place: SettingsPlace = .standard, options: TransactionOptions = TransactionOptions()
  ) throws -> PropertyListDictionary? {
    try settingsFile(place, options: options)?.root
  }

  package func settingsFile(
    _ place: SettingsPlace, options: TransactionOptions = TransactionOptions()
  ) throws -> PropertyListFile? {
    try DiscardedStage(on: self, options: options).defaults(place.path(in: self))
  }

  /// Changes settings in one transaction, which can be undone; changes nothing when they are already so. The file keeps
  /// its format; a missing one is created in the binary format.
  ///
  /// - Throws: ``DrydockError``; nothing has changed then.
  @discardableResult
  public func changeSettings(
    _ change: SettingsChange, in place: SettingsPlace = .standard,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<SettingsChange.Report> {
    try Transaction.run(on: self, .defaults, options: options) {
      staged -> TransactionPlan<PlannedSettings, SettingsChange.Report> in
      let planned = try change.plan(staged, place)
      if planned.isUnchanged { return .unchanged(planned.report) }
      return .change(planned, summary: planned.report.summary)
    } body: { staged, planned in
      try staged.setDefaults(planned.file, at: planned.report.file)
      return planned.report
    }
  }

  /// Does what ``changeSettings(_:in:options:)`` does on a stage, discards it, and returns the difference.
  public func dryRunSettingsChange(
    _ change: SettingsChange, in place: SettingsPlace = .standard,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<SettingsChange.Report> {
    let stage = try DiscardedStage(on: self, options: options)
    let planned = try change.plan(stage, place)
    if !planned.isUnchanged { try stage.setDefaults(planned.file, at: planned.report.file) }
    return try stage.outcome(planned.report)
  }
}

private struct PlannedSettings {
  var file: PropertyListFile
  var isUnchanged: Bool
  var report: SettingsChange.Report
}

extension SettingsChange {
  fileprivate func plan(_ staged: StagedContainer, _ place: SettingsPlace) throws -> PlannedSettings {
    let path = try place.path(in: staged.container)
    let present = try staged.defaults(path)
    var file = present ?? PropertyListFile()
    do {
      let (settings, summary) = try made(in: file.root, staged.redactor)
      var report = SettingsChange.Report(summary: "\(summary) in \(path)", file: path)
      let isUnchanged = present != nil && file.root == settings
      for key in file.root.differingKeys(from: settings) {
        guard let value = settings[key], file.rounds(value) else { continue }
        report.notes.append(
          "`\(staged.redactor.shown(name: key.text))`: this file keeps dates as whole seconds only")
      }
      file.root = settings
      return PlannedSettings(file: file, isUnchanged: isUnchanged, report: report)
    } catch let error as DrydockError { throw error.at(path.description) }
  }
}
