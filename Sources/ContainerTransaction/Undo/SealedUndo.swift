import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// What of a transaction's undo is kept sealed, because a setting's value was moved into the vault. It is a part of
/// `record.json`: a recovery, which has no key, seals with it what a killed commit did not come to.
struct Sealing: Codable, Sendable {
  struct Setting: Codable, Sendable, Hashable {
    var path: ContainerPath
    @ExactText var key: String
  }

  /// Public keys, to whose owners it is sealed.
  var recipients: [String]
  /// The settings that were moved, and those that had their values before: what is kept of their files is sealed.
  var settings: [Setting]
  /// Files that other transactions have kept, as paths below a state directory, and that hold one of the values, too.
  var older: [ContainerPath]

  /// Whether what is kept of a file is sealed.
  func covers(_ path: ContainerPath) -> Bool {
    settings.contains { $0.path == path || $0.path.preferencesBackup == path }
  }

  /// Seals a file that is kept, and removes it. It may be run again after a crash at any moment.
  func seal(_ name: ContainerPath, in directory: Directory) throws {
    guard let status = try directory.status(name), status.type == .file else { return }
    var bytes = try directory.contents(name)
    let sealed = try Age.seal(SecretBytes(wiping: &bytes), to: target())
    let temporary = UndoFiles.sealed(name).withSuffix(".new")
    try directory.removeFile(temporary, missingIsFine: true)
    try directory.create(temporary, sealed)
    // A rollback recognizes by the time what was replaced.
    try directory.setModified(status.modified, of: temporary)
    let file = try directory.open(temporary, .readWrite)
    defer { try? file.close() }
    try directory.syncFile(file, temporary)
    try directory.rename(temporary, in: directory, to: UndoFiles.sealed(name))
    try directory.directory(name.parent).sync()
    try directory.removeFile(name)
  }

  private func target() throws -> AgeTarget {
    do {
      return .recipients(try recipients.map { try AgeRecipient($0) })
    } catch {
      throw DrydockError(
        .damagedState,
        "the record of a transaction names an invalid public key, so nothing can be sealed to it",
        cause: error)
    }
  }
}

extension Sealing {
  /// What a stage wants sealed; nil when nothing.
  init?(_ staged: StagedContainer, _ states: [StateDirectory]) throws {
    for state in states { try MovedSettings(in: state.directory).keepSealed(in: staged) }
    guard !staged.movedSecrets.isEmpty else { return nil }
    recipients = staged.undoNotes.recipients.map(\.description).sorted()
    let held = try states.map {
      try HeldSecrets(state: $0, container: staged.container, secrets: staged.movedSecrets).find()
    }
    older = held.flatMap(\.files)
    // Under the names that it had before, too: a restore of an old archive may bring it back under one of them.
    settings = Set(
      staged.movedSecrets.map { Setting(path: $0.path, key: $0.key) } + held.flatMap(\.settings)
    ).sorted { ($0.path, ExactText($0.key)) < ($1.path, ExactText($1.key)) }
  }
}

/// The settings of a container that were ever moved into its vault, by name: a file of the state directory, which stays
/// when the undos go. Should one of them be in the settings again (a restore of an old archive brings it back) and then
/// go again (that restore is rolled back), it is kept sealed again, without any key.
struct MovedSettings: Codable, Sendable {
  static let file: ContainerPath = "moved"

  /// Public keys, to whose owners such a value is sealed: those of the newest move.
  var recipients: [String] = []
  var settings: [Sealing.Setting] = []

  init(in state: Directory) throws {
    guard try state.status(Self.file) != nil else { return }
    self = try StateRecord.read(
      Self.file, in: state, damaged: "the list of settings that were moved to the vault is corrupt")
  }

  static func add(_ sealing: Sealing, in state: Directory) throws {
    var moved = try MovedSettings(in: state)
    moved.settings += sealing.settings.filter { !moved.settings.contains($0) }
    moved.recipients = sealing.recipients
    try state.replace(file, with: StateRecord.encode(moved))
  }

  /// Has a stage keep sealed what it takes out of such settings.
  func keepSealed(in staged: StagedContainer) throws {
    for setting in settings where staged.stage.overlay[setting.path] != nil {
      let source = try Container.settingsSource(setting.path) { try staged.live.status($0)?.type == .file }
      guard try staged.live.status(source)?.type == .file,
        let value = try SettingsFile.settings(
          in: staged.live.contents(source), path: setting.path.description)?[setting.key],
        // A file that is no longer readable as settings has changed: then it is sealed.
        (try? staged.defaults(setting.path))?.root[setting.key] != value
      else { continue }
      staged.keepSealed(
        MovedSecret(path: setting.path, key: setting.key, value: value),
        to: try recipients.map { try AgeRecipient($0) })
    }
  }
}

/// A setting whose value was moved out of its file, into the vault: nothing that a transaction keeps, and no archive that
/// is not encrypted, should hold it any longer. It lives in memory only.
package struct MovedSecret: Sendable {
  package let path: ContainerPath
  package let key: String
  private let value: PropertyListValue
  private let parts: [[UInt8]]
  /// A part this long is found inside of other text too; a shorter one would be found everywhere.
  private static let distinct = 8

  package init(path: ContainerPath, key: String, value: PropertyListValue) {
    (self.path, self.key, self.value) = (path, key, value)
    parts = value.textParts.filter { !$0.isEmpty }
  }

  /// Whether a setting of any file holds the value, or a part of it: under whatever key, since it may have had another
  /// name before. A number or a Bool says nothing under another key.
  package func isHeld(by other: PropertyListValue, of key: String) -> Bool {
    if key.isExactly(self.key) && other.matches(value) { return true }
    return other.textParts.contains { text in
      parts.contains { $0 == text || ($0.count >= Self.distinct && text.contains($0)) }
    }
  }

  /// A redactor that hides the value everywhere.
  func known(to redactor: Redactor) -> Redactor { redactor.knowing([["secret": value]]) }

  /// The value for people: its length and its fingerprint.
  func shown(by redactor: Redactor) -> String { redactor.shown(value, key: "secret") }

  /// Whether bytes that are no property list hold it.
  func isHeld(inBytes bytes: [UInt8]) -> Bool {
    parts.contains { $0.count >= Self.distinct && bytes.contains($0) }
  }
}

