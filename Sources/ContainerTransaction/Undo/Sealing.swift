import AgeEncryption
import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// Says that all that is kept of this and of earlier transactions is sealed, because a secret was moved into the vault. It is a
/// part of `record.json`: a recovery, which has no key, seals with it what a killed commit did not come to.
struct Sealing: Codable, Sendable {
  struct Setting: Codable, Sendable, Hashable {
    var path: ContainerPath
    @ExactText var key: String
  }

  /// Public keys, to whose owners it is sealed.
  var recipients: [String]
  /// The settings that were moved, and those that had their values before.
  var settings: [Setting]

  /// The most files, and about the most bytes, that are sealed before the file system is synced: that many are there twice.
  private static let batch = (files: 256, bytes: UInt64(64 << 20))

  /// Seals every file of all undo entries and conflict copies, and removes the plain ones: any of them may have a copy of the
  /// secret, also where no search finds it, as in a free page of a database or compressed. It may be run again after a crash at
  /// any moment.
  func sealAll(in state: Directory, _ faults: Seams) throws {
    let target = try target()
    for place in [StateDirectory.undo, StateDirectory.conflict]
    where try state.status(place)?.type == .directory {
      let folder = try state.directory(place)
      var names = try SealedNames(of: place, in: state)
      var files = PathList()
      try folder.walk { entry in
        if entry.status.type == .file, !names.contains(entry.path) { files.append(entry.path) }
        return .into
      }
      var (batch, bytes): ([Sealed], UInt64) = ([], 0)
      for name in files {
        guard let file = try seal(name, in: folder, to: target, &names) else { continue }
        batch.append(file)
        bytes += file.status.size
        if batch.count < Self.batch.files, bytes < Self.batch.bytes { continue }
        try finish(batch, in: folder, faults)
        (batch, bytes) = ([], 0)
      }
      try finish(batch, in: folder, faults)
    }
  }

  /// A plain file with its status when it was read, and the name of the sealed one, which is complete under its temporary name.
  private typealias Sealed = (plain: ContainerPath, status: FileStatus, name: ContainerPath)

  /// Writes a file sealed beside it, whatever it starts like: what only looks like an age file may hold a secret.
  ///
  /// - Returns: nil when it is gone, or is a vault, which is encrypted itself: its rollback needs no key.
  private func seal(
    _ name: ContainerPath, in folder: Directory, to target: AgeTarget, _ names: inout SealedNames
  ) throws -> Sealed? {
    guard let status = try folder.status(name), try !names.isVault(name, in: folder) else { return nil }
    let sealed = try names.add(for: name, in: folder)
    let temporary = SealedNames.temporary(sealed)
    try folder.withWritableParent(of: name) {
      try folder.removeFile(temporary, missingIsFine: true)
      let file = try folder.createFile(temporary)
      defer { try? file.close() }
      let writer = try AgeWriter(to: target) { bytes in
        _ = try DrydockError.translating("cannot write", folder.full(temporary)) { try file.writeAll(bytes) }
      }
      var isStart = true
      try folder.read(name) { piece in
        guard isStart else { return try writer.write(piece) }
        isStart = false
        var start = Array(piece)
        ReplacedMark.remove(from: &start)
        try start.withUnsafeBytes(writer.write)
      }
      try writer.finish()
      // A rollback recognizes by the time what was replaced.
      try folder.setModified(status.modified, of: temporary)
    }
    return (name, status, sealed)
  }

