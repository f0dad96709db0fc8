import Formats
import Foundation

/// A type that a setting can have. An enumeration with raw values only has to say so: `enum Theme: String, SettingValue`.
package protocol SettingValue: Sendable {
  /// The value that is stored; nil when it is none of this type.
  init?(setting: PropertyListValue)
  /// What is to be stored.
  var setting: PropertyListValue { get }
}

extension SettingValue where Self: RawRepresentable, RawValue: SettingValue {
  /// The case of a raw value; nil without one.
  package init?(setting: PropertyListValue) {
    guard let raw = RawValue(setting: setting) else { return nil }
    self.init(rawValue: raw)
  }

  /// The raw value.
  package var setting: PropertyListValue { rawValue.setting }
}

extension PropertyListValue: SettingValue {
  /// Any value.
  package init(setting: PropertyListValue) { self = setting }

  /// Itself.
  package var setting: PropertyListValue { self }
}

extension String: SettingValue {
  /// Text.
  package init?(setting: PropertyListValue) {
    guard case .string(let text) = setting else { return nil }
    self = text
  }

  /// Text.
  package var setting: PropertyListValue { .string(self) }
}

extension Bool: SettingValue {
  /// A Bool, and no number.
  package init?(setting: PropertyListValue) {
    guard case .boolean(let bool) = setting else { return nil }
    self = bool
  }

  /// A Bool, and no number.
  package var setting: PropertyListValue { .boolean(self) }
}

extension Int: SettingValue {
  /// An integer that fits.
  package init?(setting: PropertyListValue) {
    guard case .integer(let number) = setting else { return nil }
    self.init(exactly: number)
  }

  /// An integer.
  package var setting: PropertyListValue { .integer(Int64(self)) }
}

extension Double: SettingValue {
  /// Also an integer that a real holds exactly: an app that stores 14 reads 14.0.
  package init?(setting: PropertyListValue) {
    switch setting {
    case .real(let real): self = real
    case .single(let real): self.init(real)
    case .integer(let number): self.init(exactly: number)
    default: return nil
    }
  }

  /// A real.
  package var setting: PropertyListValue { .real(self) }
}

extension Date: SettingValue {
  /// A date.
  package init?(setting: PropertyListValue) {
    guard case .date(let date) = setting else { return nil }
    self = date
  }

  /// A date.
  package var setting: PropertyListValue { .date(self) }
}

extension Data: SettingValue {
  /// Data.
  package init?(setting: PropertyListValue) {
    guard case .data(let bytes) = setting else { return nil }
    self.init(bytes)
  }

  /// Data.
  package var setting: PropertyListValue { .data([UInt8](self)) }
}

extension Array: SettingValue where Element: SettingValue {
  /// Nil when one element is none of its type.
  package init?(setting: PropertyListValue) {
    guard case .array(let values) = setting else { return nil }
    let elements = values.compactMap(Element.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  /// A list.
  package var setting: PropertyListValue { .array(map(\.setting)) }
}

extension Dictionary: SettingValue where Key == String, Value: SettingValue {
  /// Nil when one value is none of its type.
  package init?(setting: PropertyListValue) {
    guard case .dictionary(let values) = setting else { return nil }
    let elements = values.compactMapValues(Value.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  /// A dictionary.
  package var setting: PropertyListValue {
    .dictionary(PropertyListDictionary(map { ($0.key, $0.value.setting) }))
  }
}
