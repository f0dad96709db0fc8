import AgeEncryption
import ContainerTransaction
import FileSystem
import Formats
import Foundation
import GRDB

/// The container as a custom stage sees and changes it. Nothing of the real one is touched: what the stage does becomes
/// real with the whole run, or not at all.
///
/// Settings and the vault are read once and written once, when the stage's closure has ended.
package final class MigrationContext {
  /// The app's own settings.
  package var settings: MigrationSettings { MigrationSettings(drafts: drafts, suite: nil) }
  /// The secrets. A stage that uses them says so with `needsVault`.
  package var vault: MigrationVault { MigrationVault(draft: vaultDraft) }
  /// The files.
  package var files: ContainerFiles { ContainerFiles(stage: stage, drafts: drafts) }

  let stage: StagedContainer
  private var ownNotes: [String] = []
  private let drafts: SettingsDrafts
  private let vaultDraft: VaultDraft

  init(stage: StagedContainer, name: String, position: YAMLPosition) {
    self.stage = stage
    drafts = SettingsDrafts(stage, position)
    vaultDraft = VaultDraft(stage, name)
  }

  /// The settings of a suite that `drydock.yaml` names under `defaults:`.
  package func settings(suite: String) -> MigrationSettings {
    MigrationSettings(drafts: drafts, suite: suite)
  }

  /// Settings as a group of properties, each checked against what is stored now.
  ///
  /// - Throws: when a setting is stored that its property cannot hold, or one without a default is absent.
  package func settings<Group: SettingGroup>(_ group: Group.Type) throws -> Group {
    let group = Group()
    for child in Mirror(reflecting: group).children {
      if let setting = child.value as? any BindableSetting { try setting.bind(to: drafts) }
    }
    return group
  }

  /// Adds a remark to the report, such as what was skipped and why.
  package func remark(_ text: String) { ownNotes.append(text) }

  /// Runs an operation. Settings and secrets that were changed before are written first.
  package func run(_ operation: MigrationStage.Operation) throws {
    let step = try operation.entry.step(MigrationFiles(directory: "", isDirectory: true))
    try finish()
    var memory = StepMemory()
    ownNotes += try step.operation.apply(to: stage, &memory).map { "\(operation.entry.name): \($0)" }
  }

  // MARK: Databases

  /// Reads a database that `drydock.yaml` names.
  ///
  /// - Returns: nil, with a remark, when it is not in the container.
  package func read<T>(
    database: String, ifMissing: IfMissing = .skip, _ body: (Database) throws -> T
  ) throws -> T? {
    guard let path = try place(of: database, ifMissing) else { return nil }
    return try stage.readDatabase(at: path, body)
  }

  /// Changes a database that `drydock.yaml` names, in one transaction. Foreign keys are off, as SQLite's documentation
  /// wants it for changes of a schema, and checked at the end.
  ///
  /// - Returns: nil, with a remark, when it is not in the container.
  @discardableResult
  package func write<T>(
    database: String, ifMissing: IfMissing = .skip, _ body: (Database) throws -> T
  ) throws -> T? {
    guard let path = try place(of: database, ifMissing) else { return nil }
    var result: T?
    ownNotes += try stage.writeDatabase(at: path) { db in
      try MigrationTransaction.run(db) { _ in result = try body(db) }
    }
    return result
  }

  private func place(of name: String, _ ifMissing: IfMissing) throws -> ContainerPath? {
    let known = stage.container.configuration.databases.keys.sorted()
    guard known.contains(name) else {
      throw StepFailure(
        message: known.isEmpty
          ? "no database is named in drydock.yaml: add `databases: {\(name): [PATH]}`"
          : "drydock.yaml has no database `\(name)`; " + NearestWord.hint(for: name, among: known))
    }
    if let path = try stage.databasePlace(name) { return path }
    if ifMissing == .fail { throw StepFailure(message: "the database \(name) is not in the container") }
    ownNotes.append("the database \(name) is not there: skipped")
    return nil
  }

  // MARK: The end

  /// Remarks of all that was done.
  var notes: [String] { drafts.notes + ownNotes.map(hidingSecrets(in:)) }

  /// A text of the plan's own without the secrets that the vault holds, or what looks like one.
  func hidingSecrets(in text: String) -> String {
    let secrets = vaultDraft.seen.compactMap { secret in
      secret.withBytes { String(validating: $0, as: UTF8.self) }
    }
    // A setting may be but a part of the item that it has become.
    let settings = drafts.replaced.compactMap { setting -> String? in
      guard case .string(let text) = setting.value else { return nil }
      return vaultDraft.seen.contains { $0.holds(setting.value) } ? text : nil
    }
    // Shorter ones are found by chance.
    let known = (secrets + settings).filter { $0.count >= 6 }
    let hidden = known.sorted { $0.count > $1.count }.reduce(text) { text, secret in
      text.replacing(secret, with: stage.redactor.shown(secret: secret))
    }
    return stage.redactor.shown(message: hidden)
  }

  /// Writes what was changed in settings and the vault.
  func finish() throws {
    try drafts.save()
    try vaultDraft.save()
    try keepSealed()
  }

  /// A setting that has become a vault item is in no undo in the clear, whether an operation moved it or a closure did.
  private func keepSealed() throws {
    guard !vaultDraft.put.isEmpty, !drafts.replaced.isEmpty, let vault = try stage.vault() else { return }
    for setting in drafts.replaced {
      let known = stage.movedSecrets.contains { $0.path == setting.file && $0.key == setting.key }
      guard !known, vaultDraft.put.contains(where: { $0.value.holds(setting.value) }) else { continue }
      let secret = MovedSecret(path: setting.file, key: setting.key, value: setting.value)
      stage.keepSealed(secret, to: vault.recipients)
    }
  }
}

extension SecretBytes {
  /// Whether this is the text or the data of a setting, or a document with it: what is short is in any document.
  fileprivate func holds(_ value: PropertyListValue) -> Bool {
    let part: Data
    switch value {
    case .string(let text): part = Data(text.utf8)
    case .data(let bytes): part = Data(bytes)
    default: return false
    }
    return withBytes { bytes in
      let whole = Data(bytes)
      return whole == part || (part.count >= 8 && whole.range(of: part) != nil)
    }
  }
}
