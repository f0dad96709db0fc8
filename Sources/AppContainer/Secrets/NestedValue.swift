import Formats
import Foundation

/// What is kept as text or data and is a document of its own: JSON, or a property list. The fields of a keyed archive
/// stand beside their names.
package struct NestedValue {
  /// Larger ones are not taken apart; what is in them is found by its form only.
  private static let sizeLimit = 4 << 20
  private static let jsonDepth = 100

  /// What is in it.
  package let value: PropertyListValue

  /// Nil when a value is no such document.
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
    case UInt8(ascii: "b") where bytes.starts(with: BinaryPropertyList.magic):
      document = try? BinaryPropertyListReader.read(bytes)
    case UInt8(ascii: "<"): document = Self.isPropertyList(bytes) ? try? XMLPropertyList.read(bytes) : nil
    default: document = nil
    }
    guard let document else { return nil }
    value = KeyedArchive.resolved(document)
  }

  private static func isPropertyList(_ bytes: [UInt8]) -> Bool {
    let start = String(decoding: bytes.prefix(512), as: UTF8.self)
    return start.contains("<plist")
  }

  private static func json(_ bytes: [UInt8]) -> PropertyListValue? {
    if let document = try? JSONDocument(bytes: bytes) { return value(document.value) }
    // One with a key that is there twice is a document still.
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

/// What a keyed archiver wrote, with its fields beside their names.
private enum KeyedArchive {
  /// The objects of an archive, each field with the object that it refers to, one step deep: enough to see a name
  /// beside its value. Anything else stays as it is.
  static func resolved(_ document: PropertyListValue) -> PropertyListValue {
    guard case .dictionary(let root) = document, root["$archiver"] != nil,
      case .array(let objects) = root["$objects"]
    else { return document }
    func object(_ value: PropertyListValue) -> PropertyListValue {
      guard case .unknown(let opaque) = value, let number = opaque.archiveReference,
        let index = Int(exactly: number), objects.indices.contains(index)
      else { return value }
      switch objects[index] {
      // What has fields stands in the list for itself.
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
    // A dictionary in an archive is a list of keys and a list of objects.
    if case .array(let keys) = values["NS.keys"], case .array(let items) = values["NS.objects"] {
      for (key, item) in zip(keys, items) {
        if case .string(let name) = object(key) { result[name] = object(item) }
      }
    }
    return .dictionary(result)
  }
}
