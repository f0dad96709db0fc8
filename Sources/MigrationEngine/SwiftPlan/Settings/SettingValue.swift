import AppContainer
import Foundation

/// A type that a setting can have. An enumeration with raw values only has to say so: `enum Theme: String, SettingValue`.
public protocol SettingValue: Sendable {
  /// The value that is stored; nil when it is none of this type.
  init?(setting: PropertyListValue)
  /// What is to be stored.
  var setting: PropertyListValue { get }
}

extension SettingValue where Self: RawRepresentable, RawValue: SettingValue {
  /// The case of a raw value; nil without one.
  public init?(setting: PropertyListValue) {
    guard let raw = RawValue(setting: setting) else { return nil }
    self.init(rawValue: raw)
  }

  /// The raw value.
  public var setting: PropertyListValue { rawValue.setting }
}

extension PropertyListValue: SettingValue {
  /// Any value.
  public init(setting: PropertyListValue) { self = setting }

  /// Itself.
  public var setting: PropertyListValue { self }
}

extension String: SettingValue {
  /// Text.
  public init?(setting: PropertyListValue) {
    guard case .string(let text) = setting else { return nil }
    self = text
  }

  /// Text.
  public var setting: PropertyListValue { .string(self) }
}

extension Bool: SettingValue {
  /// A Bool, and no number.
  public init?(setting: PropertyListValue) {
    guard case .boolean(let bool) = setting else { return nil }
    self = bool
  }

  /// A Bool, and no number.
  public var setting: PropertyListValue { .boolean(self) }
}

extension Int: SettingValue {
  /// An integer that fits.
  public init?(setting: PropertyListValue) {
    guard case .integer(let number) = setting else { return nil }
    self.init(exactly: number)
  }

  /// An integer.
  public var setting: PropertyListValue { .integer(Int64(self)) }
}

extension Double: SettingValue {
  /// Also an integer that a real holds exactly: an app that stores 14 reads 14.0.
  public init?(setting: PropertyListValue) {
    switch setting {
    case .real(let real): self = real
    case .single(let real): self.init(real)
    case .integer(let number): self.init(exactly: number)
    default: return nil
    }
  }

  /// A real.
  public var setting: PropertyListValue { .real(self) }
}

extension Date: SettingValue {
  /// A date.
  public init?(setting: PropertyListValue) {
    guard case .date(let date) = setting else { return nil }
    self = date
  }

  /// A date.
  public var setting: PropertyListValue { .date(self) }
}

extension Data: SettingValue {
  /// Data.
  public init?(setting: PropertyListValue) {
    guard case .data(let bytes) = setting else { return nil }
    self.init(bytes)
  }

  /// Data.
  public var setting: PropertyListValue { .data([UInt8](self)) }
}

extension Array: SettingValue where Element: SettingValue {
  /// Nil when one element is none of its type.
  public init?(setting: PropertyListValue) {
    guard case .array(let values) = setting else { return nil }
    let elements = values.compactMap(Element.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  /// A list.
  public var setting: PropertyListValue { .array(map(\.setting)) }
}

extension Dictionary: SettingValue where Key == String, Value: SettingValue {
  /// Nil when one value is none of its type.
  public init?(setting: PropertyListValue) {
    guard case .dictionary(let values) = setting else { return nil }
    let elements = values.compactMapValues(Value.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  /// A dictionary.
  public var setting: PropertyListValue {
    .dictionary(PropertyListDictionary(map { ($0.key, $0.value.setting) }))
  }
}
