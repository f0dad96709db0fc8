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
    if try state.status(StateDirectory.undo)?.type == .directory {
      let undos = try state.directory(StateDirectory.undo)
      let plain = try Self.files(in: undos) { path in
        let name = path.nameString
        return !Self.records.contains(name) && !name.hasSuffix(".age") && !name.hasSuffix(".age.new")
      }
      var vaults: [ContainerPath: Set<ContainerPath>] = [:]
      try seal(plain, in: undos, faults) { plain in
        // A vault is encrypted itself: its rollback needs no key.
        if try AgeHeader.isPresent(in: undos.prefix(of: plain, AgeHeader.probeLength)) {
          let known = vaults[plain.parent] ?? Self.vaults(in: plain.parent, undos)
          vaults[plain.parent] = known
          if known.contains(plain) { return nil }
        }
        // The sealed file of an earlier run is replaced.
        return UndoEntry.sealed(plain)
      }
    }
    guard try state.status(StateDirectory.conflict)?.type == .directory else { return }
    let copies = try state.directory(StateDirectory.conflict)
    var sealed = try Self.sealedCopies(in: state)
    let plain = try Self.files(in: copies) { path in
      !sealed.contains(path)
        && !(path.nameString.hasSuffix(".new") && sealed.contains { Self.temporary($0) == path })
    }
    try seal(plain, in: copies, faults) { plain in
      var name = UndoEntry.sealed(plain)
      while try copies.status(name) != nil
        || (!sealed.contains(name) && copies.status(Self.temporary(name)) != nil)
      {
        name = name.withSuffix("~")
      }
      // On disk in the list before the sealed file exists: else a run after a crash takes that file for a plain one.
      if sealed.insert(name).inserted {
        try state.replaceRecord(Self.listOfCopies, with: sealed.sorted())
      }
      return name
    }
  }

  /// - Parameter name: gives the name for a sealed file; nil for one that stays plain.
  private func seal(
    _ files: PathList, in folder: Directory, _ faults: Seams,
    as name: (ContainerPath) throws -> ContainerPath?
  ) throws {
    let target = try target()
    var (batch, bytes): ([Sealed], UInt64) = ([], 0)
    for plain in files {
      guard let status = try folder.status(plain), let sealed = try name(plain) else { continue }
      try seal(plain, status, in: folder, as: sealed, to: target)
      batch.append((plain, status, sealed))
      bytes += status.size
      if batch.count < Self.batch.files, bytes < Self.batch.bytes { continue }
      try finish(batch, in: folder, faults)
      (batch, bytes) = ([], 0)
    }
    try finish(batch, in: folder, faults)
  }

  /// A plain file with its status when it was read, and the name of the sealed one, which is complete under its temporary name.
  private typealias Sealed = (plain: ContainerPath, status: FileStatus, name: ContainerPath)

  /// Writes a file sealed beside it, whatever it starts like: what only looks like an age file may hold a secret.
  private func seal(
    _ name: ContainerPath, _ status: FileStatus, in folder: Directory, as sealed: ContainerPath,
    to target: AgeTarget
  ) throws {
    let temporary = Self.temporary(sealed)
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
  }

  /// Puts sealed files in the place of plain ones.
  private func finish(_ batch: [Sealed], in folder: Directory, _ faults: Seams) throws {
    if batch.isEmpty { return }
    try folder.syncFileSystem()
    for file in batch {
      try folder.withWritableParent(of: file.name) {
        try folder.rename(Self.temporary(file.name), in: folder, to: file.name)
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

/// The files that are to be sealed, and the names of sealed ones. In undo entries these follow from those of the plain
/// files. Conflict copies have names of the app, which may look like those: there a list says which ones are sealed.
extension Sealing {
  /// A file of the state directory: paths below `conflict`.
  private static let listOfCopies: ContainerPath = "sealed"
  /// Files of undo entries that describe them.
  private static let records = Set([UndoRecord.file, LateWrites.file].map(\.nameString))

  private static func sealedCopies(in state: Directory) throws -> Set<ContainerPath> {
    guard try state.status(listOfCopies) != nil else { return [] }
    let paths: [ContainerPath] = try state.record(
      listOfCopies, damaged: "the list of encrypted conflict copies is corrupt")
    return Set(paths)
  }

  /// The name that a sealed file has until it is complete: a crash may leave it.
  private static func temporary(_ sealed: ContainerPath) -> ContainerPath { sealed.withSuffix(".new") }

  private static func files(
    in folder: Directory, where isPlain: (ContainerPath) -> Bool
  ) throws -> PathList {
    var files = PathList()
    try folder.walk { entry in
      if entry.status.type == .file, isPlain(entry.path) { files.append(entry.path) }
      return .into
    }
    return files
  }

  /// The vaults that an undo entry keeps, by its record; none where that is corrupt: then all of it is sealed.
  private static func vaults(in entry: ContainerPath, _ undos: Directory) -> Set<ContainerPath> {
    guard let record = try? UndoRecord(in: undos.directory(entry)) else { return [] }
    let names = record.changes.filter { $0.granularity == .vault }.flatMap(\.files)
    return Set(names.map { entry.appending(name: $0.bytes) })
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
    var found: [Setting] = []
    for transaction in try Journal(state: state).transactions(in: StateDirectory.undo) {
      let folder = try state.directory(StateDirectory.folder(StateDirectory.undo, transaction))
      guard let record = try? UndoRecord(in: folder) else { continue }
      for change in record.changes {
        let path = change.path.ofPreferencesBackup ?? change.path
        guard
          change.granularity == .settings || container.isSettings(path)
            || secrets.contains(where: { $0.path == path })
        else { continue }
        for name in change.files {
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
    return try state.record(
      file, damaged: "the list of settings that were moved to the vault is corrupt")
  }

  /// Adds its settings to that list.
  func noteMoved(in state: Directory) throws {
    var moved = try Self.moved(in: state) ?? Sealing(recipients: [], settings: [])
    moved.settings += settings.filter { !moved.settings.contains($0) }
    moved.recipients = recipients
    try state.replaceRecord(Self.file, with: moved)
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
