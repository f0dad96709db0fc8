import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// The container as a custom stage sees and changes it. Nothing of the real one is touched: what the stage does becomes
/// real with the whole run, or not at all.
///
/// Settings and the vault are read once and written once, when the stage's closure has ended.
public final class MigrationContext {
  /// The app's own settings.
  public var settings: MigrationSettings { MigrationSettings(drafts: drafts, suite: nil) }
  /// The secrets. A stage that uses them says so with `needsVault`.
  public var vault: MigrationVault { MigrationVault(draft: vaultDraft) }
  /// The files.
  public var files: ContainerFiles { ContainerFiles(stage: stage, drafts: drafts) }

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
  public func settings(suite: String) -> MigrationSettings {
    MigrationSettings(drafts: drafts, suite: suite)
  }

  /// Settings as a group of properties, each checked against what is stored now.
  ///
  /// - Throws: when a setting is stored that its property cannot hold, or one without a default is absent.
  public func settings<Group: SettingGroup>(_ group: Group.Type) throws -> Group {
    let group = Group()
    for child in Mirror(reflecting: group).children {
      if let setting = child.value as? any BindableSetting { try setting.bind(to: drafts) }
    }
    return group
  }

  /// Adds a remark to the report, such as what was skipped and why.
  public func remark(_ text: String) { ownNotes.append(text) }

  /// Runs an operation. Settings and secrets that were changed before are written first.
  public func run(_ operation: MigrationStage.Operation) throws {
    let made = try operation.make(operation.position)
    try finish()
    // A closure is reverted by its own `down`.
    var unused = DownValues()
    ownNotes += try made.apply(to: stage, &unused).map { "\(operation.name): \($0)" }
  }

  // MARK: Databases