extension MovedSecret: CustomStringConvertible, CustomReflectable {
  /// Where it was; never what.
  package var description: String { "\(key) in \(path)" }

  /// Nothing: what dumps values shows no secret.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension [MovedSecret] {
  /// The keys of settings that hold one of the values, sorted.
  package func keys(in settings: PropertyListDictionary) -> [String] {
    settings.filter { key, value in contains { $0.isHeld(by: value, of: key) } }.keys.sorted().map(\.text)
  }

  /// Whether a file's content holds one of the values.
  func areHeld(inFile bytes: [UInt8], path: ContainerPath?) -> Bool {
    guard let file = try? SettingsFile(bytes: bytes, path: path?.description ?? "") else {
      return contains { $0.isHeld(inBytes: bytes) }
    }
    return !keys(in: file.root).isEmpty
  }
}

extension PropertyListValue {
  /// Every text and every data in it, as bytes.
  fileprivate var textParts: [[UInt8]] {
    switch self {
    case .string(let text): [Array(text.utf8)]
    case .data(let bytes): [bytes]
    case .set(let values): values.strings.map { Array($0.utf8) }
    case .array(let values): values.flatMap(\.textParts)
    case .dictionary(let values): values.values.flatMap(\.textParts)
    case .boolean, .integer, .unsigned, .real, .single, .int, .long, .date, .unknown: []
    }
  }
}

/// Looks for files of a state directory that hold a moved value in the clear: every earlier transaction that changed the
/// settings has kept a copy.
struct HeldSecrets {
  let state: StateDirectory
  let container: Container
  let secrets: [MovedSecret]
  /// A larger file is not a settings file.
  private static let sizeLimit = 64 << 20

  /// A file that was kept: of what, and where it is below the state directory. No path when that is not known.
  private struct Kept {
    var path: ContainerPath?
    var file: ContainerPath
  }

  /// The files, as paths below the state directory, and the settings that have such a value in them: by the names that
  /// it had before.
  func find() throws -> (files: [ContainerPath], settings: [Sealing.Setting]) {
    var found: (files: [ContainerPath], settings: [Sealing.Setting]) = ([], [])
    // What steps wrote down is not a settings file: it is sealed in any case.
    found.files = try names(StateDirectory.undo).flatMap { folder in
      try state.directory.directory(folder).names().filter(StepFile.isOne).map { folder.appending(name: $0) }
    }
    for kept in try undos() + conflicts() {
      guard let status = try state.directory.status(kept.file), status.type == .file,
        status.size <= Self.sizeLimit
      else { continue }
      let bytes = try state.directory.contents(kept.file)
      let file = try? SettingsFile(bytes: bytes, path: kept.path?.description ?? "")
      // An earlier value of the same setting may open something still.
      let hasEarlier = secrets.contains {
        $0.path == kept.path ?? $0.path && file?.root[$0.key] != nil
      }
      guard hasEarlier || secrets.areHeld(inFile: bytes, path: kept.path) else { continue }
      found.files.append(kept.file)
      guard let path = kept.path, let file else { continue }
      found.settings += secrets.keys(in: file.root).map { Sealing.Setting(path: path, key: $0) }
    }
    return found
  }

  private func undos() throws -> [Kept] {
    try names(StateDirectory.undo).flatMap { folder -> [Kept] in
      let directory = try state.directory.directory(folder)
      guard let record = try? UndoRecord(in: directory) else {
        // The paths are unknown: any of it may have been settings.
        return try directory.names().map { Kept(path: nil, file: folder.appending(name: $0)) }
      }
      return record.changes.filter { $0.granularity == .settings || isSettings($0.path) }.flatMap { change in
        [change.kept, change.settingsAfter].compactMap { $0 }
          .map { Kept(path: change.path, file: folder.appending(name: $0.bytes)) }
      }
    }
  }

  private func conflicts() throws -> [Kept] {
    try names(StateDirectory.conflict).flatMap { folder in
      try state.directory.directory(folder).settings(where: isSettings).map {
        Kept(path: nil, file: folder.appending(name: $0.bytes))
      }
    }
  }

  private func names(_ folder: ContainerPath) throws -> [ContainerPath] {
    guard try state.directory.status(folder)?.type == .directory else { return [] }
    return try state.directory.directory(folder).names().map { folder.appending(name: $0) }
  }

  private func isSettings(_ path: ContainerPath) -> Bool {
    let path = path.ofPreferencesBackup ?? path
    return container.isSettings(path) || secrets.contains { $0.path == path }
  }
}

extension Directory {
  /// The files below that were kept of such paths; a second one of a path has a `~` behind its name.
  func settings(where isOne: (ContainerPath) -> Bool) throws -> [ContainerPath] {
    var found: [ContainerPath] = []
    try walk { entry in
      var path = entry.path
      while path.bytes.last == UInt8(ascii: "~") { path = ContainerPath(name: path.bytes.dropLast()) }
      if entry.status.type == .file, isOne(path) { found.append(entry.path) }
      return .into
    }
    return found
  }
}
