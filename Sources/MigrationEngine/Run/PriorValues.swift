import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// What one step of a migration changed, recorded so that it can be reverted later. It is a part of the transaction's undo
/// entry, which has the previous files, and is removed with it. Secrets that a vault holds are only in `items`, sealed.
struct PriorValues: Sendable, Codable, Equatable {
  /// A setting that the step changed.
  struct Setting: Sendable, Codable, Equatable {
    var file: ContainerPath
    @ExactText var key: String
    /// Nil when it was or is absent.
    var before, after: StoredValue?
  }

  /// The changes that the step made inside a JSON document or a property list.
  struct Document: Sendable, Codable, Equatable {
    /// The document, or the settings file that contains it.
    var file: ContainerPath
    /// The setting, when the document is one.
    var key: String?
    var changes: [DocumentChange]
    /// SHA-256 of the file that the step wrote, when the undo entry keeps the previous file.
    var written: SHA256.Digest?

    /// Restores the previous file, when the file is as the step wrote it and the undo entry still has a copy. Without a
    /// copy the file stays, with its metadata, and the changes in it are reverted one by one.
    fileprivate func putBackWhole(on stage: StagedContainer) throws -> Bool {
      guard let written, let kept = stage.kept, kept.hasCopy(of: file) else { return false }
      guard try SHA256.hash(stage.read(file)) == written else { return false }
      try stage.remove(file)
      return try kept.putBack(file, on: stage)
    }
  }

  /// A path that the step wrote.
  struct Written: Sendable, Codable, Equatable {
    var path: ContainerPath
    /// SHA-256 of the content; of a directory with everything in it.
    var digest: SHA256.Digest
    /// The removed paths that it replaced.
    var replaced: [ContainerPath]

    /// Why the path cannot be replaced by what was there before; nil when it can.
    fileprivate func problem(on stage: StagedContainer) throws -> String? {
      if try stage.status(of: path) == nil { return "`\(path)` does not exist: nothing to revert" }
      if try stage.digest(of: path) != digest { return "`\(path)` was changed since: left unchanged" }
      let other = try replaced.first { try $0 != path && stage.status(of: $0) != nil }
      return other.map { "`\($0)` exists again: kept, and `\(path)` too" }
    }
  }

  /// A path that the step moved.
  struct Moved: Sendable, Codable, Equatable {
    var from, to: ContainerPath
    /// Whether it replaced something.
    var replaced = false

    /// Moves the present content back.
    ///
    /// - Returns: a note when that is not possible.
    func revert(on stage: StagedContainer) throws -> String? {
      guard try stage.status(of: to) != nil else { return "`\(to)` does not exist: skipped" }
      guard try stage.status(of: from) == nil else {
        return "`\(from)` exists already: kept, and `\(to)` left unchanged"
      }
      try stage.move(to, to: from)
      return nil
    }
  }

  /// An extended attribute that the step changed.
  struct Attribute: Sendable, Codable, Equatable {
    var path: ContainerPath
    var name: String
    /// Nil when it was or is absent.
    var before, after: [UInt8]?

    /// - Returns: a note when the attribute was changed since.
    fileprivate func revert(on stage: StagedContainer) throws -> String? {
      guard var metadata = try stage.metadata(of: path) else {
        return "`\(path)` does not exist: nothing to revert"
      }
      let now = metadata.attributes.value(of: name)
      if now == before { return nil }
      guard now == after else {
        return "the attribute \(name) of `\(path)` was changed since: left unchanged"
      }
      metadata.attributes.removeAll { $0.name == name }
      if let before {
        metadata.attributes.append(ExtendedAttribute(name: name, value: before))
        metadata.attributes.sort { $0.name < $1.name }
      }
      try stage.setMetadata(metadata, of: path)
      return nil
    }
  }

  /// A row whose value the step exported to a file, or imported from one.
  struct Row: Sendable, Codable, Equatable {
    var id: Int64
    var path: ContainerPath
    /// What the column had before.
    var before: ColumnFiles.Content
    /// SHA-256 of an imported value.
    var digest: SHA256.Digest? = nil
  }