  /// Reads a database that `drydock.yaml` names.
  ///
  /// - Returns: nil, with a remark, when it is not in the container.
  public func read<T>(
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
  public func write<T>(
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

/// A closure of a plan as a step. Its way back is another one, which stands in the migration's `down`.
struct CustomStep: MigrationAction {
  /// The stage's name.
  let stage: String
  let position: YAMLPosition
  let needsVault: Bool
  let change: MigrationStage.Change

  var name: String { stage }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    let context = MigrationContext(stage: stage, name: name, position: position)
    do {
      try change(context)
      try context.finish()
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw StepFailure(
        message: context.hidingSecrets(in: error.plainMessage + Self.statement(of: error)))
    } catch  where Self.isUnknown(error) {
      throw StepFailure(message: context.hidingSecrets(in: Self.text(of: error)))
    }
    return context.notes
  }

  /// Whether an error is the plan's own, of which nothing is known but its text.
  private static func isUnknown(_ error: any Error) -> Bool {
    !(error is StepFailure || error is DrydockError)
  }

  private static func text(of error: any Error) -> String {
    (error as? any LocalizedError)?.errorDescription ?? String(describing: error)
  }

  /// The SQL of a failed statement without its arguments, in one line.
  private static func statement(of error: DatabaseError) -> String {
    guard let sql = error.sql else { return "" }
    let line = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return " in `\(line.prefix(200))\(line.count > 200 ? "…" : "")`"
  }
}

/// The files of a container as a stage changes them. A database goes with all that belongs to it, as in the operations on
/// files; its rows are changed by ``MigrationContext/write(database:ifMissing:_:)``.
public struct ContainerFiles {
  let stage: StagedContainer
  let drafts: SettingsDrafts

  /// Whether something is there: a file, a directory or a link.
  public func exists(_ path: ContainerPath) throws -> Bool { try stage.status(of: path) != nil }

  /// What is directly in a directory, sorted; nothing when there is no such directory.
  public func children(of path: ContainerPath) throws -> [ContainerPath] { try stage.children(of: path) }

  /// The content of a file of up to 64 MiB.
  public func read(_ path: ContainerPath) throws -> [UInt8] {
    if drafts.touch(path) { try drafts.save() }
    return try stage.read(path)
  }

  /// Writes a file. Missing directories are made; a file that is replaced keeps its mode, owner and attributes.
  public func write(_ bytes: some Sequence<UInt8>, to path: ContainerPath) throws {
    try prepare(path)
    if try stage.isDatabase(path) {
      throw StepFailure(
        message: "`\(path)` is a database: change it by `write(database:)`", path: path.description)
    }
    try stage.write(Array(bytes), to: path)
  }

  /// Makes a directory and those above it; an existing one is fine.
  public func createDirectory(_ path: ContainerPath) throws { try stage.createDirectory(path) }

  /// Copies a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or something is at the target.
  public func copy(_ source: ContainerPath, to target: ContainerPath) throws {
    if drafts.touch(source) { try drafts.save() }
    try prepare(target)
    try stage.copy(source, to: target)
  }

  /// Moves a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or something is at the target.
  public func move(_ source: ContainerPath, to target: ContainerPath) throws {
    try prepare(source)
    try prepare(target)
    try stage.move(source, to: target)
  }

  /// Removes a path with everything below it.
  ///
  /// - Throws: when it is missing.
  public func remove(_ path: ContainerPath) throws {
    try prepare(path)
    try stage.remove(path)
  }

  /// The history is Drydock's own.
  private func prepare(_ path: ContainerPath) throws {
    let own = stage.container.historyPath.parent
    guard path != own, !path.isInside(own), !own.isInside(path) else {
      throw StepFailure(message: "`\(path)` holds Drydock's history: leave it alone", path: path.description)
    }
    if drafts.touch(path) { try drafts.save() }
  }
}

/// The vault as a stage changes it: opened once, and sealed once at the stage's end.
public struct MigrationVault {
  let draft: VaultDraft

  /// An item.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` without the device key.
  public func item(_ id: VaultItem.ID) throws -> VaultItem? { try draft.open()?[id] }

  /// The items of an address, all without one, in order.
  public func items(_ address: VaultAddress = VaultAddress()) throws -> [VaultItem] {
    try draft.open().map(address.items) ?? []
  }

  /// Puts an item, in place of one with the same id; a vault is made where there is none. A setting that goes in the same
  /// stage and whose value the item has is kept nowhere in the clear.
  public func put(_ item: VaultItem) throws { try draft.put(item) }

  /// Removes an item.
  ///
  /// - Returns: whether it was there.
  @discardableResult
  public func remove(_ id: VaultItem.ID) throws -> Bool { try draft.remove(id) }
}

/// The vault in the middle of a stage.
final class VaultDraft {
  /// Items that the stage has put.
  private(set) var put: [VaultItem] = []
  /// All values that were in it or have come, for messages without them.
  private(set) var seen: [SecretBytes] = []
  private let stage: StagedContainer
  /// Who asks for the device key, for the message without one.
  private let name: String
  private var vault: Vault?
  private var isOpen = false
  private var hasChanged = false

  init(_ stage: StagedContainer, _ name: String) {
    self.stage = stage
    self.name = name
  }

  func open() throws -> Vault? {
    if !isOpen {
      vault = try stage.vault()
      seen += vault?.items.values.map(\.value) ?? []
      isOpen = true
    }
    return vault
  }

  func put(_ item: VaultItem) throws {
    var vault = try open() ?? Vault(new: stage.requireDeviceKeys("the stage \(name)"))
    var item = item
    let now = UTCTime.text(Date())
    item.created = vault[item.id]?.created ?? item.created ?? now
    item.modified = now
    vault.put(item)
    put.append(item)
    seen.append(item.value)
    (self.vault, hasChanged) = (vault, true)
  }

  func remove(_ id: VaultItem.ID) throws -> Bool {
    guard try open() != nil, vault?.remove(id) != nil else { return false }
    hasChanged = true
    return true
  }

  /// Writes the vault when something changed, and forgets it.
  func save() throws {
    if hasChanged, let vault { try stage.setVault(vault) }
    (vault, isOpen, hasChanged) = (nil, false, false)
  }
}
