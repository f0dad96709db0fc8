import AppContainer
import Formats

/// Takes values apart, with the documents that are in them, down to what is neither.
enum ValueWalk {
  /// How often a document is looked for in the text or data of a document.
  private static let depthLimit = 8

  // MARK: Property lists

  static func value<Visitor: LeafVisitor>(
    _ value: PropertyListValue, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int = 0
  ) throws -> PropertyListValue {
    switch value {
    case .string(let text): return .string(try self.text(text, place, &visitor, depth: depth))
    case .data(let bytes): return .data(try data(bytes, place, &visitor, depth: depth))
    case .integer(let number):
      return try Int64(visitor.number("\(number)", place)).map { .integer($0) } ?? value
    case .unsigned(let number):
      return try UInt64(visitor.number("\(number)", place)).map { .unsigned($0) } ?? value
    case .real(let number):
      guard let whole = Int64(exactly: number) else { return value }
      return try Double(visitor.number("\(whole)", place)).map { .real($0) } ?? value
    case .date(let date): return .date(try visitor.date(date, place))
    case .array(let values):
      return .array(try values.map { try self.value($0, place, &visitor, depth: depth) })
    case .dictionary(let values):
      return .dictionary(try dictionary(values, place, &visitor, depth: depth))
    case .single, .boolean, .unknown: return value
    }
  }

  static func dictionary<Visitor: LeafVisitor>(
    _ values: PropertyListDictionary, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int = 0
  ) throws -> PropertyListDictionary {
    let names = SecretFields(values, inside: place.name)
    var result: PropertyListDictionary = [:]
    for (key, value) in values.sorted() {
      let inner = visitor.place(of: key, names[key], in: place)
      let newKey = try visitor.key(key, isSecret: names.isSecret(key: key), place)
      result[newKey] = try self.value(value, inner, &visitor, depth: depth)
    }
    return result
  }

  // MARK: Text and data

  static func text<Visitor: LeafVisitor>(
    _ text: String, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int = 0
  ) throws -> String {
    guard let first = text.utf8.first(where: { $0 > 0x20 }), depth < depthLimit else {
      return try visitor.text(text, place)
    }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      var document = try? JSONDocument(bytes: Array(text.utf8))
    {
      var changed = false
      document.value = try json(document.value, place, &visitor, &changed, depth: depth + 1)
      return changed ? document.text : text
    }
    if first == UInt8(ascii: "<") {
      if let bytes = try propertyList(Array(text.utf8), place, &visitor, depth) {
        return String(decoding: bytes, as: UTF8.self)
      }
      return try MarkupWalk.text(text, place, &visitor, depth: depth)
    }
    return try visitor.text(text, place)
  }

  static func data<Visitor: LeafVisitor>(
    _ bytes: [UInt8], _ place: LeafPlace, _ visitor: inout Visitor, depth: Int = 0
  ) throws -> [UInt8] {
    if depth < depthLimit, PropertyListDocument.isBinary(bytes),
      let result = try propertyList(bytes, place, &visitor, depth)
    {
      return result
    }
    if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
      return Array(try self.text(text, place, &visitor, depth: depth).utf8)
    }
    return try visitor.data(bytes, place)
  }

  /// Nil for what is no property list, and for one that has to be looked at as a text, too.
  private static func propertyList<Visitor: LeafVisitor>(
    _ bytes: [UInt8], _ place: LeafPlace, _ visitor: inout Visitor, _ depth: Int
  ) throws -> [UInt8]? {
    guard let document = try? PropertyListDocument(bytes: bytes) else { return nil }
    if visitor.resolvesArchives, let nested = NestedValue(.data(bytes)) {
      _ = try value(nested.value, place, &visitor, depth: depth + 1)
    }
    var changed = document
    changed.value = try value(document.value, place, &visitor, depth: depth + 1)
    let encoded = try changed.encoded()
    switch document.format {
    // What nothing refers to may stand in the old bytes: they are kept only where there is no room for it.
    case .binary: return changed == document && encoded.count == bytes.count ? bytes : encoded
    // Remarks are no values.
    case .xml: return changed == document ? nil : encoded
    }
  }

  // MARK: JSON

  private static func json<Visitor: LeafVisitor>(
    _ value: JSONValue, _ place: LeafPlace, _ visitor: inout Visitor, _ changed: inout Bool, depth: Int
  ) throws -> JSONValue {
    switch value {
    case .null, .boolean: return value
    case .number(let number):
      guard let whole = number.integer else { return value }
      let other = try visitor.number("\(whole)", place)
      guard other != "\(whole)", let new = Int64(other) else { return value }
      changed = true
      return .number(JSONNumber(new))
    case .string(let string):
      let old = string.text
      let new = try text(old, place, &visitor, depth: depth)
      if old.isExactly(new) { return value }
      changed = true
      return .string(JSONString(new))
    case .array(var array):
      for (index, element) in array.elements.enumerated() {
        array.replace(index, with: try json(element, place, &visitor, &changed, depth: depth))
      }
      return .array(array)
    case .object(var object):
      let names = SecretFields(fields(of: object), inside: place.name)
      var keys: [String] = []
      for member in object.members {
        let key = member.key.text
        let inner = visitor.place(of: key, names[key], in: place)
        object.set(key, to: try json(member.value, inner, &visitor, &changed, depth: depth))
        keys.append(try visitor.key(key, isSecret: names.isSecret(key: key), place))
      }
      guard keys.map({ ExactText($0) }) != object.members.map({ ExactText($0.key.text) }) else {
        return .object(object)
      }
      changed = true
      return .object(JSONObject(zip(keys, object.members).map { ($0, $1.value) }))
    }
  }

  /// An object's fields, as far as they tell something of each other.
  private static func fields(of object: JSONObject) -> PropertyListDictionary {
    PropertyListDictionary(
      object.members.map { member in
        if case .string(let text) = member.value {
          (member.key.text, .string(text.text))
        } else {
          (member.key.text, .boolean(true))
        }
      })
  }
}