  /// Sorted by key, file after file.
  var settings: [Setting] = []
  var documents: [Document] = []
  /// Settings, paths or databases that the step skipped, or found among what it wrote; its revert skips them, too.
  var skipped: [String] = []
  /// Files and directories that the step created, parents first. A revert removes the directories that are empty.
  var made: [ContainerPath] = []
  /// What the step removed as a whole.
  var removed: [ContainerPath] = []
  /// Which of these the undo entry lacks, since an earlier step of the same transaction had changed them.
  var lost: [ContainerPath] = []
  var written: [Written] = []
  var moved: [Moved] = []
  var attributes: [Attribute] = []
  var rows: [Row] = []
  /// The output of a script, with secrets redacted.
  var output: [String] = []
  /// The vault items that the step changed.
  var items: RecordedItems?
  /// The settings that became vault items, in the order of `items`: values of their types without content.
  var types: [Setting] = []

  /// The recorded values, for an operation that cannot be reverted without them.
  static func required(_ recorded: PriorValues?) throws -> PriorValues {
    guard let recorded else {
      throw StepFailure(
        "the values before the step are unknown, since the transaction's undo entry was removed; add "
          + "`down` steps to the migration")
    }
    return recorded
  }

  /// What was recorded about a setting.
  func setting(_ key: String, in file: ContainerPath) -> Setting? {
    settings.first { $0.file == file && $0.key.isExactly(key) }
  }

  /// Records the settings of a file that differ.
  mutating func note(
    settings file: ContainerPath, before: PropertyListDictionary, after: PropertyListDictionary
  ) {
    settings += before.differingKeys(from: after).map { key in
      Setting(
        file: file, key: key.text, before: before[key].map(StoredValue.init),
        after: after[key].map(StoredValue.init))
    }
  }

  /// Records the extended attributes of a path that differ.
  mutating func note(
    attributes path: ContainerPath, before: [ExtendedAttribute], after: [ExtendedAttribute]
  ) {
    for name in Set((before + after).map(\.name)).sorted() {
      let (old, new) = (before.value(of: name), after.value(of: name))
      if old != new { attributes.append(Attribute(path: path, name: name, before: old, after: new)) }
    }
  }

  /// Records a path that is about to be created, with its missing parents.
  mutating func noteMade(_ path: ContainerPath, on stage: StagedContainer) throws {
    for missing in (path.ancestors + [path]).sorted()
    where try !missing.isRoot && stage.status(of: missing) == nil {
      if !made.contains(missing) { made.append(missing) }
    }
  }

  /// Records a path that is about to be removed. The undo entry keeps it only as it was before the transaction.
  mutating func noteRemoved(_ path: ContainerPath, on stage: StagedContainer) throws {
    removed.append(path)
    if try !stage.isUntouched(path) { lost.append(path) }
  }

  /// Prepares a path for something new: removes what exists there, and records that and the missing parents.
  ///
  /// - Parameter problem: the beginning of the message when the path exists and must not be replaced.
  /// - Returns: false when what exists is kept.
  mutating func makeRoom(
    at path: ContainerPath, on stage: StagedContainer, _ ifExists: IfExists, or problem: String
  ) throws -> Bool {
    try stage.requireChangeable(path)
    let present = try stage.present(at: path)
    if try !present.isEmpty && !ifExists.replaces(or: problem, path: path) { return false }
    for path in present {
      try noteRemoved(path, on: stage)
      try stage.remove(path)
    }
    try noteMade(path.parent, on: stage)
    return true
  }

  /// Writes to a path and records it.
  ///
  /// - Returns: false when something exists there and is kept.
  mutating func write(
    _ path: ContainerPath, on stage: StagedContainer, _ ifExists: IfExists, by body: () throws -> Void
  ) throws -> Bool {
    let replaced = try stage.present(at: path)
    guard try makeRoom(at: path, on: stage, ifExists, or: "`\(path)` exists already") else { return false }
    try body()
    written.append(Written(path: path, digest: try stage.digest(of: path), replaced: replaced))
    return true
  }
}

