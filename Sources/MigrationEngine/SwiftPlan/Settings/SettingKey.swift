import Formats

/// A setting's key with its type.
///
/// ```swift
/// extension SettingKey where Value == Theme {
///   static let theme = SettingKey("theme")
/// }
/// ```
package struct SettingKey<Value>: Sendable {
  /// The key as it is stored; a dot in it means nothing.
  package let name: String
  /// The value of a setting; nil when it does not fit.
  let decode: @Sendable (PropertyListValue) -> Value?
  let encode: @Sendable (Value) throws -> PropertyListValue

  /// A key of a simple value, an enumeration, a list or a dictionary.
  package init(_ name: String) where Value: SettingValue {
    self.name = name
    decode = { Value(setting: $0) }
    encode = { $0.setting }
  }

  /// A key of a value that is stored encoded.
  package init(_ name: String, as form: SettingForm) where Value: Codable & Sendable {
    self.name = name
    decode = { try? form.decode(Value.self, from: $0) }
    encode = { try form.encode($0) }
  }
}
