import ContainerTransaction
import FileSystem
import Formats

/// Settings as a group of properties, for ``MigrationContext/settings(_:)``.
///
/// ```swift
/// struct NotesSettings: SettingGroup {
///   @Setting("theme") var theme = Theme.light
///   @Setting("lastSync") var lastSync: Date?
///   @Setting("window", as: .json) var window = WindowState()
/// }
/// ```
public protocol SettingGroup {
  init()
}

/// A property that is a setting. It reads the stored value; an assigned value is stored at the stage's end.
///
/// An optional property is nil when nothing is stored, and nil removes the setting. A property with a default reads as the
/// default when nothing is stored. Any other setting must be stored.
@propertyWrapper
public struct Setting<Value> {
  private let name: String
  private let suite: String?
  private let read: (MigrationSettings) throws -> Value?
  private let write: (Value, MigrationSettings) throws -> Void
  /// The value when nothing is stored.
  private let absent: Value?
  private let binding = Binding()

  /// Shared by the copies of a property: in the group and in its mirror.
  private final class Binding {
    var settings: MigrationSettings?
    var value: Value?
  }

  /// A setting with a default.
  public init(wrappedValue: Value, _ key: String, suite: String? = nil) where Value: SettingValue {
    self.init(SettingKey(key), suite, absent: wrappedValue)
  }

  /// A required setting.
  public init(_ key: String, suite: String? = nil) where Value: SettingValue {
    self.init(SettingKey(key), suite, absent: nil)
  }

  /// An optional setting.
  public init<Wrapped: SettingValue>(_ key: String, suite: String? = nil) where Value == Wrapped? {
    self.init(optional: SettingKey<Wrapped>(key), suite)
  }

  /// An encoded setting with a default.
  public init(wrappedValue: Value, _ key: String, as form: SettingForm, suite: String? = nil)
  where Value: Codable & Sendable {
    self.init(SettingKey(key, as: form), suite, absent: wrappedValue)
  }

  /// An optional encoded setting.
  public init<Wrapped: Codable & Sendable>(_ key: String, as form: SettingForm, suite: String? = nil)
  where Value == Wrapped? {
    self.init(optional: SettingKey<Wrapped>(key, as: form), suite)
  }

  private init(_ key: SettingKey<Value>, _ suite: String?, absent: Value?) {
    (name, self.suite, self.absent) = (key.name, suite, absent)
    read = { try $0.value(for: key) }
    write = { try $1.set($0, for: key) }
  }

  private init<Wrapped>(optional key: SettingKey<Wrapped>, _ suite: String?) where Value == Wrapped? {
    (name, self.suite, absent) = (key.name, suite, .some(nil))
    read = { try $0.value(for: key) }
    write = { try $1.set($0, for: key) }
  }

  /// The setting. Since accessors cannot throw, an error here ends the stage after its closure.
  public var wrappedValue: Value {
    get {
      attempt { binding.value = try read($0) ?? absent ?? binding.value }
      guard let value = binding.value ?? absent else {
        preconditionFailure("@Setting(\"\(name)\"): make the group by the context's settings(_:)")
      }
      return value
    }
    nonmutating set {
      if binding.settings == nil { return binding.value = newValue }
      attempt { try write(newValue, $0) }
    }
  }

  /// The setting itself, as `$theme`.
  public var projectedValue: Setting { self }

  /// Whether something is stored.
  public var isStored: Bool { attempt { try $0.keys.containsExactly(name) } ?? false }

  /// Removes the setting.
  public func remove() { attempt { try $0.remove(name) } }

  /// Does something with the settings that the property is in, if they are known; keeps the error for the stage's end.
  @discardableResult
  private func attempt<Result>(_ body: (MigrationSettings) throws -> Result) -> Result? {
    guard let settings = binding.settings else { return nil }
    do {
      return try body(settings)
    } catch {
      settings.drafts.fail(error)
      return nil
    }
  }
}

/// A property that is found in a group's mirror.
protocol BindableSetting {
  func bind(to drafts: SettingsDrafts) throws
}