extension [ExtendedAttribute] {
  fileprivate func value(of name: String) -> [UInt8]? { first { $0.name == name }?.value }
}

/// Reverting what the step changed, where the container still has what it wrote. What was changed since stays and gets a
/// note.
extension PriorValues {
  /// Reverts everything that the step recorded.
  ///
  /// - Returns: notes on what was left unchanged.
  /// - Throws: ``StepFailure`` when no copy of a removed path is kept.
  func revert(on stage: StagedContainer) throws -> [String] {
    var notes = try revertItems(on: stage)
    // A document in a setting is recorded as a setting, too.
    notes += try documents.isEmpty ? revertSettings(on: stage) : revertDocuments(on: stage)
    notes += try attributes.compactMap { try $0.revert(on: stage) }
    for entry in written.reversed() {
      if let note = try entry.problem(on: stage) {
        notes.append(note)
      } else {
        try stage.remove(entry.path)
        notes += try restore(entry.replaced, on: stage)
      }
    }
    for entry in moved.reversed() {
      let note = try entry.revert(on: stage)
      notes += [note].compactMap { $0 }
      // What the move replaced comes back unless something new is in its place.
      if try entry.replaced && stage.status(of: entry.to) == nil {
        notes += try restore([entry.to], on: stage)
      }
    }
    let replaced = written.flatMap(\.replaced) + moved.filter(\.replaced).map(\.to)
    notes += try restore(removed.filter { !replaced.contains($0) }, on: stage)
    try removeEmptyDirectories(on: stage)
    return notes
  }

  /// Restores the settings that the step changed. A file that the step created is removed when it becomes empty.
  func revertSettings(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    for path in Set(settings.map(\.file)).sorted() {
      let original = try stage.defaults(path)
      var file = original ?? SettingsFile(newAt: path.description)
      for setting in settings where setting.file == path {
        let now = file.root[setting.key]
        if now == setting.before?.value { continue }
        if now == setting.after?.value {
          file.root[setting.key] = setting.before?.value
        } else {
          notes.append("`\(stage.redactor.shown(name: setting.key))` was changed since: left unchanged")
        }
      }
      if file.root == original?.root ?? [:] { continue }
      if file.root.isEmpty && made.contains(path) {
        if original != nil { try stage.remove(path) }
      } else {
        try stage.setDefaults(file, at: path)
      }
    }
    return notes
  }

  /// Restores paths that the step removed.
  ///
  /// - Throws: ``StepFailure`` when no copy is kept.
  func restore(_ paths: [ContainerPath], on stage: StagedContainer) throws -> [String] {
    try paths.sorted().compactMap { path in
      if lost.contains(path) {
        throw StepFailure(
          "no copy of `\(path)` is kept, since an earlier step of the same run had changed it: roll the "
            + "whole transaction back", at: path)
      }
      if try stage.status(of: path) != nil { return "`\(path)` exists: left unchanged" }
      guard try stage.kept?.putBack(path, on: stage) == true else {
        throw StepFailure("no copy of `\(path)` is kept: the transaction's undo entry was removed", at: path)
      }
      return nil
    }
  }

  /// Removes the directories that the step created and that are empty.
  func removeEmptyDirectories(on stage: StagedContainer) throws {
    for path in made.reversed() where try stage.status(of: path)?.type == .directory {
      if try stage.children(of: path).isEmpty { try stage.remove(path) }
    }
  }

