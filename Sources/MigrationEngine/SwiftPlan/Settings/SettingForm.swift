import Formats
import Foundation

/// How a setting holds what is `Codable`.
package enum SettingForm: Sendable {
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
      // A property list has a dictionary or a list on top, and a value may be less.
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
