import AppContainer
import Formats
import Foundation

/// The place of a value.
struct LeafPlace {
  var name = SecretName.plain
  /// Whether its value was chosen to be made up.
  var isChosen = false
  /// Whether its name says that it is an identifier of the device or of a container.
  var isIdentifier = false
  /// Whether data are kept although they cannot be searched.
  var isKept = false
  /// The place for people.
  var label: String
}

/// Visits each value in a container, and may replace it.
protocol LeafVisitor {
  /// Whether the fields of keyed archives are wanted beside their names. They cannot be written back then.
  var resolvesArchives: Bool { get }
  /// Keys whose values are chosen.
  var keys: Set<String> { get }

  /// A text that is not a document.
  mutating func text(_ text: String, _ place: LeafPlace) throws -> String
  /// Bytes that are neither text nor a document.
  mutating func data(_ bytes: [UInt8], _ place: LeafPlace) throws -> [UInt8]
  /// A number without a fraction, as it is written.
  mutating func number(_ digits: String, _ place: LeafPlace) throws -> String
  mutating func date(_ date: Date, _ place: LeafPlace) throws -> Date
  /// A key of a dictionary; whether it is a secret by itself.
  mutating func key(_ key: String, isSecret: Bool, _ place: LeafPlace) throws -> String
}

extension LeafVisitor {
  /// The place of what a key holds.
  func place(of key: String, _ name: SecretName, in place: LeafPlace) -> LeafPlace {
    var inner = place
    (inner.name, inner.isChosen) = (name, place.isChosen || keys.contains(key))
    inner.isIdentifier = DeviceIdentifiers.isKey(key)
    return inner
  }
}

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

  /// Nil for what is not a property list, and for one that must be searched as text, too.
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
    // The old bytes may contain unreferenced objects: they are kept only where their length leaves no room for any.
    case .binary: return changed == document && encoded.count == bytes.count ? bytes : encoded
    // Comments are not values.
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
      let names = object.secretFields(inside: place.name)
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
}

/// Takes XML and HTML apart, as far as it has names beside values: `<string name="k">v</string>`, `<int name="k" value="v"/>`,
/// `<k>v</k>`, and the pair of a property list. The rest, such as comments, is searched as text.
enum MarkupWalk {
  static func text<Visitor: LeafVisitor>(
    _ text: String, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int
  ) throws -> String {
    var result = ""
    var end = text.startIndex
    // In a property list the key precedes its value.
    var key: String?
    func take(_ range: Range<String.Index>, _ name: String) throws {
      let old = String(text[range])
      let new = try value(old, name, place, &visitor, depth: depth)
      result += try visitor.text(String(text[end..<range.lowerBound]), place) + new
      end = range.upperBound
    }
    for match in text.matches(of: #/<(?<tag>[A-Za-z][\w.:\-]*)(?<attributes>[^<>]*)>(?<content>[^<>]*)/#) {
      let attributes = match.attributes.matches(
        of: #/(?<name>[\w.:\-]+)\s*=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)')/#)
      let named = attributes.first { ["name", "key"].contains($0.name.lowercased()) }
      let called = named.flatMap { $0.double ?? $0.single }.map { unescaped(String($0)) }
      let name = called ?? key ?? String(match.tag)
      for attribute in attributes where attribute.range != named?.range {
        guard let value = attribute.double ?? attribute.single else { continue }
        let isValue = attribute.name.lowercased() == "value"
        try take(value.startIndex..<value.endIndex, isValue ? name : String(attribute.name))
      }
      let content = match.content
      if match.tag == "key" {
        key = unescaped(String(content))
      } else if content.contains(where: { !$0.isWhitespace }) {
        try take(content.startIndex..<content.endIndex, name)
        key = nil
      }
    }
    return result + (try visitor.text(String(text[end...]), place))
  }

  private static func value<Visitor: LeafVisitor>(
    _ source: String, _ name: String, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int
  ) throws -> String {
    let old = unescaped(source)
    let names = SecretFields([name: .string(old)], inside: place.name)
    let new = try ValueWalk.text(
      old, visitor.place(of: name, names[name], in: place), &visitor, depth: depth + 1)
    return old == new ? source : escaped(new)
  }

  private static let entities = [
    ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"),
  ]

  private static func unescaped(_ text: String) -> String {
    guard text.contains("&") else { return text }
    let numbered = text.replacing(#/&#(?:x(?<hex>[0-9A-Fa-f]{1,6})|(?<number>[0-9]{1,7}));/#) { match in
      let number = match.hex.flatMap { UInt32($0, radix: 16) } ?? match.number.flatMap { UInt32($0) }
      return number.flatMap(Unicode.Scalar.init).map(String.init) ?? String(match.0)
    }
    return entities.reduce(numbered) { $0.replacing($1.0, with: $1.1) }.replacing("&amp;", with: "&")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;").replacing("'", with: "&apos;")
  }
}