  /// Reverts each change inside documents separately, so that what the app wrote elsewhere in them stays.
  private func revertDocuments(on stage: StagedContainer) throws -> [String] {
    try documents.reversed().flatMap { document -> [String] in
      let rule = DocumentRevert(changes: document.changes)
      guard let key = document.key else {
        guard try stage.status(of: document.file) != nil else {
          return ["`\(document.file)` does not exist: skipped"]
        }
        if try document.putBackWhole(on: stage) { return [] }
        return try stage.changeDocument(at: document.file, rule).notes
      }
      guard var file = try stage.defaults(document.file), let value = file.root[key] else {
        return ["`\(key)` does not exist: skipped"]
      }
      var notes: [String] = []
      if let setting = setting(key, in: document.file), setting.after?.value == value {
        // Unchanged since: restore the exact value.
        file.root[key] = setting.before?.value
      } else {
        var setting = try SettingDocument(value, key: key)
        notes = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor)).notes
        file.root[key] = try setting.value()
      }
      try stage.setDefaults(file, at: document.file)
      return notes
    }
  }
}

/// Reverts changes inside a document, the last one first.
private struct DocumentRevert: DocumentRule {
  let changes: [DocumentChange]

  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String] {
    try changes.reversed().compactMap { change in try edit.revert(change).map { "\(what): \($0)" } }
  }
}

extension PriorValues {
  /// The values of all steps of one run, as the undo entry stores them.
  struct Run: Codable {
    /// Undo entries of another format are only undone as a whole.
    private static let currentFormat = 5

    private var format = currentFormat
    /// The version before the run.
    let from: Int
    /// By migration, in the order of its steps.
    private var steps: [Int: [PriorValues]] = [:]
    /// The settings that are version markers and that the run added.
    private var markers = PriorValues()

    init(from: Int) { self.from = from }

    /// Decodes the values that an undo entry stores.
    ///
    /// - Throws: `DrydockError` with code `damagedHistory`.
    init(decoding bytes: [UInt8]) throws {
      do {
        self = try JSONDecoder().decode(Self.self, from: Data(bytes))
        guard format == Self.currentFormat else { throw StepFailure("format \(format)") }
      } catch {
        throw DrydockError(
          .damagedHistory,
          "the values for the down steps of a transaction are corrupt, or of another version of Drydock: roll the "
            + "whole transaction back", cause: error)
      }
    }

    func encoded() throws -> [UInt8] {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return [UInt8](try encoder.encode(self))
    }

    mutating func add(_ values: PriorValues, of migration: Int) {
      steps[migration, default: []].append(values)
    }

    /// The values of a migration's steps; nil when the migration was not part of the run.
    func steps(of migration: Int) -> [PriorValues]? { steps[migration] }

    /// The output of all scripts, in the order in which they ran.
    var output: [String] { steps.sorted { $0.key < $1.key }.flatMap { $0.value.flatMap(\.output) } }

    /// Records the version markers that a body adds.
    mutating func noteMarkers(on stage: StagedContainer, _ body: () throws -> [String]) throws -> [String] {
      let isSetting = stage.container.configuration.versionMarkers.contains {
        if case .defaults = $0.place { true } else { false }
      }
      guard isSetting, let path = stage.container.standardDefaults else { return try body() }
      let before = try stage.defaults(path)?.root
      if before == nil { try markers.noteMade(path, on: stage) }
      let notes = try body()
      markers.note(settings: path, before: before ?? [:], after: try stage.defaults(path)?.root ?? [:])
      markers.settings.removeAll { $0.before != nil }
      return notes
    }

    /// Removes the version markers that the run added; the others have the right number already.
    func removeMadeMarkers(on stage: StagedContainer) throws {
      var made = markers
      for (index, setting) in made.settings.enumerated() {
        // The marker has the number of the version that was reverted to.
        made.settings[index].after = try stage.defaults(setting.file)?.root[setting.key].map(StoredValue.init)
      }
      _ = try made.revertSettings(on: stage)
      try made.removeEmptyDirectories(on: stage)
    }
  }
}

/// A value as undo entries store it: a binary property list in base64, which keeps every type exactly.
struct StoredValue: Sendable, Codable, Equatable {
  let value: PropertyListValue

  init(_ value: PropertyListValue) { self.value = value }

  init(from decoder: any Decoder) throws {
    value = try PropertyListValue(stored: decoder.singleValueContainer().decode(String.self))
  }

  func encode(to encoder: any Encoder) throws { try value.stored.encode(to: encoder) }
}
