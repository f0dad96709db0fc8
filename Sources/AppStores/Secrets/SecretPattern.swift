import Formats
import Foundation

/// Decides which values are probably secrets, by name, form and content.
///
/// It prefers false positives: redacted values can still be distinguished by their fingerprints, but a secret that was shown
/// stays known.
package enum SecretPattern {
  /// Whether a value, or a part of it, looks like a secret.
  ///
  /// - Parameter key: the name of the value, or empty.
  package static func isSecret(_ value: PropertyListValue, key: String = "") -> Bool {
    isSecret(value, named: SecretName(key))
  }

  package static func isSecret(_ value: PropertyListValue, named name: SecretName) -> Bool {
    var search = SecretSearch(least: .suspicious)
    return search.finds(in: value, name)
  }

  /// Whether a text without a name contains a secret's form: a token, a private key, a card number.
  package static func isSecret(text: String) -> Bool {
    isSecret(.string(text), named: .plain)
  }

  /// Whether a value as a whole is a secret under a classified name.
  ///
  /// - Parameter looksInside: whether to search for a secret's form as well.
  package static func isSecret(leaf value: PropertyListValue, name: SecretName, looksInside: Bool) -> Bool {
    switch value {
    case .string(let text):
      return isSecret(text, name) || looksInside && SecretText.isSecret(text)
    case .data(let bytes):
      switch name {
      case .secret: return !bytes.isEmpty
      case .code, .suspicious: return bytes.count >= 8
      case .plain: return false
      }
    case .integer(let number), .long(let number): return isSecret(number.magnitude, name)
    case .int(let number): return isSecret(UInt64(number.magnitude), name)
    case .set(let values):
      return values.strings.contains { isSecret(leaf: .string($0), name: name, looksInside: looksInside) }
    case .unsigned(let number): return isSecret(number, name)
    case .real(let number): return isSecret(number, name)
    case .single(let number): return isSecret(Double(number), name)
    case .boolean, .date, .unknown, .array, .dictionary: return false
    }
  }

  private static let answers: Set<String> = [
    "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "default", "auto", "always", "never",
    "ask",
  ]

  private static func isSecret(_ text: String, _ name: SecretName) -> Bool {
    switch name {
    case .plain: return false
    case .suspicious: return SecretToken.isLikely(text)
    case .code: return isCode(text) || SecretToken.isLikely(text)
    case .secret:
      // A count is shorter than any code.
      let isNumber = text.utf8.allSatisfy(SecretText.isDigit)
      return !(isNumber && text.utf8.count < 3) && !answers.contains(text.lowercased())
    }
  }

  private static func isCode(_ text: String) -> Bool {
    let isPlain = text.utf8.allSatisfy { SecretText.isDigit($0) || $0 == 0x20 || $0 == UInt8(ascii: "-") }
    return isPlain && text.utf8.count(where: SecretText.isDigit) >= 3
  }

  private static func isSecret(_ number: UInt64, _ name: SecretName) -> Bool {
    switch name {
    case .plain, .suspicious: SecretNumber.isCard(number)
    case .code: number >= 100
    case .secret: number >= 1000
    }
  }

  private static func isSecret(_ number: Double, _ name: SecretName) -> Bool {
    guard number.isFinite, number.magnitude < 1e19, number == number.rounded() else { return false }
    return isSecret(UInt64(number.magnitude), name)
  }
}

/// Searches values for secrets, with bounded work: by references to one text, a property list of a few megabytes can expand to
/// a million times as much.
package struct SecretSearch {
  /// The most levels of documents in text or data, such as JSON in a string of JSON.
  static let depthLimit = 8
  /// The most bytes to inspect in a single value.
  package static let budget = 4 << 20

  /// The minimum class of a name that makes a value without a secret's form secret.
  private let least: SecretName
  private var left: Int

  /// - Parameter budget: the most bytes to inspect.
  package init(least: SecretName, budget: Int = Self.budget) { (self.least, left) = (least, budget) }

  package var isComplete: Bool { left > 0 }

  /// Whether a value, or a part of it, looks like a secret, or is too large or too deeply nested to decide.
  package mutating func finds(in value: PropertyListValue, _ name: SecretName, depth: Int = 0) -> Bool {
    left -= Self.weight(of: value)
    guard isComplete else { return true }
    if SecretPattern.isSecret(leaf: value, name: name < least ? .plain : name, looksInside: true) {
      return true
    }
    switch value {
    case .array(let values):
      for value in values where finds(in: value, name, depth: depth) { return true }
      return false
    case .set(let values):
      for text in values.strings where finds(in: .string(text), name, depth: depth) { return true }
      return false
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values {
        left -= key.utf8.count
        if names.isSecret(key: key) || finds(in: value, names[key], depth: depth) { return true }
      }
      return false
    default:
      guard let nested = NestedValue(value) else { return false }
      return depth >= Self.depthLimit || finds(in: nested.value, name, depth: depth + 1)
    }
  }

  /// Calls a body with each secret text or data in a value.
  mutating func visit(_ value: PropertyListValue, _ name: SecretName, _ body: (PropertyListValue) -> Void) {
    left -= Self.weight(of: value)
    guard isComplete else { return }
    switch value {
    case .array(let values):
      for value in values { visit(value, name, body) }
    case .set(let values):
      for text in values.strings { visit(.string(text), name, body) }
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values { visit(value, names[key], body) }
    default: if SecretPattern.isSecret(leaf: value, name: name, looksInside: true) { body(value) }
    }
  }

  private static func weight(of value: PropertyListValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count + 16
    case .data(let bytes): bytes.count + 16
    case .set(let values): values.strings.reduce(16) { $0 + $1.utf8.count + 16 }
    case .dictionary(let values): values.count * 32 + 16
    default: 16
    }
  }
}