  /// Puts sealed files in the place of plain ones.
  private func finish(_ batch: [Sealed], in folder: Directory, _ faults: Seams) throws {
    if batch.isEmpty { return }
    try folder.syncFileSystem()
    for file in batch {
      try folder.withWritableParent(of: file.name) {
        try folder.rename(SealedNames.temporary(file.name), in: folder, to: file.name)
      }
      try faults.reach(.sealed)
    }
    try folder.syncFileSystem()
    for file in batch {
      let now = try folder.status(file.plain)
      guard now?.modified == file.status.modified, now?.size == file.status.size else {
        throw DrydockError(
          .changedMeanwhile, "a program wrote to what is kept while it was sealed",
          path: folder.full(file.plain))
      }
      try folder.withWritableParent(of: file.plain) { try folder.removeFile(file.plain) }
      try faults.reach(.sealed)
    }
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

/// The names of sealed files. In undo entries they follow from those of the plain files. Conflict copies have names of the
/// app, which may look like those: there a list says which ones are sealed.
private struct SealedNames {
  /// A file of the state directory: paths below `conflict`.
  private static let file: ContainerPath = "sealed"
  /// Files of undo entries that describe them.
  private static let records = Set([UndoRecord.file, LateWrites.file, LateWrites.unmarked].map(\.nameString))

  private let state: Directory
  /// The sealed conflict copies; nil for undo entries.
  private var listed: Set<ContainerPath>?
  /// The vaults that undo entries keep, by the entry's folder.
  private var vaults: [ContainerPath: Set<ContainerPath>] = [:]

  init(of place: ContainerPath, in state: Directory) throws {
    self.state = state
    guard place == StateDirectory.conflict else { return }
    guard try state.status(Self.file) != nil else {
      listed = []
      return
    }
    let paths: [ContainerPath] = try StateRecord.read(
      Self.file, in: state, damaged: "the list of encrypted conflict copies is corrupt")
    listed = Set(paths)
  }

  /// The name that a file has until it is complete.
  static func temporary(_ sealed: ContainerPath) -> ContainerPath { sealed.withSuffix(".new") }

  /// Whether a file is sealed, or one that a crash left incomplete, or describes an undo entry.
  func contains(_ path: ContainerPath) -> Bool {
    let name = path.nameString
    if let listed {
      return listed.contains(path) || name.hasSuffix(".new") && listed.contains { Self.temporary($0) == path }
    }
    return Self.records.contains(name) || name.hasSuffix(".age") || name.hasSuffix(".age.new")
  }

  /// Whether an undo entry keeps a file as a vault, by its record.
  mutating func isVault(_ path: ContainerPath, in folder: Directory) throws -> Bool {
    guard listed == nil, try AgeHeader.isPresent(in: folder.prefix(of: path, AgeHeader.probeLength)) else {
      return false
    }
    let entry = path.parent
    if let known = vaults[entry] { return known.contains(path) }
    var found: Set<ContainerPath> = []
    // All of an entry whose record is corrupt is sealed.
    if let record = try? UndoRecord(in: folder.directory(entry)) {
      for change in record.changes where change.granularity == .vault {
        for name in [change.kept, change.settingsAfter].compactMap({ $0 }) {
          found.insert(entry.appending(name: name.bytes))
        }
      }
    }
    vaults[entry] = found
    return found.contains(path)
  }

  /// The name for a sealed file, on disk in the list when this returns. In an undo entry a file of this name was sealed
  /// before a crash, and is replaced.
  mutating func add(for name: ContainerPath, in folder: Directory) throws -> ContainerPath {
    var sealed = UndoEntry.sealed(name)
    guard var listed else { return sealed }
    while try folder.status(sealed) != nil
      || (!listed.contains(sealed) && folder.status(Self.temporary(sealed)) != nil)
    {
      sealed = sealed.withSuffix("~")
    }
    guard listed.insert(sealed).inserted else { return sealed }
    try state.replace(Self.file, with: StateRecord.encode(listed.sorted()))
    self.listed = listed
    return sealed
  }
}

extension Sealing {
  /// What a stage wants sealed; nil when nothing.
  init?(_ staged: StagedContainer, _ states: [StateDirectory]) throws {
    for state in states { try Self.moved(in: state.directory)?.keepSealed(in: staged) }
    guard !staged.secretRecipients.isEmpty else { return nil }
    recipients = staged.secretRecipients.map(\.description).sorted()
    let earlier = try states.flatMap {
      try Self.earlierNames(of: staged.movedSecrets, in: $0.directory, staged.container)
    }
    // Under the names that it had before, too: a restore of an old archive may bring it back under one of them.
    settings = Set(staged.movedSecrets.map { Setting(path: $0.path, key: $0.key) } + earlier)
      .sorted { ($0.path, ExactText($0.key)) < ($1.path, ExactText($1.key)) }
  }

  /// The names of settings that moved values had before, by what earlier transactions have kept.
  private static func earlierNames(
    of secrets: [MovedSecret], in state: Directory, _ container: Container
  ) throws -> [Setting] {
    guard try state.status(StateDirectory.undo)?.type == .directory else { return [] }
    let undos = try state.directory(StateDirectory.undo)
    var found: [Setting] = []
    for folder in try undos.names().map({ try undos.directory(ContainerPath(name: $0)) }) {
      guard let record = try? UndoRecord(in: folder) else { continue }
      for change in record.changes {
        let path = change.path.ofPreferencesBackup ?? change.path
        guard
          change.granularity == .settings || container.isSettings(path)
            || secrets.contains(where: { $0.path == path })
        else { continue }
        for name in [change.kept, change.settingsAfter].compactMap({ $0 }) {
          // A larger file is not a settings file.
          guard let status = try folder.status(name), status.type == .file, status.size <= 64 << 20,
            let file = try? SettingsFile(bytes: folder.contents(name), path: change.path.description)
          else { continue }
          found += secrets.keys(in: file.root).map { Setting(path: change.path, key: $0) }
        }
      }
    }
    return found
  }
}

/// The settings of a container that were ever moved into its vault, in the same form: a file of the state directory, which
/// stays when the undo entries go. Should one of them be in the settings again (a restore of an old archive brings it back)
/// and then go again (that restore is rolled back), it is kept sealed again, without any key: to those of the newest move.
extension Sealing {
  private static let file: ContainerPath = "moved"

  private static func moved(in state: Directory) throws -> Sealing? {
    guard try state.status(file) != nil else { return nil }
    return try StateRecord.read(
      file, in: state, damaged: "the list of settings that were moved to the vault is corrupt")
  }

  /// Adds its settings to that list.
  func noteMoved(in state: Directory) throws {
    var moved = try Self.moved(in: state) ?? Sealing(recipients: [], settings: [])
    moved.settings += settings.filter { !moved.settings.contains($0) }
    moved.recipients = recipients
    try state.replace(Self.file, with: StateRecord.encode(moved))
  }

  /// Has a stage keep sealed what it takes out of such settings.
  private func keepSealed(in staged: StagedContainer) throws {
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
