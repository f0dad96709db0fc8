import AppContainer
import Formats

extension JSONValue: StructuredValue {
  var shape: ValueShape {
    switch self {
    case .array(let array): .array(count: array.elements.count)
    case .object: .dictionary
    case .null, .boolean, .number, .string: .single(typeName)
    }
  }

  func part(_ place: ValuePlace) -> JSONValue? {
    switch (self, place) {
    case (.array(let array), .element(let index)):
      array.elements.indices.contains(index) ? array.elements[index] : nil
    case (.object(let object), .member(let key)): object[key]
    default: nil
    }
  }

  mutating func replace(_ place: ValuePlace, with value: JSONValue) {
    switch (self, place) {
    case (.array(var array), .element(let index)):
      array.replace(index, with: value)
      self = .array(array)
    case (.object(var object), .member(let key)):
      object.set(key, to: value)
      self = .object(object)
    default: break
    }
  }

  mutating func insert(_ value: JSONValue, at place: ValuePlace, order: Int?) {
    switch (self, place) {
    case (.array(var array), .element(let index)):
      array.insert(value, at: index)
      self = .array(array)
    case (.object(var object), .member(let key)):
      object.set(key, to: value, at: order)
      self = .object(object)
    default: break
    }
  }

  mutating func remove(_ place: ValuePlace) {
    switch (self, place) {
    case (.array(var array), .element(let index)):
      array.remove(at: index)
      self = .array(array)
    case (.object(var object), .member(let key)):
      object.remove(key)
      self = .object(object)
    default: break
    }
  }

  func order(of place: ValuePlace) -> Int? {
    guard case .object(let object) = self, case .member(let key) = place else { return nil }
    return object.index(of: key)
  }

  init(_ node: YAMLNode) throws { self = try node.jsonValue() }
  init(integer: Int64) { self = .number(JSONNumber(integer)) }
  init(key: String, value: JSONValue) { self = .object(JSONObject([(key, value)])) }
  init(stored: String) throws { self = try JSONDocument(bytes: Array(stored.utf8)).value }

  var stored: String { JSONDocument(self, isIndented: false).text }

  var integer: Int64? {
    if case .number(let number) = self { number.integer } else { nil }
  }

  func shown(_ redactor: Redactor, names: [String]) -> String {
    propertyListValue?.shown(redactor, names: names) ?? shape.nounPhrase
  }
}
