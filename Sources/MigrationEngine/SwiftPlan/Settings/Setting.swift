import AppContainer

/// Settings as a group of properties, for ``MigrationContext/settings(_:)``.
///
/// ```swift
/// struct NotesSettings: SettingGroup {
///   @Setting("theme") var theme = Theme.light
///   @Setting("lastSync") var lastSync: Date?
///   @Setting("window", as: .json) var window = WindowState()
/// }
/// ```
package protocol SettingGroup {
  /// A group of which nothing is read yet.
  init()
}

/// A property that is a setting. It reads what is stored, and what is assigned to it is stored at the stage's end.
///
/// An optional one is nil where nothing is stored, and nil removes the setting. One with a default reads as that where
/// nothing is stored, and stores nothing by being read. One without either has to be stored.
@propertyWrapper
package struct Setting<Value> {
  private let name: String
  private let suite: String?
  private let read: (MigrationSettings) throws -> Value?
  private let write: (Value, MigrationSettings) throws -> Void
  /// What it is where nothing is stored.
  private let absent: Value?
  private let binding = Binding()

  /// Shared by the copies of a property, as a group's own and the one that its mirror shows.
  private final class Binding {
    var settings: MigrationSettings?
    var value: Value?
  }

  /// A setting with a default.
  package init(wrappedValue: Value, _ key: String, suite: String? = nil) where Value: SettingValue {
    self.init(SettingKey(key), suite, absent: wrappedValue)
  }

  /// A setting that has to be there.
  package init(_ key: String, suite: String? = nil) where Value: SettingValue {
    self.init(SettingKey(key), suite, absent: nil)
  }

  /// A setting that may be absent.
  package init<Wrapped: SettingValue>(_ key: String, suite: String? = nil) where Value == Wrapped? {
    self.init(optional: SettingKey<Wrapped>(key), suite)
  }

  /// An encoded setting with a default.
  package init(wrappedValue: Value, _ key: String, as form: SettingForm, suite: String? = nil)
  where Value: Codable & Sendable {
    self.init(SettingKey(key, as: form), suite, absent: wrappedValue)
  }

  /// An encoded setting that may be absent.
  package init<Wrapped: Codable & Sendable>(_ key: String, as form: SettingForm, suite: String? = nil)
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

  /// The setting. What goes wrong here, where nothing can be thrown, ends the stage with an error after its closure.
  package var wrappedValue: Value {
    get {
      if let settings = binding.settings {
        do {
          binding.value = try read(settings) ?? absent ?? binding.value
        } catch {
          settings.drafts.fail(error)
        }
      }
      guard let value = binding.value ?? absent else {
        preconditionFailure("@Setting(\"\(name)\"): make the group by the context's settings(_:)")
      }
      return value
    }
    nonmutating set {
      guard let settings = binding.settings else { return binding.value = newValue }
      do {
        try write(newValue, settings)
      } catch {
        settings.drafts.fail(error)
      }
    }
  }

  /// The setting itself, as `$theme`.
  package var projectedValue: Setting { self }

  /// Whether something is stored.
  package var isStored: Bool {
    guard let settings = binding.settings else { return false }
    do {
      return try settings.keys.containsExactly(name)
    } catch {
      settings.drafts.fail(error)
      return false
    }
  }

  /// Removes what is stored.
  package func remove() {
    do {
      try binding.settings?.remove(name)
    } catch {
      binding.settings?.drafts.fail(error)
    }
  }
}

/// What a group's mirror finds.
protocol BindableSetting {
  func bind(to drafts: SettingsDrafts) throws
}

extension Setting: BindableSetting {
  /// Reads the setting for the first time, while an error can be thrown.
  func bind(to drafts: SettingsDrafts) throws {
    let settings = MigrationSettings(drafts: drafts, suite: suite)
    guard let value = try read(settings) ?? absent else {
      throw StepFailure(message: "the setting `\(name)` is not there, and its property has no default")
    }
    binding.value = value
    binding.settings = settings
  }
}
