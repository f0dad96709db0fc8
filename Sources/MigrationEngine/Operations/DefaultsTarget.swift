import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// Which settings file a step or a check is about: the app's own, a suite of `drydock.yaml` (a file named there, or a
/// group), or any file.
struct DefaultsTarget: Sendable {
  static let keys = ["suite", "file"]

  private enum Kind: Sendable {
    case standard
    case suite(String, YAMLPosition)
    case file(ContainerPath)
  }

  private let kind: Kind

  init(reading reader: YAMLReader) throws {
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
  init(_ node: YAMLNode?, _ what: String) throws {
    if let node {
      try self.init(reading: YAMLReader(node, what: what, keys: Self.keys))
    } else {
      self.init(kind: .standard)
    }
  }

  private init(kind: Kind) { self.kind = kind }

  /// Where the file is in this container.
  func path(in container: Container) throws -> ContainerPath {
    switch kind {
    case .file(let path): return path
    case .suite(let name, let position):
      if let path = container.configuration.defaults[name] { return path }
      // An app group's settings are in the group itself.
      if let path = container.groupDefaults(name) { return path }
      let known = Set(container.configuration.defaults.keys).union(container.configuration.groups.keys)
      throw position.error(
        "drydock.yaml has no settings file `\(name)` under `defaults:`, and no group of that id; "
          + NearestWord.hint(for: name, among: Array(known)))
    case .standard:
      if let path = container.standardDefaults { return path }
      throw StepFailure(
        message: "no settings file is known here: name it in drydock.yaml (`defaults: {standard: PATH}`)")
    }
  }

  /// What the app registers as the defaults of these settings; nothing is known of a file without a suite's name.
  func registered(in container: Container) -> PropertyListDictionary {
    switch kind {
    case .file: [:]
    case .suite(let name, _): container.configuration.registeredDefaults[name]
    case .standard: container.configuration.registeredDefaults["standard"]
    }
  }

  /// The settings; nil when there is no file.
  func read(_ stage: StagedContainer) throws -> PropertyListFile? {
    try stage.defaults(try path(in: stage.container))
  }
}

/// The settings that one step changes: read once, written once, and only when something changed.
struct DefaultsEdit {
  /// The file's settings now.
  var values: PropertyListDictionary
  /// Remarks so far.
  var notes: [String] = []
  private let path: ContainerPath
  private let registered: PropertyListDictionary
  private let original: PropertyListFile?
  private let redactor: Redactor

  init(_ target: DefaultsTarget, _ stage: StagedContainer) throws {
    path = try target.path(in: stage.container)
    registered = target.registered(in: stage.container)
    original = try stage.defaults(path)
    redactor = stage.redactor
    values = original?.root ?? [:]
  }

  /// A setting's name in a message: one that no migration names may be anything, a token too.
  func shown(_ key: String) -> String { "`\(redactor.shown(name: key))`" }

  /// The value of a key; when it is absent the step fails, or leaves a remark.
  mutating func source(_ key: String, _ ifMissing: IfMissing) throws -> PropertyListValue? {
    if let value = values[key] { return value }
    let where_ = original == nil ? " (there is no settings file)" : ""
    if ifMissing == .fail {
      throw StepFailure(message: "the setting \(shown(key)) is not there\(where_)", path: path.description)
    }
    notes.append("\(shown(key)) is not there\(where_): skipped")
    return nil
  }

  /// The value that a reader of a key sees: where none is stored, the one that the app registers.
  mutating func seen(_ key: String, _ ifMissing: IfMissing) throws -> PropertyListValue? {
    guard values[key] == nil, let value = registered[key] else { return try source(key, ifMissing) }
    notes.append("\(shown(key)) is not stored: its registered default is taken")
    return value
  }

  /// Whether a key may be written; when it is there the step fails, or leaves a remark.
  mutating func mayWrite(_ key: String, _ ifExists: IfExists) throws -> Bool {
    guard values[key] != nil else { return true }
    switch ifExists {
    case .replace: return true
    case .keep:
      notes.append("\(shown(key)) is there already: kept")
      return false
    case .fail:
      throw StepFailure(
        message: "the setting \(shown(key)) is there already: say `if-exists: keep` or `if-exists: replace`",
        path: path.description)
    }
  }

  /// Writes the file when something changed; a missing one is made in the binary format.
  mutating func save(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var file = original ?? PropertyListFile()
    let keys = file.root.differingKeys(from: values)
    guard !keys.isEmpty else { return notes }
    for key in keys {
      guard let value = values[key], file.rounds(value) else { continue }
      notes.append("\(shown(key.text)): the file is XML, which keeps whole seconds only")
    }
    if original == nil { try memory.noteMade(path, on: stage) }
    let before = PropertyListDictionary(keys.compactMap { key in file.root[key].map { (key.text, $0) } })
    file.root = values
    try stage.setDefaults(file, at: path)
    // As it is read back: XML drops fractions of a second.
    let written = PropertyListDictionary(keys.compactMap { key in values[key].map { (key.text, $0) } })
    let after = try PropertyListFile(bytes: PropertyListFile(format: file.format, root: written).encoded())
    memory.note(settings: path, before: before, after: after.root)
    return notes
  }
}
