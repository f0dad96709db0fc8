import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// The values that one step of a migration needs when it is reverted later. They are stored in the transaction's undo
/// entry and removed with it. Secrets that a vault holds are only in `items`, sealed.
struct DownValues: Sendable, Codable, Equatable {
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
  }

  /// A path that the step moved.
  struct Moved: Sendable, Codable, Equatable {
    var from, to: ContainerPath
  }

  /// A path that the step wrote.
  struct Written: Sendable, Codable, Equatable {
    var path: ContainerPath
    /// SHA-256 of the content in hexadecimal digits; of a directory with everything in it.
    var digest: String
    /// Whether it replaced something.
    var replaced: Bool
  }

  /// An extended attribute that the step changed.
  struct Attribute: Sendable, Codable, Equatable {
    var path: ContainerPath
    var name: String
    /// Nil when it was or is absent.
    var before, after: [UInt8]?
  }

  /// A file that the step converted to another one.
  struct Converted: Sendable, Codable, Equatable {
    var from, to: ContainerPath
    /// SHA-256 of the new file in hexadecimal digits.
    var digest: String
  }

  /// Sorted by key, file after file.
  var settings: [Setting] = []
  var documents: [Document] = []
  /// Settings, paths or databases that the step skipped; its revert skips them, too.
  var skipped: [String] = []
  /// Files and directories that the step created, parents first. A revert removes the directories that are empty.
  var made: [ContainerPath] = []
  /// What the step removed as a whole; the undo entry keeps it.
  var removed: [ContainerPath] = []
  var written: [Written] = []
  var attributes: [Attribute] = []
  /// The output of a script, with secrets redacted.
  var output: [String] = []
  /// What the step removed after an earlier step of the same transaction had changed it: no copy is kept.
  var lost: [ContainerPath] = []
  /// The vault items that the step changed.
  var items: SealedItems?
  /// The types of settings that became vault items, in the order of `items`.
  var types: [SettingType] = []
  var converted: [Converted] = []
  /// What a pattern matched and moved; nil in entries of steps without a pattern.
  var moved: [Moved]?

  /// The recorded values, for an operation that cannot be reverted without them.
  static func required(_ recorded: DownValues?) throws -> DownValues {
    guard let recorded else {
      throw StepFailure(
        message:
          "the values before the step are unknown, since the transaction's undo entry was removed; add "
          + "`down` steps to the migration")
    }
    return recorded
  }
}

// MARK: Recording

extension DownValues {
  /// What was recorded about a setting.
  func setting(_ key: String, in file: ContainerPath) -> Setting? {
    settings.first { $0.file == file && $0.key.isExactly(key) }
  }

  /// Records the settings of a file that differ.
  mutating func note(
    settings file: ContainerPath, before: PropertyListDictionary, after: PropertyListDictionary
  ) {
    for key in before.differingKeys(from: after) {
      settings.append(
        Setting(
          file: file, key: key.text, before: before[key].map(StoredValue.init),
          after: after[key].map(StoredValue.init)))
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
    if try stage.isUntouched(path) { removed.append(path) } else { lost.append(path) }
  }

  /// Writes to a path and records it.
  ///
  /// - Throws: ``StepFailure`` when the path exists and must not be replaced, or is part of the history.
  mutating func write(
    _ path: ContainerPath, on stage: StagedContainer, _ ifExists: IfExists, by body: () throws -> Void
  ) throws {
    try stage.requireNotHistory(path)
    try noteMade(path.parent, on: stage)
    let replaced = try stage.status(of: path) != nil
    if replaced {
      guard ifExists == .replace else {
        throw StepFailure(
          message: "`\(path)` exists already: say `if-exists: keep` or `if-exists: replace`",
          path: path.description)
      }
      try stage.requireNoHistory(in: path)
      try noteRemoved(path, on: stage)
      try stage.remove(path)
    }
    try body()
    written.append(Written(path: path, digest: try stage.digest(of: path).hex, replaced: replaced))
  }
}

extension [ExtendedAttribute] {
  func value(of name: String) -> [UInt8]? { first { $0.name == name }?.value }
}

// MARK: Storing

extension DownValues {
  /// The values of all steps of one run, as the undo entry stores them.
  struct Run: Codable {
    /// The version before the run.
    let from: Int
    /// By migration, in the order of its steps.
    private var steps: [Int: [DownValues]] = [:]
    /// The settings that are version markers.
    private var markers = DownValues()

    init(from: Int) { self.from = from }

    /// Decodes the values that an undo entry stores.
    ///
    /// - Throws: `DrydockError` with code `damagedHistory`.
    init(decoding bytes: [UInt8]) throws {
      do {
        self = try JSONDecoder().decode(Self.self, from: Data(bytes))
      } catch {
        throw DrydockError(
          .damagedHistory,
          "the values for the down steps of a transaction are corrupt: roll the whole transaction back",
          cause: error)
      }
    }

    func encoded() throws -> [UInt8] {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return [UInt8](try encoder.encode(self))
    }

    mutating func add(_ values: DownValues, of migration: Int) {
      steps[migration, default: []].append(values)
    }

    /// The values of a migration's steps; nil when the migration was not part of the run.
    func steps(of migration: Int) -> [DownValues]? { steps[migration] }

    /// The output of all scripts, in the order in which they ran.
    var output: [String] { steps.sorted { $0.key < $1.key }.flatMap { $0.value.flatMap(\.output) } }

    /// Records the version markers that a body adds.
    mutating func noteMarkers(on stage: StagedContainer, _ body: () throws -> [String]) throws -> [String] {
      guard let path = stage.container.standardDefaults else { return try body() }
      let before = try stage.defaults(path)?.root
      if before == nil { try markers.noteMade(path, on: stage) }
      let notes = try body()
      markers.note(settings: path, before: before ?? [:], after: try stage.defaults(path)?.root ?? [:])
      return notes
    }

    /// Removes the version markers that the run added; the others have the right number already.
    func removeMadeMarkers(on stage: StagedContainer) throws {
      var made = markers
      for index in made.settings.indices.reversed() {
        if made.settings[index].before != nil {
          made.settings.remove(at: index)
        } else {
          // The marker has the number of the version that was reverted to.
          let setting = made.settings[index]
          made.settings[index].after = try stage.defaults(setting.file)?.root[setting.key].map(
            StoredValue.init)
        }
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
    let container = try decoder.singleValueContainer()
    let bytes = [UInt8](try container.decode(Data.self))
    guard let value = try PropertyListFile(bytes: bytes).root["value"] else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no value")
    }
    self.value = value
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Data(try PropertyListFile(root: ["value": value]).encoded()))
  }
}
