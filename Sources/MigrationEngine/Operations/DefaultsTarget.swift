import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// The settings file of a step or a check: the app's own, a suite of `drydock.yaml` (a file named there, or a group), or
/// any file.
struct DefaultsTarget: Sendable {
  static let keys = ["suite", "file", "if-damaged"]

  private enum Kind: Sendable {
    case standard
    case suite(String, YAMLPosition)
    case file(ContainerPath)
  }

  /// What to do with a file that cannot be read.
  private enum IfDamaged: String, CaseIterable, Sendable { case fail, reset }

  private let kind: Kind
  private var ifDamaged = IfDamaged.fail

  init(reading reader: YAMLReader) throws {
    ifDamaged = try reader.choice("if-damaged") ?? .fail
    if let file = reader["file"] {
      if reader["suite"] != nil { throw file.position.error("name either `suite` or `file`, not both") }
      kind = .file(try file.containerPath("`file`"))
    } else if let suite = reader["suite"] {
      kind = .suite(try suite.text("`suite`"), suite.position)
    } else {
      kind = .standard
    }
  }

  /// The app's own settings, or the file that a mapping `{suite}` or `{file}` names.
  init(_ node: YAMLNode?, _ what: String, at position: YAMLPosition) throws {
    if let node {
      try self.init(reading: YAMLReader(node, what: what, keys: Self.keys))
    } else {
      self.init(suite: nil, at: position)
    }
  }

  /// A suite; the app's own settings when nil.
  init(suite: String?, at position: YAMLPosition) {
    kind = suite.map { .suite($0, position) } ?? .standard
  }

  func path(in stage: StagedContainer) throws -> ContainerPath {
    let container = stage.container
    switch kind {
    case .file(let path): return path
    case .suite(let name, let position):
      do {
        return try SettingsPlace.suite(name).path(in: container, exists: stage.defaultsExist)
      } catch let error as DrydockError where [.missing, .ambiguous].contains(error.code) {
        throw position.error(error.message)
      }
    case .standard:
      if let path = container.standardDefaults { return path }
      throw StepFailure(
        message: "the settings file is unknown: name it in drydock.yaml (`defaults: {standard: PATH}`)")
    }
  }

  /// The defaults that the app registers for these settings; unknown for a file that is not a suite.
  func registered(in container: Container) -> PropertyListDictionary {
    switch kind {
    case .file: [:]
    case .suite(let name, _): container.configuration.registeredDefaults[name]
    case .standard: container.configuration.registeredDefaults["standard"]
    }
  }

  func read(_ stage: StagedContainer) throws -> SettingsFile? {
    var notes: [String] = []
    return try read(stage, &notes)
  }

  /// - Parameter notes: gets the reason if a damaged file counts as none.
  func read(_ stage: StagedContainer, _ notes: inout [String]) throws -> SettingsFile? {
    do {
      return try stage.defaults(path(in: stage))
    } catch let error as DrydockError where error.code == .malformed && ifDamaged == .reset {
      notes.append("\(error.message): it counts as having no settings")
      return nil
    }
  }
}

/// The settings that one step changes: read once, written once, and only when something changed.
struct DefaultsEdit {
  var values: PropertyListDictionary
  var notes: [String] = []
  private let path: ContainerPath
  private let registered: PropertyListDictionary
  private let original: SettingsFile?
  private let isKeyValueStore: Bool
  private let redactor: Redactor

  init(_ target: DefaultsTarget, _ stage: StagedContainer) throws {
    path = try target.path(in: stage)
    registered = target.registered(in: stage.container)
    original = try target.read(stage, &notes)
    redactor = stage.redactor
    isKeyValueStore = stage.container.isKeyValueStore(path)
    values = original?.root ?? [:]
    if isKeyValueStore { values = KeyValueStore(values).values }
  }

  /// A setting's name in a message: a name that no migration mentions may contain a secret.
  func shown(_ key: String) -> String { "`\(redactor.shown(name: key))`" }

  /// The value of a key; when it is absent the step fails or adds a note.
  mutating func source(_ key: String, _ ifMissing: IfMissing) throws -> PropertyListValue? {
    if let value = values[key] { return value }
    let why = original == nil ? " (there is no settings file)" : ""
    let what = "\(shown(key)) does not exist\(why)"
    notes.append(try ifMissing.skipped(what, or: "the setting \(what)", path: path))
    return nil
  }

  /// - Throws: ``StepFailure`` when another name or file would lose a part of a setting.
  func requireTransferable(_ key: String) throws {
    guard let problem = original?.problemOfTransfer(key) else { return }
    throw StepFailure(message: "the setting \(shown(key)) \(problem)", path: path.description)
  }

