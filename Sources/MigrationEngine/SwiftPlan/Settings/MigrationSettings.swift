import AppContainer

/// One settings file as a stage changes it. What is written is seen by whoever reads later, and reaches the file once,
/// at the stage's end.
package struct MigrationSettings {
  let drafts: SettingsDrafts
  /// The name under `defaults:` of `drydock.yaml`; nil for the app's own settings.
  let suite: String?

  /// The names of all settings, sorted.
  package var keys: [String] {
    get throws { try drafts.values(suite).keys.sorted().map(\.text) }
  }

  /// A setting; nil when it is absent.
  ///
  /// - Throws: when it is none of the key's type.
  package func value<Value>(for key: SettingKey<Value>) throws -> Value? {
    guard let stored = try drafts.values(suite)[key.name] else { return nil }
    if let value = key.decode(stored) { return value }
    let shown = drafts.stage.redactor.typed(stored, of: key.name)
    throw StepFailure(message: "the setting `\(key.name)` is \(shown), which is no \(Value.self)")
  }

  /// Writes a setting; nil removes it.
  ///
  /// - Throws: when the value cannot be encoded.
  package func set<Value>(_ value: Value?, for key: SettingKey<Value>) throws {
    do {
      try drafts.set(try value.map(key.encode), of: key.name, suite)
    } catch let error as EncodingError {
      throw StepFailure(message: "the setting `\(key.name)` cannot be written: \(error.reason)")
    }
  }

  /// Removes a setting, whatever its type.
  package func remove(_ name: String) throws { try drafts.set(nil, of: name, suite) }
}

extension EncodingError {
  /// What went wrong, without the value.
  fileprivate var reason: String {
    if case .invalidValue(_, let context) = self { context.debugDescription } else { "it does not encode" }
  }
}