extension Setting: BindableSetting {
  /// Reads the setting for the first time, while an error can be thrown.
  func bind(to drafts: SettingsDrafts) throws {
    let settings = MigrationSettings(drafts: drafts, suite: suite)
    guard let value = try read(settings) ?? absent else {
      throw StepFailure("the setting `\(name)` does not exist, and its property has no default")
    }
    binding.value = value
    binding.settings = settings
  }
}

/// One settings file of a staged container. Changes are visible to later reads, and written to the file once, at the
/// stage's end.
public struct MigrationSettings {
  let drafts: SettingsDrafts
  /// The name under `defaults:` of `drydock.yaml`; nil for the app's own settings.
  let suite: String?

  /// The names of all settings, sorted.
  public var keys: [String] {
    get throws { try drafts.values(suite).keys.sorted().map(\.text) }
  }

  /// A setting; nil when it is absent.
  ///
  /// - Throws: when it does not have the key's type.
  public func value<Value>(for key: SettingKey<Value>) throws -> Value? {
    guard let stored = try drafts.values(suite)[key.name] else { return nil }
    if let value = key.decode(stored) { return value }
    let shown = drafts.stage.knowingRedactor(showing: [stored]).typed(stored, of: key.name)
    throw StepFailure("the setting `\(key.name)` is \(shown), not of type \(Value.self)")
  }

  /// Writes a setting; nil removes it.
  ///
  /// - Throws: when the value cannot be encoded.
  public func set<Value>(_ value: Value?, for key: SettingKey<Value>) throws {
    do {
      try drafts.set(try value.map(key.encode), of: key.name, suite)
    } catch let error as EncodingError {
      throw StepFailure("the setting `\(key.name)` cannot be written: \(error.reason)")
    }
  }

  /// Removes a setting.
  public func remove<Value>(_ key: SettingKey<Value>) throws { try remove(key.name) }

  /// Removes a setting, whatever its type.
  public func remove(_ name: String) throws { try drafts.set(nil, of: name, suite) }
}

extension EncodingError {
  /// The reason without the value.
  fileprivate var reason: String {
    if case .invalidValue(_, let context) = self { context.debugDescription } else { "it does not encode" }
  }
}

/// The settings files that a stage uses: each is read once, and written once when the stage ends.
final class SettingsDrafts {
  let stage: StagedContainer
  private(set) var notes: [String] = []
  /// The previous values of removed and changed settings.
  private(set) var replaced: [(file: ContainerPath, key: String, value: PropertyListValue)] = []
  private let position: YAMLPosition
  private var edits: [ContainerPath: DefaultsEdit] = [:]
  /// The first error that a property could not throw.
  private var failure: (any Error)?

  init(_ stage: StagedContainer, _ position: YAMLPosition) {
    self.stage = stage
    self.position = position
  }

  func values(_ suite: String?) throws -> PropertyListDictionary { try edit(suite).values }

  func set(_ value: PropertyListValue?, of key: String, _ suite: String?) throws {
    var edit = try edit(suite)
    edit.values[key] = value
    edits[try target(suite).path(in: stage)] = edit
  }

  private func edit(_ suite: String?) throws -> DefaultsEdit {
    let target = target(suite)
    let path = try target.path(in: stage)
    if let edit = edits[path] { return edit }
    let edit = try DefaultsEdit(target, stage)
    edits[path] = edit
    return edit
  }

  private func target(_ suite: String?) -> DefaultsTarget {
    DefaultsTarget(suite: suite, at: position)
  }

  /// Whether a path is one of the files, or contains one.
  func touch(_ path: ContainerPath) -> Bool { edits.keys.contains { $0 == path || $0.isInside(path) } }

  /// Keeps a failure until the stage ends: the first one counts.
  func fail(_ error: any Error) { failure = failure ?? error }

  /// Writes the changed files, and drops all of them.
  func save() throws {
    if let failure { throw failure }
    for (path, edit) in edits.sorted(by: { $0.key < $1.key }) {
      let before = try stage.defaults(path)?.root ?? [:]
      for (key, value) in before where edit.values[key] != value { replaced.append((path, key, value)) }
      // A closure is reverted by its own `down`.
      notes += try edit.save(to: stage)
    }
    edits = [:]
  }
}