  /// The value that the app reads: the stored one, otherwise the registered default.
  mutating func seen(_ key: String, _ ifMissing: IfMissing) throws -> PropertyListValue? {
    guard values[key] == nil, let value = registered[key] else { return try source(key, ifMissing) }
    notes.append("\(shown(key)) is not stored: its registered default is used")
    return value
  }

  /// The same without a failure or a note about an absent one.
  mutating func seenOrNil(_ key: String) throws -> PropertyListValue? {
    values[key] == nil && registered[key] == nil ? nil : try seen(key, .skip)
  }

  /// The settings that start with a prefix, sorted; when there are none the step fails or adds a note.
  mutating func keys(withPrefix prefix: String, _ ifMissing: IfMissing) throws -> [String] {
    let found = values.keys.map(\.text).filter { $0.utf8.starts(with: prefix.utf8) }.sorted()
    if found.isEmpty { notes.append(try ifMissing.skipped("no setting starts with `\(prefix)`")) }
    return found
  }

  /// Whether a key may be written; when it exists the step fails or adds a note.
  mutating func mayWrite(_ key: String, _ ifExists: IfExists) throws -> Bool {
    let what = "\(shown(key)) exists already"
    if try values[key] == nil || ifExists.replaces(or: "the setting \(what)", path: path) { return true }
    notes.append("\(what): kept")
    return false
  }

  /// Writes the file without recording the changes: a revert is not reverted by steps.
  func save(to stage: StagedContainer) throws -> [String] {
    var copy = self
    var unused = PriorValues()
    return try copy.save(to: stage, &unused)
  }

  /// Writes the file when something changed; a missing one is created in the format of its path, which is binary in
  /// Apple's layouts. Each value takes a type that the format has.
  mutating func save(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var file = original ?? SettingsFile(newAt: path.description)
    if isKeyValueStore {
      let store = KeyValueStore(file.root)
      if store.values == values { return notes }
      try store.requireWritable(values, path.description)
    }
    for key in file.root.differingKeys(from: values) {
      guard let value = values[key] else { continue }
      let fitting = try fitting(value, key.text, file)
      notes += file.notes(on: value, as: fitting, for: key.text).map { "\(shown(key.text)): \($0)" }
      values[key] = fitting
    }
    let keys = file.root.differingKeys(from: values)
    guard !keys.isEmpty else { return notes }
    if original == nil { try recorded.noteMade(path, on: stage) }
    let before = PropertyListDictionary(keys.compactMap { key in file.root[key].map { (key.text, $0) } })
    file.root = values
    if let loss = file.loss {
      throw StepFailure(message: "the setting \(shown(loss.key)) \(loss.problem)", path: path.description)
    }
    try stage.setDefaults(file, at: path)
    // Record the values as they are read back: XML drops fractions of a second.
    let written = PropertyListDictionary(keys.compactMap { key in values[key].map { (key.text, $0) } })
    let after = try SettingsFile(bytes: file.containing(only: written).encoded(), path: path.description)
    recorded.note(settings: path, before: before, after: after.root)
    return notes
  }

  private func fitting(
    _ value: PropertyListValue, _ key: String, _ file: SettingsFile
  ) throws -> PropertyListValue {
    do {
      return try file.format.fitting(value, replacing: file.root[key])
    } catch let error as UnfitSetting {
      throw StepFailure(message: "the setting \(shown(key)) \(error.problem)", path: path.description)
    }
  }
}

extension Redactor {
  /// A setting in a message, with its type: Bools, numbers and short text by value, the rest by type; secrets by length.
  func typed(_ value: PropertyListValue, of key: String) -> String {
    switch value {
    case .array, .set, .dictionary: value.nounPhrase
    // A migration may have renamed it: what could be a token is hidden under any name.
    case _
    where SecretPattern.isSecret(value, key: key) || SecretPattern.isSecret(value, named: .suspicious)
      || isHidden(value, named: .plain):
      "\(value.nounPhrase) \(shown(value, key: key))"
    case .boolean(let bool): "the Bool \(bool)"
    case .integer, .unsigned: "the integer \(value)"
    case .int, .long: "the \(value.typeName) \(value)"
    case .real, .single: "the real \(value)"
    case .string(let text) where text.count <= 40: "the text `\(text)`"
    case .string: "a long text"
    default: value.nounPhrase
    }
  }
}

extension PropertyListValue {
  var nounPhrase: String { (["integer", "int", "array"].contains(typeName) ? "an " : "a ") + typeName }
}
