import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// The staged container of a custom stage. Its changes are committed with the whole run, or discarded.
///
/// Settings and the vault are read once and written once, when the stage's closure has ended.
public final class MigrationContext {
  /// The app's own settings.
  public var settings: MigrationSettings { MigrationSettings(drafts: drafts, suite: nil) }
  /// The vault. A stage that uses it is declared with `needsVault`.
  public let vault: MigrationVault
  /// The files of the container.
  public var files: ContainerFiles { ContainerFiles(stage: stage, drafts: drafts) }

  let stage: StagedContainer
  private let position: YAMLPosition
  private var ownNotes: [String] = []
  private let drafts: SettingsDrafts

  init(stage: StagedContainer, name: String, position: YAMLPosition) {
    self.stage = stage
    self.position = position
    drafts = SettingsDrafts(stage, position)
    vault = MigrationVault(stage, name)
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

  /// Adds a note to the report, such as what was skipped and why.
  public func note(_ text: String) { ownNotes.append(text) }

  /// Runs an operation. Settings and secrets that were changed before are written first.
  public func run(_ operation: PlannedMigration.Operation) throws {
    let step = try operation.step()
    try finish()
    // A closure is reverted by its own `down`.
    ownNotes += try step.operation.apply(to: stage).map { "\(step.name): \($0)" }
  }

  /// Reads a database that `drydock.yaml` names.
  ///
  /// - Returns: nil, with a note, when it is not in the container.
  public func read<T>(
    database: String, ifMissing: IfMissing = .skip, _ body: (Database) throws -> T
  ) throws -> T? {
    guard let path = try place(of: database, ifMissing) else { return nil }
    return try stage.readRows(at: path, body)
  }

  /// Changes a database that `drydock.yaml` names, in one transaction. Foreign keys are off, by SQLite's documented
  /// procedure for schema changes, and checked at the end.
  ///
  /// - Returns: nil, with a note, when it is not in the container.
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
    let database = NamedDatabase(name, at: position)
    let place = try database.place(on: stage, ifMissing)
    if place == nil { ownNotes.append(database.missing) }
    return place
  }

  var notes: [String] { drafts.notes + ownNotes.map(hidingSecrets(in:)) }

  /// A text of the plan with the vault's secrets, and what looks like one, redacted.
  func hidingSecrets(in text: String) -> String {
    let secrets = vault.seen.compactMap { secret in
      secret.withBytes { String(validating: $0, as: UTF8.self) }
    }
    // A setting may be a part of the item that it was moved to.
    let settings = drafts.replaced.compactMap { setting -> String? in
      guard case .string(let text) = setting.value else { return nil }
      return vault.seen.contains { $0.holds(setting.value) } ? text : nil
    }
    // Shorter texts would match by chance.
    let known = (secrets + settings).filter { $0.count >= 6 }
    let hidden = known.sorted { $0.count > $1.count }.reduce(text) { text, secret in
      text.replacing(secret, with: stage.redactor.shown(secret: secret))
    }
    return stage.redactor.shown(message: hidden)
  }

  /// Writes the changed settings and vault.
  func finish() throws {
    try drafts.save()
    try vault.save()
    try keepSealed()
  }

  /// Has what the undo log keeps sealed, when the closure gave the vault a new value: it may come from a setting, a file or a
  /// database.
  private func keepSealed() throws {
    guard vault.hasNewValue, let recipients = try stage.vault()?.recipients else { return }
    stage.keepSealed(to: recipients)
    for setting in drafts.replaced {
      let known = stage.movedSecrets.contains { $0.path == setting.file && $0.key == setting.key }
      guard !known, vault.written.contains(where: { $0.value.holds(setting.value) }) else { continue }
      let secret = MovedSecret(path: setting.file, key: setting.key, value: setting.value)
      stage.keepSealed(secret, to: recipients)
    }
  }
}

extension SecretBytes {
  /// Whether this is the text or data of a setting, or contains it; short values would match by chance.
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

/// A closure of a plan as a step. Another closure in the migration's `down` reverts it.
struct CustomStep: MigrationAction {
  let name: String
  let position: YAMLPosition
  let needsVault: Bool
  let change: PlannedMigration.Change

