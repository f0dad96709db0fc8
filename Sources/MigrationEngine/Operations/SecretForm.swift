import AgeEncryption
import Formats
import Foundation

/// How a setting's value becomes the bytes of a secret, where it is neither text nor data.
enum SecretForm: String, CaseIterable, Sendable {
  /// A number or Bool in words, as `defaults.convert` writes it.
  case text
  /// A JSON document: dictionaries, arrays, text, numbers, Bools.
  case json

  /// The bytes: text as UTF-8, data as it is, other types only in a form that is asked for.
  static func bytes(of value: PropertyListValue, as form: SecretForm?, key: String) throws -> SecretBytes {
    var bytes: [UInt8]
    switch (form, value) {
    case (nil, .string(let text)): bytes = Array(text.utf8)
    case (nil, .data(let data)): bytes = data
    case (.text?, _):
      guard case .string(let text) = ValueType.string.convert(value) else {
        throw StepFailure(message: "the setting `\(key)`, \(value.nounPhrase), is no text: say `as: json`")
      }
      bytes = Array(text.utf8)
    case (.json?, _):
      guard let document = value.json else {
        throw StepFailure(
          message:
            "the setting `\(key)`, \(value.nounPhrase), holds what JSON has no form for: a date, data, or "
            + "a number that is none")
      }
      bytes = try json(document)
    case (nil, _):
      throw StepFailure(
        message:
          "the setting `\(key)` is \(value.nounPhrase), and a secret is text or data: say `as: text` or "
          + "`as: json`")
    }
    return SecretBytes(wiping: &bytes)
  }

  /// The setting that a secret was made of.
  ///
  /// - Parameter type: what it was; nil when that is not known any more.
  /// - Throws: ``StepFailure`` when the bytes are no such value.
  static func setting(
    of bytes: [UInt8], as form: SecretForm?, type: PropertyListValue?, key: String
  ) throws -> PropertyListValue {
    let text = String(validating: bytes, as: UTF8.self)
    let value: PropertyListValue? =
      switch (form, type) {
      case (nil, .data?): .data(bytes)
      case (nil, _): text.map { .string($0) } ?? .data(bytes)
      case (.text?, let type?): text.flatMap { ValueType(of: type)?.convert(.string($0))?.typed(like: type) }
      case (.text?, nil): nil
      case (.json?, _): try? JSONDocument(bytes: bytes).value.propertyListValue?.typed(like: type)
      }
    if let value { return value }
    throw StepFailure(
      message:
        "the vault item that the setting `\(key)` became cannot be a setting again: "
        + (type == nil
          ? "its type is not known any more" : "it is not \(type?.nounPhrase ?? "such a value") now"))
  }

  /// A JSON document with sorted keys.
  static func json(_ document: Any) throws -> [UInt8] {
    [UInt8](
      try JSONSerialization.data(
        withJSONObject: document, options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed]))
  }
}

extension PropertyListValue {
  /// The value as JSON knows it; nil for what JSON has no form for.
  var json: Any? {
    switch self {
    case .string(let text): return text
    case .boolean(let bool): return bool
    case .integer(let number): return number
    case .unsigned(let number): return number
    case .real(let real): return real.isFinite ? real : nil
    case .single(let real): return real.isFinite ? Double(real) : nil
    case .array(let values):
      let converted = values.compactMap(\.json)
      return converted.count == values.count ? converted : nil
    case .dictionary(let values):
      let converted = values.compactMapValues(\.json)
      return converted.count == values.count ? converted : nil
    case .date, .data, .unknown: return nil
    }
  }
}