/// A document in text or data: JSON, or a property list. In a keyed archive, fields are resolved to their names.
package struct NestedValue {
  /// Larger documents are not parsed; secrets in them are recognized by form only.
  private static let sizeLimit = 4 << 20
  private static let jsonDepth = 100

  package let value: PropertyListValue

  package init?(_ value: PropertyListValue) {
    switch value {
    case .string(let text): self.init(bytes: Array(text.utf8))
    case .data(let bytes): self.init(data: bytes)
    default: return nil
    }
  }

  /// Data may also be plain text.
  private init?(data: [UInt8]) {
    if let document = NestedValue(bytes: data) {
      self = document
    } else if data.count <= Self.sizeLimit, !data.contains(0),
      let text = String(validating: data, as: UTF8.self)
    {
      value = .string(text)
    } else {
      return nil
    }
  }

  private init?(bytes: [UInt8]) {
    guard bytes.count <= Self.sizeLimit, let first = bytes.first(where: { $0 > 0x20 }) else { return nil }
    let document: PropertyListValue?
    switch first {
    case UInt8(ascii: "{"), UInt8(ascii: "["): document = Self.json(bytes)
    case UInt8(ascii: "b") where PropertyListDocument.isBinary(bytes),
      UInt8(ascii: "<") where Self.isXMLPropertyList(bytes):
      document = (try? PropertyListDocument(bytes: bytes))?.value
    default: document = nil
    }
    guard let document else { return nil }
    value = KeyedArchive.resolved(document)
  }

  static func isXMLPropertyList(_ bytes: [UInt8]) -> Bool {
    String(decoding: bytes.prefix(512), as: UTF8.self).contains("<plist")
  }

  /// A JSON document as a property list; null is an unknown value.
  static func json(_ bytes: [UInt8]) -> PropertyListValue? {
    if let document = try? JSONDocument(bytes: bytes) { return value(document.value) }
    // A document with duplicate keys.
    guard let object = try? JSONSerialization.jsonObject(with: Data(bytes)) else { return nil }
    return value(object, depth: 0)
  }

  private static func value(_ value: JSONValue) -> PropertyListValue {
    switch value {
    case .array(let array): .array(array.elements.map { self.value($0) })
    case .object(let object):
      .dictionary(PropertyListDictionary(object.members.map { ($0.key.text, self.value($0.value)) }))
    default: value.propertyListValue ?? .unknown(.null)
    }
  }

  private static func value(_ object: Any, depth: Int) -> PropertyListValue? {
    guard depth < jsonDepth else { return nil }
    switch object {
    case let text as String: return .string(text)
    case let number as NSNumber: return self.number(number)
    case let values as [Any]:
      let elements = values.compactMap { value($0, depth: depth + 1) }
      return elements.count == values.count ? .array(elements) : nil
    case let values as [String: Any]:
      let fields = values.compactMap { key, field in value(field, depth: depth + 1).map { (key, $0) } }
      return fields.count == values.count ? .dictionary(PropertyListDictionary(fields)) : nil
    default: return .unknown(.null)
    }
  }

  private static func number(_ number: NSNumber) -> PropertyListValue {
    switch String(cString: number.objCType) {
    case "c", "B": .boolean(number.boolValue)
    case "d", "f": .real(number.doubleValue)
    case "Q": Int64(exactly: number.uint64Value).map { .integer($0) } ?? .unsigned(number.uint64Value)
    default: .integer(number.int64Value)
    }
  }
}

/// A keyed archive with its fields beside their names.
private enum KeyedArchive {
  /// The objects of a keyed archive, each field with the object that it refers to, one level deep: enough to see a name
  /// beside its value. Other documents are unchanged.
  static func resolved(_ document: PropertyListValue) -> PropertyListValue {
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