  var reversal: Reversal { .none }
  var kind: StepKind { .closure }
  var effects: StepEffects { StepEffects(databases: .all, needsVault: needsVault) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let context = MigrationContext(stage: stage, name: name, position: position)
    do {
      try change(context)
      try context.finish()
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw StepFailure(context.hidingSecrets(in: error.plainMessage + Self.statement(of: error)))
    } catch  where !(error is StepFailure || error is DrydockError) {
      throw StepFailure(context.hidingSecrets(in: Self.text(of: error)))
    }
    return context.notes
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

/// The files of a staged container. A database is handled with its sidecars and external data, as in the operations on
/// files; its rows are changed by ``MigrationContext/write(database:ifMissing:_:)``.
public struct ContainerFiles {
  let stage: StagedContainer
  let drafts: SettingsDrafts

  /// Whether a file, directory or link exists.
  public func exists(_ path: ContainerPath) throws -> Bool { try stage.status(of: path) != nil }

  /// The children of a directory, sorted; none when it does not exist.
  public func children(of path: ContainerPath) throws -> [ContainerPath] { try stage.children(of: path) }

  /// The content of a file of up to 64 MiB.
  public func read(_ path: ContainerPath) throws -> [UInt8] {
    if drafts.touch(path) { try drafts.save() }
    return try stage.read(path)
  }

  /// Writes a file. Missing directories are created; a replaced file keeps its mode, owner and attributes.
  public func write(_ bytes: some Sequence<UInt8>, to path: ContainerPath) throws {
    try prepare(path)
    if try stage.isDatabase(path) {
      throw StepFailure("`\(path)` is a database: change it by `write(database:)`", at: path)
    }
    try stage.write(Array(bytes), to: path)
  }

  /// Creates a directory and its missing parents.
  public func createDirectory(_ path: ContainerPath) throws { try stage.createDirectory(path) }

  /// Copies a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or the target exists.
  public func copy(_ source: ContainerPath, to target: ContainerPath) throws {
    if drafts.touch(source) { try drafts.save() }
    try prepare(target)
    try stage.copy(source, to: target)
  }

  /// Moves a file, a directory or a database.
  ///
  /// - Throws: when the source is missing, or the target exists.
  public func move(_ source: ContainerPath, to target: ContainerPath) throws {
    try prepare(source)
    try prepare(target)
    try stage.move(source, to: target)
  }

  /// Removes a path with everything in it.
  ///
  /// - Throws: when it is missing.
  public func remove(_ path: ContainerPath) throws {
    try prepare(path)
    try stage.remove(path)
  }

  private func prepare(_ path: ContainerPath) throws {
    try stage.requireChangeable(path)
    if drafts.touch(path) { try drafts.save() }
  }
}

/// The vault of a staged container: opened once, and sealed once at the stage's end.
public final class MigrationVault {
  private(set) var written: [VaultItem] = []
  /// Whether one of them has a value that no item had.
  private(set) var hasNewValue = false
  /// All its values so far, which messages must not contain.
  private(set) var seen: [SecretBytes] = []
  private let stage: StagedContainer
  /// The stage's name, for the message about a missing device key.
  private let name: String
  private var vault: Vault?
  private var isOpen = false
  private var hasChanged = false

  init(_ stage: StagedContainer, _ name: String) {
    self.stage = stage
    self.name = name
  }

  /// An item.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` without the device key.
  public func item(_ id: VaultItem.ID) throws -> VaultItem? { try open()?[id] }

  /// The items of an address, in order; all by default.
  public func items(_ address: VaultItem.Address = VaultItem.Address()) throws -> [VaultItem] {
    try open().map(address.items) ?? []
  }

  /// Puts an item, and replaces one with the same ID; a missing vault is created. When the same stage removes a setting with
  /// the item's value, the undo entry keeps that setting sealed.
  public func put(_ item: VaultItem) throws {
    var vault = try open() ?? Vault(new: stage.requireDeviceKeys("the stage \(name)"))
    var item = item
    let now = UTCTime.text(Date())
    item.created = vault[item.id]?.created ?? item.created ?? now
    item.modified = now
    if !vault.items.values.contains(where: { $0.value == item.value }) { hasNewValue = true }
    vault.put(item)
    written.append(item)
    seen.append(item.value)
    (self.vault, hasChanged) = (vault, true)
  }

  /// Removes an item.
  ///
  /// - Returns: whether it existed.
  @discardableResult
  public func remove(_ id: VaultItem.ID) throws -> Bool {
    guard try open() != nil, vault?.remove(id) != nil else { return false }
    hasChanged = true
    return true
  }

  private func open() throws -> Vault? {
    if !isOpen {
      vault = try stage.vault()
      seen += vault?.items.values.map(\.value) ?? []
      isOpen = true
    }
    return vault
  }

  /// Writes the vault when something changed, and drops it.
  func save() throws {
    if hasChanged, let vault { try stage.setVault(vault) }
    (vault, isOpen, hasChanged) = (nil, false, false)
  }
}
