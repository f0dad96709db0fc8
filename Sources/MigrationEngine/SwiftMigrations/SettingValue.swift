import Formats
import Foundation

/// A type that a setting can have. An enumeration with raw values only declares it: `enum Theme: String, SettingValue`.
public protocol SettingValue: Sendable {
  /// The stored value; nil when it has another type.
  init?(setting: PropertyListValue)
  /// The value to store.
  var setting: PropertyListValue { get }
}

extension SettingValue where Self: RawRepresentable, RawValue: SettingValue {
  public init?(setting: PropertyListValue) {
    guard let raw = RawValue(setting: setting) else { return nil }
    self.init(rawValue: raw)
  }

  public var setting: PropertyListValue { rawValue.setting }
}

extension PropertyListValue: SettingValue {
  public init(setting: PropertyListValue) { self = setting }

  public var setting: PropertyListValue { self }
}

extension String: SettingValue {
  public init?(setting: PropertyListValue) {
    guard case .string(let text) = setting else { return nil }
    self = text
  }

  public var setting: PropertyListValue { .string(self) }
}

extension Bool: SettingValue {
  public init?(setting: PropertyListValue) {
    guard case .boolean(let bool) = setting else { return nil }
    self = bool
  }

  public var setting: PropertyListValue { .boolean(self) }
}

extension Int: SettingValue {
  public init?(setting: PropertyListValue) {
    guard let number = setting.anyInteger else { return nil }
    self.init(exactly: number)
  }

  public var setting: PropertyListValue { .integer(Int64(self)) }
}

/// Android's `int`.
extension Int32: SettingValue {
  public init?(setting: PropertyListValue) {
    guard let number = setting.anyInteger else { return nil }
    self.init(exactly: number)
  }

  public var setting: PropertyListValue { .int(self) }
}

/// Android's `long`.
extension Int64: SettingValue {
  public init?(setting: PropertyListValue) {
    guard let number = setting.anyInteger else { return nil }
    self = number
  }

  public var setting: PropertyListValue { .long(self) }
}

/// Android's `float`.
extension Float: SettingValue {
  public init?(setting: PropertyListValue) {
    guard case .single(let number) = setting else { return nil }
    self = number
  }

  public var setting: PropertyListValue { .single(self) }
}

extension StringSet: SettingValue {
  /// Also an array of different strings.
  public init?(setting: PropertyListValue) {
    switch setting {
    case .set(let set): self = set
    case .array(let values): self.init(array: values)
    default: return nil
    }
  }

  public var setting: PropertyListValue { .set(self) }
}

extension Double: SettingValue {
  /// Also an integer that a real holds exactly: an app that stores 14 reads 14.0.
  public init?(setting: PropertyListValue) {
    switch setting {
    case .real(let real): self = real
    case .single(let real): self.init(real)
    case .integer, .int, .long:
      guard let number = setting.anyInteger else { return nil }
      self.init(exactly: number)
    default: return nil
    }
  }

  public var setting: PropertyListValue { .real(self) }
}

extension Date: SettingValue {
  public init?(setting: PropertyListValue) {
    guard case .date(let date) = setting else { return nil }
    self = date
  }

  public var setting: PropertyListValue { .date(self) }
}

extension Data: SettingValue {
  public init?(setting: PropertyListValue) {
    guard case .data(let bytes) = setting else { return nil }
    self.init(bytes)
  }

  public var setting: PropertyListValue { .data([UInt8](self)) }
}

extension Array: SettingValue where Element: SettingValue {
  /// The elements of an array, or of a string set in sorted order. Nil when one has another type.
  public init?(setting: PropertyListValue) {
    let values: [PropertyListValue]
    switch setting {
    case .array(let array): values = array
    case .set(let set): values = set.strings.map { .string($0) }
    default: return nil
    }
    let elements = values.compactMap(Element.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  public var setting: PropertyListValue { .array(map(\.setting)) }
}

extension Dictionary: SettingValue where Key == String, Value: SettingValue {
  /// Nil when one value has another type.
  public init?(setting: PropertyListValue) {
    guard case .dictionary(let values) = setting else { return nil }
    let elements = values.compactMapValues(Value.init(setting:))
    guard elements.count == values.count else { return nil }
    self = elements
  }

  public var setting: PropertyListValue {
    .dictionary(PropertyListDictionary(map { ($0.key, $0.value.setting) }))
  }
}

/// A setting's key with its type.
///
/// ```swift
/// extension SettingKey where Value == Theme {
///   static let theme = SettingKey("theme")
/// }
/// ```
public struct SettingKey<Value>: Sendable {
  /// The stored key; a dot in it has no meaning.
  public let name: String
  /// The value of a setting; nil when it has another type.
  let decode: @Sendable (PropertyListValue) -> Value?
  let encode: @Sendable (Value) throws -> PropertyListValue

  /// A key of a simple value, an enumeration, a list or a dictionary.
  public init(_ name: String) where Value: SettingValue {
    self.name = name
    decode = { Value(setting: $0) }
    encode = { $0.setting }
  }

  /// A key of a value that is stored encoded.
  public init(_ name: String, as form: SettingForm) where Value: Codable & Sendable {
    self.name = name
    decode = { try? form.decode(Value.self, from: $0) }
    encode = { try form.encode($0) }
  }
}

/// How a setting stores a `Codable` value.
public enum SettingForm: Sendable {
  /// A JSON document as data, which is what `JSONEncoder` gives.
  case json
  /// A JSON document as text.
  case jsonText
  /// The property list's own types.
  case propertyList

  func encode(_ value: some Encodable) throws -> PropertyListValue {
    switch self {
    case .json: return .data([UInt8](try Self.encoder().encode(value)))
    case .jsonText: return .string(String(decoding: try Self.encoder().encode(value), as: UTF8.self))
    case .propertyList:
      let encoder = PropertyListEncoder()
      encoder.outputFormat = .binary
      // The root of a property list is a dictionary or an array, and a value may be simple.
      let bytes = [UInt8](try encoder.encode(["value": value]))
      guard let value = try PropertyListFile(bytes: bytes).root["value"] else {
        throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "it encodes nothing"))
      }
      return value
    }
  }

  /// - Throws: `DecodingError`, also when the setting has another type than the form.
  func decode<Value: Decodable>(_ type: Value.Type, from setting: PropertyListValue) throws -> Value {
    switch (self, setting) {
    case (.json, .data(let bytes)): return try JSONDecoder().decode(type, from: Data(bytes))
    case (.jsonText, .string(let text)): return try JSONDecoder().decode(type, from: Data(text.utf8))
    case (.propertyList, _):
      let bytes = Data(try PropertyListFile(root: ["value": setting]).encoded())
      guard let value = try PropertyListDecoder().decode([String: Value].self, from: bytes)["value"] else {
        throw DecodingError.valueNotFound(type, .init(codingPath: [], debugDescription: "no value"))
      }
      return value
    case (.json, _), (.jsonText, _):
      throw DecodingError.typeMismatch(type, .init(codingPath: [], debugDescription: "no JSON document"))
    }
  }

  private static func encoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
