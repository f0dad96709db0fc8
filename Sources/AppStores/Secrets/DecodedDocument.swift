import DrydockErrors
import Formats
import Foundation

/// A document in text or data, decoded for display: a keyed archive, a property list, or JSON.
///
/// Its size is bounded: what is larger, nested deeper or damaged counts as plain text or data.
package struct DecodedDocument: Sendable {
  package enum Form: String, Sendable, Codable {
    case keyedArchive = "keyed archive"
    case propertyList = "property list"
    case json = "JSON"
  }

  /// Larger documents are not decoded.
  package static let sizeLimit = 1 << 20
  /// The most values in a document, each counted as often as it is referenced.
  private static let valueLimit = 50_000

  package let form: Form
  /// In a keyed archive, an object of an app's class is a dictionary of its fields with the name of the class as `$class`.
  package let value: PropertyListValue

  /// Decodes a text or data; nil for other values.
  package init?(_ value: PropertyListValue) {
    switch value {
    case .string(let text): self.init(bytes: Array(text.utf8))
    case .data(let bytes): self.init(bytes: bytes)
    default: return nil
    }
  }

  package init?(bytes: [UInt8]) {
    guard bytes.count <= Self.sizeLimit, let parsed = PropertyListValue.parsed(bytes) else { return nil }
    switch parsed {
    case (.propertyList, .dictionary(let root)) where root["$archiver"] != nil:
      guard let value = try? KeyedArchiveReader.read(root, .display) else { return nil }
      (form, self.value) = (.keyedArchive, value)
    case (_, .dictionary), (_, .array): (form, value) = parsed
    default: return nil
    }
    var left = Self.valueLimit
    let isTooLarge = value.contains { _ in
      left -= 1
      return left < 0
    }
    if isTooLarge { return nil }
  }
}

extension Redactor {
  /// The most characters of a document.
  private static let shownLength = 300

  /// The description of a value. A document in data is decoded, with the secrets in it redacted.
  package func shownDecoded(_ value: PropertyListValue, named name: SecretName) -> String {
    guard case .data = value, let document = document(in: value, named: name) else {
      return shown(value, named: name)
    }
    return shown(document, named: name)
  }

  /// Such as `keyed archive {theme: "dark"}`; a long one is cut.
  package func shown(_ document: DecodedDocument, named name: SecretName) -> String {
    let text = knowing([["": document.value]]).shown(document.value, named: name)
    return "\(document.form.rawValue) \(Self.cut(text, Self.shownLength))"
  }

  /// The document in a text or data; nil when there is none, or all of it is secret.
  package func document(in value: PropertyListValue, named name: SecretName) -> DecodedDocument? {
    isHidden(value, named: name) ? nil : DecodedDocument(value)
  }

  package static func cut(_ text: String, _ length: Int) -> String {
    text.utf8.count <= length || text.count <= length ? text : "\(text.prefix(length))…"
  }
}

extension PropertyListValue {
  /// The document in text or data: JSON, or a property list. In a keyed archive, fields are resolved to their names. Data
  /// may also be plain text.
  package var document: PropertyListValue? {
    switch self {
    case .string(let text): return Self.document(in: Array(text.utf8))
    case .data(let bytes):
      if let document = Self.document(in: bytes) { return document }
      guard bytes.count <= Self.documentLimit, !bytes.contains(0) else { return nil }
      return String(validating: bytes, as: UTF8.self).map { .string($0) }
    default: return nil
    }
  }

  /// Larger documents are not parsed; secrets in them are recognized by form only.
  private static let documentLimit = 4 << 20

  private static func document(in bytes: [UInt8]) -> PropertyListValue? {
    bytes.count <= documentLimit ? parsed(bytes).map { resolved($0.value) } : nil
  }

  /// The value of JSON, or of a property list in binary or XML; nil for other bytes.
  fileprivate static func parsed(_ bytes: [UInt8]) -> (form: DecodedDocument.Form, value: PropertyListValue)?
  {
    switch bytes.first(where: { $0 > 0x20 }) {
    case UInt8(ascii: "{"), UInt8(ascii: "["): return json(bytes).map { (.json, $0) }
    // The last one begins a byte order mark.
    case UInt8(ascii: "b"), UInt8(ascii: "<"), 0xEF:
      guard PropertyListDocument.isBinary(bytes) || PropertyListDocument.isXML(bytes) else { return nil }
      return (try? PropertyListDocument(bytes: bytes)).map { (.propertyList, $0.value) }
    default: return nil
    }
  }

  /// A JSON document as a property list, also one that only lenient readers read: null is an unknown value, and of equal
  /// keys the last counts.
  private static func json(_ bytes: [UInt8]) -> PropertyListValue? {
    let encoding = TextEncoding(of: bytes)
    guard let text = encoding.isWide ? encoding.decode(bytes) : bytes else { return nil }
    let document = try? JSONDocument(bytes: text, isLenient: true)
    return document?.value.propertyListValue(null: .unknown(.null))
  }

  /// The objects of a keyed archive, each field with the object that it refers to, one level deep: enough to see a name
  /// beside its value. Other documents are unchanged.
  private static func resolved(_ document: PropertyListValue) -> PropertyListValue {
    guard case .dictionary(let root) = document, root["$archiver"] != nil,
      case .array(let objects) = root["$objects"]
    else { return document }
    func object(_ value: PropertyListValue) -> PropertyListValue {
      guard case .unknown(let opaque) = value, let number = opaque.keyedArchiveReference,
        let index = Int(exactly: number), objects.indices.contains(index)
      else { return value }
      switch objects[index] {
      // Objects with fields are in the list themselves.
      case .dictionary, .array: return value
      case let simple: return simple
      }
    }
    return .array(objects.map { fields($0, object) })
  }

  private static func fields(
    _ value: PropertyListValue, _ object: (PropertyListValue) -> PropertyListValue
  ) -> PropertyListValue {
    guard case .dictionary(let values) = value else { return value }
    var result = values.mapValues(object)
    // A dictionary in a keyed archive is a list of keys and a list of objects.
    if case .array(let keys) = values["NS.keys"], case .array(let items) = values["NS.objects"] {
      for (key, item) in zip(keys, items) {
        if case .string(let name) = object(key) { result[name] = object(item) }
      }
    }
    return .dictionary(result)
  }
}
