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
  static let argument = Argument([:], common: keys) { reader, _ in try Self(reading: reader) }

  /// What to do with a file that cannot be read.
  private enum IfDamaged: String, CaseIterable, Sendable { case fail, reset }

  private let place: SettingsPlace
  /// Where the suite or the file is named, for messages.
  private let position: YAMLPosition?
  private var ifDamaged = IfDamaged.fail

  init(reading reader: YAMLReader) throws {
    ifDamaged = try reader.choice("if-damaged") ?? .fail
    if let file = reader["file"] {
      if reader["suite"] != nil { throw file.position.error("name either `suite` or `file`, not both") }
      (place, position) = (.file(try file.containerPath("`file`")), file.position)
    } else if let suite = reader["suite"] {
      (place, position) = (.suite(try suite.text("`suite`")), suite.position)
    } else {
      (place, position) = (.standard, nil)
    }
  }

  /// The app's own settings, or the file that a mapping `{suite}` or `{file}` names.
  init(_ node: YAMLNode?, _ what: String, at position: YAMLPosition) throws {
    try self.init(
      reading: YAMLReader(node ?? YAMLNode(.dictionary([:]), at: position), what: what, keys: Self.keys))
  }

  /// A suite; the app's own settings when nil.
  init(suite: String?, at position: YAMLPosition) {
    place = suite.map { .suite($0) } ?? .standard
    self.position = suite.map { _ in position }
  }

  func path(in stage: StagedContainer) throws -> ContainerPath {
    do {
      return try place.path(in: stage.container, exists: stage.defaultsExist)
    } catch let error as DrydockError where [.missing, .ambiguous, .unsupported].contains(error.code) {
      guard let position else { throw StepFailure(error.description) }
      throw position.error(error.message).at(error.path)
    }
  }

  /// The defaults that the app registers for these settings; unknown for a file that is not a suite.
  func registered(in container: Container) -> PropertyListDictionary {
    switch place {
    case .file: [:]
    case .suite(let name): container.configuration.registeredDefaults[name]
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
    let why = original == nil ? " (no settings file)" : ""
    let what = "\(shown(key)) does not exist\(why)"
    notes.append(try ifMissing.skipped(what, or: "the setting \(what)", path: path))
    return nil
  }

  /// - Throws: ``StepFailure`` when another name or file would lose a part of a setting.
  func requireTransferable(_ key: String) throws {
    guard let problem = original?.problemOfTransfer(key) else { return }
    throw StepFailure("the setting \(shown(key)) \(problem)", at: path)
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
    var unused = PriorValues()
    return try save(to: stage, &unused)
  }

  /// Writes the file when something changed; a missing one is created in the format of its path, which is binary in
  /// Apple's layouts. Each value takes a type that the format has.
  func save(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var file = original ?? SettingsFile(newAt: path.description)
    if isKeyValueStore {
      let store = KeyValueStore(file.root)
      if store.values == values { return notes }
      try store.requireWritable(values, path.description)
    }
    let before = file.root
    let notes = try notes + file.adopt(values, redactor) { StepFailure($0, at: path) }
    let keys = before.differingKeys(from: file.root)
    guard !keys.isEmpty else { return notes }
    if original == nil { try recorded.noteMade(path, on: stage) }
    try stage.setDefaults(file, at: path)
    func changed(_ settings: PropertyListDictionary) -> PropertyListDictionary {
      PropertyListDictionary(keys.compactMap { key in settings[key].map { (key.text, $0) } })
    }
    // Record the values as they are read back: XML drops fractions of a second.
    let written = try file.containing(only: changed(file.root)).encoded()
    let after = try SettingsFile(bytes: written, path: path.description)
    recorded.note(settings: path, before: changed(before), after: after.root)
    return notes
  }
}

extension SettingsFile {
  /// Takes other settings, each in a type that the format has.
  ///
  /// - Parameter failure: the error about a setting that the format cannot represent.
  /// - Returns: notes on what may not be intended.
  package mutating func adopt(
    _ settings: PropertyListDictionary, _ redactor: Redactor, failure: (String) -> any Error
  ) throws -> [String] {
    func shown(_ key: String) -> String { "`\(redactor.shown(name: key))`" }
    var (adopted, notes): (PropertyListDictionary, [String]) = (settings, [])
    for key in root.differingKeys(from: settings) {
      guard let value = settings[key] else { continue }
      do {
        let fitting = try format.fitting(value, replacing: root[key])
        notes += self.notes(on: value, as: fitting, for: key.text).map { "\(shown(key.text)): \($0)" }
        adopted[key] = fitting
      } catch let error as UnfitSetting {
        throw failure("the setting \(shown(key.text)) \(error.problem)")
      }
    }
    root = adopted
    if let loss { throw failure("the setting \(shown(loss.key)) \(loss.problem)") }
    return notes
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
  var nounPhrase: String { typeName.withArticle }
}

extension String {
  /// The name of a type with its article: `an integer`.
  var withArticle: String { (["integer", "int", "array"].contains(self) ? "an " : "a ") + self }
}

/// The defaults that an app registers for its settings: the values of settings that are not stored.
package struct RegisteredDefaults: Sendable, Equatable {
  private var suites: [String: PropertyListDictionary] = [:]

  package init() {}

  /// The settings by suite; `standard` is the app's.
  package init(_ suites: [String: PropertyListDictionary]) { self.suites = suites }

  package subscript(_ suite: String) -> PropertyListDictionary { suites[suite] ?? [:] }

  /// Reads a file for the app's settings, or a file for each suite, by its path.
  init(_ node: YAMLNode, _ resolve: (String) -> String) throws {
    guard let files = node.mapping else {
      suites["standard"] = try Self.read(node, resolve)
      return
    }
    for pair in files.pairs { suites[pair.key.source] = try Self.read(pair.value, resolve) }
  }

  /// Reads a property list or a YAML mapping.
  private static func read(
    _ node: YAMLNode, _ resolve: (String) -> String
  ) throws -> PropertyListDictionary {
    let text = try node.text("a file of `registered-defaults`")
    let path = resolve(text)
    do {
      let (directory, name) = try ContainerPath.split(path)
      let bytes = try Directory(directory).contents(name, limit: 1 << 20)
      if PropertyListDocument.isBegun(by: bytes) { return try PropertyListFile(bytes: bytes).root }
      return try YAMLDocument(bytes, file: path).root?.pairs("a file of registered defaults")
        .propertyListValues()
        ?? [:]
    } catch let error as DrydockError {
      // Errors of a YAML file already have a place.
      throw error.message.hasPrefix(path)
        ? error : node.position.error("`\(text)`: \(error.message)", cause: error)
    }
  }
}

extension ContainerConfiguration {
  package var registeredDefaults: RegisteredDefaults {
    get { self[value: "registered-defaults", default: RegisteredDefaults()] }
    set { self[value: "registered-defaults", default: RegisteredDefaults()] = newValue }
  }
}

extension ConfigurationSection {
  package static let registeredDefaults = ConfigurationSection("registered-defaults") {
    node, configuration, resolve in
    if !node.isNull { configuration.registeredDefaults = try RegisteredDefaults(node, resolve) }
  }
}
